#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/bench/tuning_program/bench_task.h"
#include "apps/bench/tuning_program/parts.h"
#include "apps/bench/tuning_program/runs.h"
#include "autotune/search/carry_over.h"
#include "autotune/search/model_scorer.h"
#include "runtime/base/error.h"

namespace tensmith::bench {

namespace {

/// How a search of the second network starts.
enum class Start : uint8_t {
  kCold,
  kRecords,  ///< as `tune --records`: primed with the first network's samples, and with its best ones as candidates
  kModel,    ///< with the model that was saved and loaded
};

std::vector<Trial> search_once(BenchTask& task, ModelScorer& scorer, int64_t trials, uint64_t seed,
                               const std::vector<KnownGood>& good = {}) {
  constexpr size_t kCarried = 5;
  TaskSearch search(task.space, SearchStrategy::kEvolve, seed, scorer);
  search.suggest(carried_over(task.space, good, kCarried));
  return run_search(search, trials,
                    [&](const std::vector<const Candidate*>& candidates) { return task.costs(candidates, "search"); });
}

}  // namespace

Json warm_start(const PartOptions& options, CostStore& store) {
  constexpr double kReached = 0.95;
  std::vector<CostSample> known;
  std::vector<KnownGood> good;
  for (const std::string& op : options.first) {
    BenchTask task(op, options.threads, store);
    ModelScorer scorer(make_cost_model("blend", 1).value());
    for (const Trial& trial : search_once(task, scorer, options.trials, 1)) {
      if (!std::isfinite(trial.cost)) continue;
      good.push_back({task.task.workload, task.task.request, trial.candidate->decisions, 1 / trial.cost});
      if (Result<CostSample> sample = cost_sample(trial.candidate->schedule, task.task.request, trial.cost))
        known.push_back(std::move(sample).value());
    }
  }
  ModelScorer trained(make_cost_model("blend", 1).value());
  trained.prime(known);
  if (!options.model.empty())
    if (const Result<void> saved = save_cost_model(trained.model(), options.model); !saved)
      throw UserError(saved.failure().id, saved.failure().message);
  Json json;
  json["first"] = options.first;
  json["samples"] = known.size();
  double sums[3] = {};
  for (const std::string& op : options.ops) {
    BenchTask task(op, options.threads, store);
    std::vector<std::vector<Trial>> runs[3];
    for (int seed = 1; seed <= options.seeds; ++seed)
      for (const Start start : {Start::kCold, Start::kRecords, Start::kModel}) {
        if (start == Start::kModel && options.model.empty()) continue;
        const auto number = static_cast<uint64_t>(seed);
        ModelScorer scorer(start == Start::kModel ? load_cost_model(options.model).value()
                                                  : make_cost_model("blend", number).value());
        if (start == Start::kRecords) scorer.prime(known);
        const bool carries = start == Start::kRecords;
        runs[static_cast<size_t>(start)].push_back(
            search_once(task, scorer, options.trials, number, carries ? good : std::vector<KnownGood>()));
      }
    // Short windows are noisy, and of hundreds of candidates the luckiest would be the best: those in front are
    // compared thoroughly, and count by that.
    std::map<std::string, Trial> front;
    for (const auto& kind : runs)
      for (const std::vector<Trial>& run : kind)
        for (const Trial& trial : run)
          if (std::isfinite(trial.cost)) front.emplace(BenchTask::key_of(*trial.candidate), trial);
    std::vector<std::pair<double, const Candidate*>> order;
    for (const auto& [key, trial] : front) order.emplace_back(trial.cost, trial.candidate.get());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    constexpr size_t kCompared = 16;
    order.resize(std::min(order.size(), kCompared));
    std::vector<const Candidate*> field;
    for (const auto& [cost, candidate] : order) field.push_back(candidate);
    task.compare(field, options.rounds);
    const std::string usual = BenchTask::key_of(*task.usual);
    double best = 1;
    for (auto& kind : runs)
      for (std::vector<Trial>& run : kind)
        for (Trial& trial : run) {
          if (!std::isfinite(trial.cost)) continue;
          const std::vector<double>& finals = task.finals(*trial.candidate);
          if (BenchTask::key_of(*trial.candidate) == usual) trial.cost = 1;
          else if (!finals.empty()) trial.cost = median_of(finals);
          // Of what was not compared none is taken to be better than all that was.
          else trial.cost = std::max(trial.cost, order.back().first);
          if (!finals.empty()) best = std::min(best, trial.cost);
        }
    Json entry;
    entry["op"] = op;
    entry["best_to_default"] = best;
    const char* names[] = {"cold", "records", "model"};
    for (size_t k = 0; k < 3; ++k)
      for (const std::vector<Trial>& run : runs[k]) {
        const size_t trials = trials_until(run, best / kReached);
        entry[names[k]].push_back(trials);
        if (trials <= run.size()) entry["by"][names[k]].push_back(run[trials - 1].origin);
        sums[k] += static_cast<double>(trials);
      }
    json["second"].push_back(entry);
  }
  json["warm_to_cold"] = sums[1] / std::max(1.0, sums[0]);
  if (sums[2] > 0) json["model_to_cold"] = sums[2] / std::max(1.0, sums[0]);
  return json;
}

}  // namespace tensmith::bench
