#include "apps/bench/tuning_program/finals.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensmith::bench {

namespace {

MeasureResult measure_now(MeasureSession& session, int task, const Candidate& candidate, bool as_incumbent) {
  MeasureCandidate measured;
  measured.steps = candidate.schedule.steps();
  measured.thorough = true;
  measured.make_incumbent = as_incumbent;
  const int64_t id = session.submit(task, std::move(measured));
  while (true)
    if (std::optional<MeasureResult> result = session.wait(5); result && result->id == id) return std::move(*result);
}

}  // namespace

std::map<std::string, Standing> finals(MeasureSession& session, int task, const Candidate& usual,
                                       const std::vector<const Candidate*>& candidates, int rounds) {
  std::map<std::string, const Candidate*> field{{usual.schedule.to_string(), &usual}};
  for (const Candidate* candidate : candidates)
    if (candidate) field[candidate->schedule.to_string()] = candidate;
  std::map<std::string, std::vector<double>> ratios;
  for (int round = 0; round < rounds; ++round) {
    if (!measure_now(session, task, usual, true).valid()) continue;
    for (const auto& [name, candidate] : field) {
      const MeasureResult result = measure_now(session, task, *candidate, false);
      const bool is_compared = result.valid() && result.timing.ratio > 0;
      ratios[name].push_back(is_compared ? result.timing.ratio : std::numeric_limits<double>::infinity());
    }
  }
  std::map<std::string, Standing> standings;
  for (auto& [name, list] : ratios) {
    std::sort(list.begin(), list.end());
    standings[name] = {list[list.size() / 2], list.back() / list.front() - 1};
  }
  return standings;
}

}  // namespace tensmith::bench
