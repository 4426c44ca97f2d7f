#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/bench/tuning_program/bench_task.h"
#include "apps/bench/tuning_program/parts.h"
#include "apps/bench/tuning_program/runs.h"
#include "autotune/search/model_scorer.h"

namespace tensmith::bench {

namespace {

using Candidates = std::vector<std::shared_ptr<const Candidate>>;

/// All schedules of the space; none when it has more points than the limit.
Candidates all_of(const Space& space, int64_t limit) {
  Candidates all;
  std::set<std::string> names;
  const bool is_whole = enumerate(space, limit, [&](const Candidate& candidate) {
    if (names.insert(BenchTask::key_of(candidate)).second) all.push_back(std::make_shared<const Candidate>(candidate));
    return true;
  });
  return is_whole ? all : Candidates();
}

/// Opens the decisions of the default one after the other, in the order in which the rules ask, as long as the space
/// stays small enough to be measured whole.
std::vector<std::string> open_decisions(const BenchTask& task, int64_t limit) {
  std::vector<std::string> open;
  double size = 1;
  for (const ChosenPoint& chosen : task.usual->points) {
    const double larger = size * static_cast<double>(chosen.point.options.size());
    if (larger > static_cast<double>(limit)) continue;
    size = larger;
    open.push_back(chosen.point.name());
  }
  // Other answers may lead to further questions under these names.
  while (!open.empty() && all_of(task.space.restricted(open), limit).empty()) open.pop_back();
  return open;
}

}  // namespace

Json exhaustive(const PartOptions& options, CostStore& store) {
  constexpr size_t kFinalists = 12;
  constexpr double kClose = 1.02, kShare = 0.05;
  BenchTask task(options.ops.at(0), options.threads, store);
  const std::vector<std::string> open = open_decisions(task, options.points);
  const Space space = task.space.restricted(open);
  const Candidates all = all_of(space, options.points);
  Json json;
  json["op"] = task.op;
  json["label"] = task.task.label;
  json["open"] = open;
  json["points"] = all.size();
  std::vector<const Candidate*> pointers;
  for (const auto& candidate : all) pointers.push_back(candidate.get());
  std::vector<double> costs = task.costs(pointers, "space");
  // The table is noisy, and of many points the luckiest are in front: those in front are compared thoroughly.
  std::vector<size_t> order(all.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a] < costs[b]; });
  order.resize(std::min(order.size(), kFinalists));
  std::vector<const Candidate*> field;
  for (const size_t k : order) field.push_back(pointers[k]);
  task.compare(field, options.rounds);
  std::map<std::string, double> table;
  for (size_t k = 0; k < all.size(); ++k) table[BenchTask::key_of(*all[k])] = costs[k];
  double best = 1;
  const std::string usual = BenchTask::key_of(*task.usual);
  for (const Candidate* candidate : field) {
    const std::string key = BenchTask::key_of(*candidate);
    if (key != usual) table[key] = median_of(task.finals(*candidate));
    best = std::min(best, table[key]);
  }
  table[usual] = 1;
  int64_t close = 0;
  for (const auto& [key, cost] : table) close += cost <= kClose * best;
  json["best_to_default"] = best;
  json["points_within_2_percent"] = close;
  json["measured"] = task.measured();
  json["failed"] = task.failed();
  const auto budget = static_cast<int64_t>(std::max(1.0, kShare * static_cast<double>(all.size())));
  int found_cheaply = 0;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    ModelScorer scorer(make_cost_model("blend", static_cast<uint64_t>(seed)).value());
    TaskSearch search(space, SearchStrategy::kEvolve, static_cast<uint64_t>(seed), scorer);
    const auto look_up = [&](const std::vector<const Candidate*>& candidates) {
      std::vector<double> found;
      for (const Candidate* candidate : candidates) found.push_back(table.at(BenchTask::key_of(*candidate)));
      return found;
    };
    constexpr int64_t kLookedAt = 64;
    const int64_t most = std::min<int64_t>(static_cast<int64_t>(all.size()), std::max(kLookedAt, budget));
    const std::vector<Trial> trials = run_search(search, most, look_up);
    const auto found_at = static_cast<int64_t>(trials_until(trials, kClose * best));
    const auto after = [&](int64_t count) {
      double least = 1e300;
      for (size_t k = 0; k < trials.size() && static_cast<int64_t>(k) < count; ++k)
        least = std::min(least, trials[k].cost);
      return best / least;
    };
    found_cheaply += found_at <= budget;
    Json entry{{"seed", seed}, {"found_at", found_at}, {"after_budget", after(budget)}};
    for (const int64_t count : {8, 16, 32, 64}) entry["after"][std::to_string(count)] = after(count);
    json["searches"].push_back(std::move(entry));
  }
  json["budget"] = budget;
  json["found_within_budget"] = found_cheaply / static_cast<double>(options.seeds);
  return json;
}

}  // namespace tensmith::bench
