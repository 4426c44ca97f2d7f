#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/bench/tuning_program/bench_task.h"
#include "apps/bench/tuning_program/parts.h"
#include "apps/bench/tuning_program/runs.h"
#include "autotune/search/model_scorer.h"

namespace tensmith::bench {

namespace {

constexpr size_t kCheckpoints[] = {8, 32, 64, 128};

struct Searched {
  std::string name;
  uint64_t seed = 0;
  std::vector<Trial> trials;
};

/// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Searched search_once(BenchTask& task, SearchStrategy strategy, uint64_t seed, int64_t trials, double* accuracy) {
  ModelScorer learned(make_cost_model("blend", seed).value());
  PriorScorer prior;
  const bool evolves = strategy == SearchStrategy::kEvolve;
  CandidateScorer& scorer = evolves ? static_cast<CandidateScorer&>(learned) : prior;
  TaskSearch search(task.space, strategy, seed, scorer);
  const auto costs = [&](const std::vector<const Candidate*>& candidates) { return task.costs(candidates, "search"); };
  Searched run{evolves ? "evolve" : "random", seed, run_search(search, trials, costs)};
  if (evolves) *accuracy = learned.pairwise_accuracy();
  return run;
}

/// Candidates of earlier runs that may be the best known: the best few by what is known of them.
std::vector<std::shared_ptr<const Candidate>> best_known(const BenchTask& task, size_t count) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [key, cost] : task.known()) {
    const double ratio = cost.finals.empty() ? cost.ratio : median_of(cost.finals);
    if (ratio > 0 && std::isfinite(ratio)) order.emplace_back(ratio, key);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::shared_ptr<const Candidate>> best;
  for (size_t k = 0; k < order.size() && best.size() < count; ++k)
    if (auto candidate = task.remake(order[k].second, task.known().at(order[k].second))) best.push_back(candidate);
  return best;
}

}  // namespace

Json quality(const PartOptions& options, CostStore& store) {
  BenchTask task(options.ops.at(0), options.threads, store);
  std::vector<Searched> runs;
  double accuracy = 0;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    double its = 0;
    const auto number = static_cast<uint64_t>(seed);
    // Of further seeds only the contest with random search is of interest.
    runs.push_back(search_once(task, SearchStrategy::kEvolve, number,
                               seed == 1 ? options.trials : std::min<int64_t>(64, options.trials), &its));
    accuracy += its / options.seeds;
    runs.push_back(search_once(task, SearchStrategy::kRandom, number, std::min<int64_t>(64, options.trials), &its));
  }
  // Everybody that some run would compare in the end is compared once; what came out best of a run's few is that run's
  // winner, which the rounds behind judge: the luck that chose it says nothing there.
  std::vector<const Candidate*> field;
  std::vector<std::shared_ptr<const Candidate>> alive;
  const auto enter = [&](std::vector<const Candidate*>& list, const std::shared_ptr<const Candidate>& candidate) {
    alive.push_back(candidate);
    list.push_back(candidate.get());
  };
  for (const Searched& run : runs)
    for (const size_t count : kCheckpoints)
      for (const auto& candidate : best_of(run.trials, count)) enter(field, candidate);
  for (const auto& candidate : best_known(task, 4)) enter(field, candidate);
  task.compare(field, 1);
  const auto winner_of = [&](const Searched& run, size_t count) {
    std::shared_ptr<const Candidate> winner = task.usual;
    double least = 1;
    for (const auto& candidate : best_of(run.trials, count)) {
      if (candidate->schedule.to_string() == task.usual->schedule.to_string()) continue;
      const double ratio = task.finals(*candidate).empty() ? 1e300 : task.finals(*candidate)[0];
      if (ratio >= least) continue;
      least = ratio;
      winner = candidate;
    }
    return winner;
  };
  std::vector<const Candidate*> finalists;
  for (const Searched& run : runs)
    for (const size_t count : kCheckpoints) enter(finalists, winner_of(run, count));
  for (const auto& candidate : best_known(task, 3)) enter(finalists, candidate);
  task.compare(finalists, 1 + options.rounds);
  const auto standing = [&](const Candidate& candidate) {
    if (candidate.schedule.to_string() == task.usual->schedule.to_string()) return 1.0;
    return median_of(task.finals(candidate), 1);
  };
  // Not even the best known is slower than the default.
  double best = 1;
  const Candidate* best_candidate = task.usual.get();
  for (const Candidate* candidate : finalists)
    if (standing(*candidate) < best) {
      best = standing(*candidate);
      best_candidate = candidate;
    }

  Json json;
  json["op"] = task.op;
  json["label"] = task.task.label;
  json["threads"] = options.threads;
  json["best_to_default"] = best;
  std::vector<double> of_best;
  if (best < 1) of_best = task.finals(*best_candidate);
  if (of_best.size() > 1)
    json["spread_of_best"] =
        *std::max_element(of_best.begin() + 1, of_best.end()) / *std::min_element(of_best.begin() + 1, of_best.end()) -
        1;
  if (options.itself > 0) json["default_to_itself"] = number(task.default_to_itself());
  json["measured"] = task.measured();
  json["failed"] = task.failed();
  json["pairwise_accuracy"] = accuracy;
  // What differs: where that is much, the default has something to learn.
  for (const ChosenPoint& chosen : best_candidate->points) {
    const ChoiceValue* usual = task.usual->decisions.find(chosen.point.name());
    if (!usual || *usual != chosen.value())
      json["best_decides"][chosen.point.name()] = {usual ? to_string(*usual) : "-", to_string(chosen.value())};
  }
  for (const Searched& run : runs) {
    Json entry;
    entry["search"] = run.name;
    entry["seed"] = run.seed;
    entry["trials"] = run.trials.size();
    // Nobody keeps what is slower than the default.
    for (const size_t count : kCheckpoints)
      entry["of_best"][std::to_string(count)] = best / std::min(1.0, standing(*winner_of(run, count)));
    entry["gains"] = gains_of(run.trials);
    json["runs"].push_back(entry);
  }
  return json;
}

}  // namespace tensmith::bench
