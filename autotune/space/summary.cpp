#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autotune/space/space.h"

namespace tensmith {

namespace {

// Random descents for the estimate: its error falls with their root, and a few per cent are enough to see whether a
// space is for counting or for searching.
constexpr int kDescents = 24;

std::string text_of(const ChoiceOption& option) { return to_string(option.value); }

}  // namespace

SpaceSummary space_summary(const Space& space, int64_t limit, uint64_t seed) {
  SpaceSummary summary;
  PreferredChooser preferred;
  if (Result<Candidate> usual = space.make(preferred)) {
    Candidate candidate = std::move(usual).value();
    summary.rules = std::move(candidate.rules);
    summary.points = std::move(candidate.points);
  }
  // A first guess tells whether counting can end; else its time is better spent on the estimate.
  Rng rng(seed, "space-summary");
  double sum = 0;
  int descents = 0;
  for (int k = 0; k < kDescents; ++k) {
    // Knuth: the product of the branching factors along a uniform descent is an unbiased estimate of the leaves.
    const Result<Candidate> drawn = sample(space, rng, Draw::kUniform);
    if (!drawn) continue;
    double product = 1;
    for (const ChosenPoint& chosen : drawn.value().points) product *= static_cast<double>(chosen.point.options.size());
    sum += product;
    ++descents;
  }
  summary.estimate = descents > 0 ? sum / descents : 0;
  const int64_t count = summary.estimate > 16.0 * static_cast<double>(limit) ? limit / 16 : limit;
  summary.exact = enumerate(space, count, [&](const Candidate&) {
    ++summary.least;
    return true;
  });
  if (summary.exact) summary.estimate = static_cast<double>(summary.least);
  return summary;
}

std::string to_string(const SpaceSummary& summary) {
  std::ostringstream out;
  out << "rules:";
  for (const std::string& rule : summary.rules) out << " " << rule << ";";
  out << "\n";
  for (const ChosenPoint& chosen : summary.points) {
    out << "  " << chosen.point.name() << ":";
    for (size_t k = 0; k < chosen.point.options.size(); ++k)
      out << (k == chosen.taken ? " [" : " ") << text_of(chosen.point.options[k]) << (k == chosen.taken ? "]" : "");
    out << "\n";
  }
  out << "size: " << summary.points.size() << " decisions, ";
  if (summary.exact) out << summary.least << " schedules\n";
  else out << "at least " << summary.least << " schedules, about " << summary.estimate << "\n";
  return out.str();
}

Json to_json(const SpaceSummary& summary) {
  Json json;
  json["rules"] = summary.rules;
  json["decisions"] = Json::array();
  for (const ChosenPoint& chosen : summary.points) {
    Json options = Json::array();
    for (const ChoiceOption& option : chosen.point.options)
      std::visit([&](const auto& value) { options.push_back(value); }, option.value);
    Json item;
    item["name"] = chosen.point.name();
    item["options"] = options;
    item["default"] = options[chosen.taken];
    json["decisions"].push_back(item);
  }
  json["exact"] = summary.exact;
  json["at_least"] = summary.least;
  json["estimate"] = summary.estimate;
  return json;
}

}  // namespace tensmith
