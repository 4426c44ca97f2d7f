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

/// A part of a space that can be measured whole.
struct Part {
  std::vector<std::string> open;
  Candidates all;
};

/// Opens the decisions of the default one after the other, in the order in which the rules ask, as long as their
/// options multiply to no more than `product`. Empty when that makes more schedules than the limit; not counted when
/// it is the part with the decisions `known`.
Part part_of(const BenchTask& task, double product, int64_t limit, const std::vector<std::string>& known) {
  Part part;
  double size = 1;
  for (const ChosenPoint& chosen : task.usual->points) {
    const double larger = size * static_cast<double>(chosen.point.options.size());
    if (larger > product) continue;
    size = larger;
    part.open.push_back(chosen.point.name());
  }
  if (part.open == known) return part;
  // Other answers may lead to further questions under these names, and many answers to the same schedule.
  constexpr int64_t kPathsToASchedule = 4;
  part.all = all_of(task.space.restricted(part.open), kPathsToASchedule * limit);
  if (static_cast<int64_t>(part.all.size()) > limit) part.all.clear();
  return part;
}

/// The largest part of up to `limit` schedules among those that open more and more decisions.
Part largest_part(const BenchTask& task, int64_t limit) {
  Part largest;
  std::vector<std::string> before;
  for (double product = static_cast<double>(limit) / 2; product <= 64.0 * static_cast<double>(limit); product *= 2) {
    Part part = part_of(task, product, limit, before);
    if (part.open == before) continue;
    before = part.open;
    // More decisions make it larger still.
    if (part.all.empty() && !largest.all.empty()) break;
    if (part.all.size() > largest.all.size()) largest = std::move(part);
  }
  return largest;
}

/// Units: share of a cost. How far the median of so many comparisons is off, by how far they are from each other.
double standard_error(const BenchTask& task, const std::vector<const Candidate*>& field) {
  std::vector<double> errors;
  for (const Candidate* candidate : field) {
    const std::vector<double>& finals = task.finals(*candidate);
    if (finals.size() < 2) continue;
    const auto n = static_cast<double>(finals.size());
    double sum = 0, squares = 0;
    for (const double ratio : finals) {
      sum += std::log(ratio);
      squares += std::log(ratio) * std::log(ratio);
    }
    // A median is a quarter less sure than a mean.
    const double spread = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
    if (std::isfinite(spread)) errors.push_back(1.25 * spread / std::sqrt(n));
  }
  return errors.empty() ? 0 : median_of(errors);
}

}  // namespace

Json exhaustive(const PartOptions& options, CostStore& store) {
  constexpr size_t kFinalists = 16;
  constexpr double kClose = 1.02, kShare = 0.05;
  BenchTask task(options.ops.at(0), options.threads, store);
  const Part part = largest_part(task, options.points);
  const Space space = task.space.restricted(part.open);
  const Candidates& all = part.all;
  Json json;
  json["op"] = task.op;
  json["label"] = task.task.label;
  json["open"] = part.open;
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
  const std::string usual = BenchTask::key_of(*task.usual);
  std::map<std::string, double> thorough;
  std::vector<double> scales;
  for (const size_t k : order) {
    const std::string key = BenchTask::key_of(*all[k]);
    const double ratio = key == usual ? 1 : median_of(task.finals(*all[k]));
    thorough[key] = ratio;
    if (std::isfinite(ratio / costs[k])) scales.push_back(ratio / costs[k]);
  }
  // Short windows and thorough comparisons differ by what the clock was when the default was measured.
  const double scale = scales.empty() ? 1 : median_of(scales);
  std::map<std::string, double> table;
  for (size_t k = 0; k < all.size(); ++k) table[BenchTask::key_of(*all[k])] = scale * costs[k];
  double best = 1;
  for (const auto& [key, ratio] : thorough) {
    table[key] = ratio;
    best = std::min(best, ratio);
  }
  table[usual] = 1;
  int64_t close = 0;
  for (const auto& [key, cost] : table) close += cost <= kClose * best;
  // The best of many that are alike is the luckiest of them.
  const double noise = standard_error(task, field);
  json["standard_error"] = noise;
  json["best_to_default"] = best;
  json["points_within_2_percent"] = close;
  json["measured"] = task.measured();
  json["failed"] = task.failed();
  const auto budget = static_cast<int64_t>(std::max(1.0, kShare * static_cast<double>(all.size())));
  int found_cheaply = 0, found_in_noise = 0;
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
    const auto alike_at = static_cast<int64_t>(trials_until(trials, (kClose + noise) * best));
    found_cheaply += found_at <= budget;
    found_in_noise += alike_at <= budget;
    Json entry{{"seed", seed}, {"found_at", found_at}, {"alike_at", alike_at}, {"after_budget", after(budget)}};
    entry["gains"] = gains_of(trials);
    for (const int64_t count : {8, 16, 32, 64}) entry["after"][std::to_string(count)] = after(count);
    json["searches"].push_back(std::move(entry));
  }
  json["budget"] = budget;
  json["found_within_budget"] = found_cheaply / static_cast<double>(options.seeds);
  json["found_beyond_noise"] = found_in_noise / static_cast<double>(options.seeds);
  return json;
}

}  // namespace tensmith::bench
