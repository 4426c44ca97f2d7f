#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/bench/tuning_program/parts.h"
#include "apps/bench/tuning_program/runs.h"
#include "autotune/search/model_scorer.h"

namespace tensmith::bench {

namespace {

struct Course {
  std::vector<Trial> trials;
  std::vector<CostSample> samples;
};

Course search_once(const TuningTask& task, CostTable& table, const std::vector<CostSample>& known, int64_t trials,
                   uint64_t seed) {
  const Space space(task.workload, task.request);
  ModelScorer scorer(make_cost_model("blend", seed).value());
  scorer.prime(known);
  TaskSearch search(space, SearchStrategy::kEvolve, seed, scorer);
  Course course{run_search(search, trials, table), {}};
  for (const Trial& trial : course.trials) {
    if (!std::isfinite(trial.cost_us)) continue;
    if (Result<CostSample> sample = cost_sample(trial.candidate->schedule, task.request, trial.cost_us))
      course.samples.push_back(std::move(sample).value());
  }
  return course;
}

/// Trials until the cost is reached; one more than there are when it never is.
size_t trials_until(const std::vector<Trial>& trials, double cost_us) {
  for (size_t k = 0; k < trials.size(); ++k)
    if (trials[k].cost_us <= cost_us) return k + 1;
  return trials.size() + 1;
}

}  // namespace

Json warm_start(const PartOptions& options) {
  constexpr double kReached = 0.95;
  MeasureSession session(session_options());
  const auto table_of = [&](const TuningTask& task) {
    return CostTable(session, session.add_task({task.workload, task.request, false, true, task.cold_bytes, 0}).value());
  };
  std::vector<CostSample> known;
  for (const std::string& op : options.first) {
    const TuningTask task = task_of_op(op, options.threads);
    CostTable table = table_of(task);
    const Course course = search_once(task, table, {}, options.trials, 1);
    known.insert(known.end(), course.samples.begin(), course.samples.end());
  }
  Json json;
  json["first"] = options.first;
  json["samples"] = known.size();
  double cold_trials = 0, warm_trials = 0;
  for (const std::string& op : options.ops) {
    const TuningTask task = task_of_op(op, options.threads);
    CostTable table = table_of(task);
    std::vector<std::vector<Trial>> cold, warm;
    for (int seed = 1; seed <= options.seeds; ++seed) {
      cold.push_back(search_once(task, table, {}, options.trials, static_cast<uint64_t>(seed)).trials);
      warm.push_back(search_once(task, table, known, options.trials, static_cast<uint64_t>(seed)).trials);
    }
    double best = std::numeric_limits<double>::infinity();
    for (const auto* runs : {&cold, &warm})
      for (const std::vector<Trial>& run : *runs)
        for (const Trial& trial : run) best = std::min(best, trial.cost_us);
    Json entry;
    entry["op"] = op;
    for (size_t s = 0; s < cold.size(); ++s) {
      entry["cold"].push_back(trials_until(cold[s], best / kReached));
      entry["warm"].push_back(trials_until(warm[s], best / kReached));
      cold_trials += entry["cold"].back().get<double>();
      warm_trials += entry["warm"].back().get<double>();
    }
    json["second"].push_back(entry);
  }
  json["warm_to_cold"] = warm_trials / std::max(1.0, cold_trials);
  return json;
}

}  // namespace tensmith::bench
