#include "autotune/space/decisions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tensmith {

namespace {

// No schedule asks for more; a file that says more is not ours.
constexpr size_t kMostDecisions = 10000;

}  // namespace

std::string to_string(const ChoiceValue& value) {
  const auto* number = std::get_if<int64_t>(&value);
  return number ? std::to_string(*number) : std::get<std::string>(value);
}

void Decisions::set(const std::string& name, ChoiceValue value) {
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
  if (found != items_.end()) found->second = std::move(value);
  else items_.emplace_back(name, std::move(value));
}

const ChoiceValue* Decisions::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

uint64_t Decisions::hash() const {
  // FNV-1a over the text, in which a number and the same word differ.
  uint64_t h = 14695981039346656037ull;
  const auto add = [&](std::string_view text) {
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    h = (h ^ 0xff) * 1099511628211ull;
  };
  for (const auto& [name, value] : items_) {
    add(name);
    add(value.index() == 0 ? "n" : "w");
    add(to_string(value));
  }
  return h;
}

std::string to_string(const Decisions& decisions) {
  std::string text;
  for (const auto& [name, value] : decisions.items()) text += name + " = " + to_string(value) + "\n";
  return text;
}

Json to_json(const Decisions& decisions) {
  Json json = Json::object();
  for (const auto& [name, value] : decisions.items()) std::visit([&](const auto& v) { json[name] = v; }, value);
  return json;
}

Result<Decisions> decisions_from_json(const Json& json) {
  if (!json.is_object() || json.size() > kMostDecisions)
    return Failure{"bad-decisions", "decisions: expected an object of at most " + std::to_string(kMostDecisions) +
                                        " names with numbers and texts"};
  Decisions decisions;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_integer()) decisions.set(name, value.get<int64_t>());
    else if (value.is_string()) decisions.set(name, value.get<std::string>());
    else return Failure{"bad-decisions", "decisions: " + name + ": expected a whole number or a text"};
  }
  return decisions;
}

}  // namespace tensmith
