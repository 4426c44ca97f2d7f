#include "schedule/step.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "schedule/primitive_def.h"

namespace tensmith {

namespace {

void print_text(std::string& out, const std::string& value, bool in_list) {
  const auto special = [&](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 127 || c == '"' || c == '\\' || (in_list && c == ',');
  };
  if (!value.empty() && std::none_of(value.begin(), value.end(), special)) {
    out += value;
    return;
  }
  out += '"';
  for (char c : value) {
    if (c == '\n') out += "\\n";
    else if (c == '"' || c == '\\') (out += '\\') += c;
    else out += c;
  }
  out += '"';
}

struct Printer {
  std::string& out;
  void operator()(int64_t value) const { out += std::to_string(value); }
  void operator()(const std::string& value) const { print_text(out, value, /*in_list=*/false); }
  void operator()(const std::vector<int64_t>& values) const {
    for (size_t k = 0; k < values.size(); ++k) out += (k ? "," : "") + std::to_string(values[k]);
  }
  void operator()(const std::vector<std::string>& values) const {
    for (size_t k = 0; k < values.size(); ++k) {
      if (k) out += ',';
      print_text(out, values[k], /*in_list=*/true);
    }
  }
};

/// Reads a line from left to right.
struct Cursor {
  std::string_view rest;

  bool skip_blanks() {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r')) rest.remove_prefix(1);
    return !rest.empty();
  }
  std::string until(std::string_view stops) {
    const size_t end = std::min(rest.find_first_of(stops), rest.size());
    std::string word(rest.substr(0, end));
    rest.remove_prefix(end);
    return word;
  }
  /// A plain or quoted text; none when a quote is not closed.
  std::optional<std::string> text(std::string_view stops) {
    if (rest.empty() || rest[0] != '"') return until(stops);
    std::string value;
    for (size_t k = 1; k < rest.size(); ++k) {
      if (rest[k] == '"') {
        rest.remove_prefix(k + 1);
        return value;
      }
      if (rest[k] != '\\') value += rest[k];
      else if (++k < rest.size()) value += rest[k] == 'n' ? '\n' : rest[k];
    }
    return {};
  }
};

std::optional<int64_t> parse_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

constexpr std::string_view kBlanks = " \t\r";

Result<StepArg> parse_arg(Cursor& cursor, const std::string& primitive, const ArgSpec& spec) {
  const auto unclosed = [&] {
    return Failure{"bad-step-text", primitive + ": " + spec.name + ": a quote is not closed"};
  };
  const auto no_number = [&](const std::string& text) {
    return Failure{"bad-step-argument", primitive + ": " + spec.name + ": expected a number, got '" + text + "'"};
  };
  if (spec.kind != ArgKind::kLoops && spec.kind != ArgKind::kNewNames && spec.kind != ArgKind::kInts) {
    const std::optional<std::string> text = cursor.text(kBlanks);
    if (!text) return unclosed();
    if (spec.kind != ArgKind::kInt) return StepArg(*text);
    const std::optional<int64_t> number = parse_number(*text);
    if (!number) return no_number(*text);
    return StepArg(*number);
  }
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  while (!cursor.rest.empty() && kBlanks.find(cursor.rest[0]) == std::string_view::npos) {
    const std::optional<std::string> text = cursor.text(" \t\r,");
    if (!text) return unclosed();
    if (spec.kind == ArgKind::kInts) {
      const std::optional<int64_t> number = parse_number(*text);
      if (!number) return no_number(*text);
      numbers.push_back(*number);
    }
    texts.push_back(*text);
    if (cursor.rest.empty() || cursor.rest[0] != ',') break;
    cursor.rest.remove_prefix(1);
  }
  return spec.kind == ArgKind::kInts ? StepArg(numbers) : StepArg(texts);
}

}  // namespace

std::string to_string(const Step& step) {
  std::string out = step.primitive;
  for (const auto& [name, value] : step.args) {
    out += " " + name + "=";
    std::visit(Printer{out}, value);
  }
  return out;
}

Result<Step> parse_step(std::string_view text) {
  Cursor cursor{text};
  cursor.skip_blanks();
  Step step;
  step.primitive = cursor.until(kBlanks);
  const PrimitiveDef* def = find_primitive(step.primitive);
  if (!def) return unknown_primitive(step.primitive);
  while (cursor.skip_blanks()) {
    const std::string name = cursor.until(" \t\r=");
    if (cursor.rest.empty() || cursor.rest[0] != '=')
      return Failure{"bad-step-text", step.primitive + ": expected name=value, got '" + name + "'"};
    cursor.rest.remove_prefix(1);
    const auto spec =
        std::find_if(def->args.begin(), def->args.end(), [&](const ArgSpec& s) { return name == s.name; });
    if (spec == def->args.end())
      return Failure{"unknown-step-argument", step.primitive + " has no argument '" + name + "'"};
    if (step.find(name)) return Failure{"bad-step-text", step.primitive + ": argument " + name + " stands twice"};
    Result<StepArg> arg = parse_arg(cursor, step.primitive, *spec);
    if (!arg) return arg.failure();
    if (!cursor.rest.empty() && kBlanks.find(cursor.rest[0]) == std::string_view::npos)
      return Failure{"bad-step-text", step.primitive + ": " + name + ": expected a blank behind the value, got '" +
                                          std::string(cursor.rest) + "'"};
    step.args.emplace_back(name, *arg);
  }
  return step;
}

Result<std::vector<Step>> parse_steps(std::string_view text) {
  std::vector<Step> steps;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    Cursor cursor{text.substr(0, end)};
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!cursor.skip_blanks() || cursor.rest[0] == '#') continue;
    Result<Step> step = parse_step(cursor.rest);
    if (!step) return Failure{step.failure().id, "line " + std::to_string(line) + ": " + step.failure().message};
    steps.push_back(*step);
  }
  return steps;
}

}  // namespace tensmith
