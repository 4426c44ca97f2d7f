#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/bench/tuning_program/finals.h"
#include "apps/bench/tuning_program/parts.h"
#include "autotune/search/model_scorer.h"

namespace tensmith::bench {

namespace {

struct Searched {
  SearchStrategy strategy;
  uint64_t seed;
  std::vector<Trial> trials;
};

/// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Json quality(const PartOptions& options) {
  const std::string& op = options.ops.at(0);
  const TuningTask task = task_of_op(op, options.threads);
  const Space space(task.workload, task.request);
  MeasureSession session(session_options());
  const int number_of = session.add_task({task.workload, task.request, false, true, task.cold_bytes, 0}).value();
  CostTable table(session, number_of);
  std::vector<Searched> runs;
  double accuracy = 0;
  for (int seed = 1; seed <= options.seeds; ++seed)
    for (const SearchStrategy strategy : {SearchStrategy::kEvolve, SearchStrategy::kRandom}) {
      ModelScorer learned(make_cost_model("blend", static_cast<uint64_t>(seed)).value());
      PriorScorer prior;
      const bool evolves = strategy == SearchStrategy::kEvolve;
      CandidateScorer& scorer = evolves ? static_cast<CandidateScorer&>(learned) : prior;
      TaskSearch search(space, strategy, static_cast<uint64_t>(seed), scorer);
      runs.push_back({strategy, static_cast<uint64_t>(seed), run_search(search, options.trials, table)});
      if (evolves) accuracy += learned.pairwise_accuracy() / options.seeds;
    }

  std::vector<const Candidate*> field;
  const size_t checkpoints[] = {8, 32, 64, 128};
  for (const Searched& run : runs)
    for (const size_t count : checkpoints)
      for (const auto& candidate : best_of(run.trials, count)) field.push_back(candidate.get());
  const Candidate& usual = *runs.at(0).trials.at(0).candidate;
  const std::map<std::string, Standing> standings = finals(session, number_of, usual, field, options.rounds);
  double best = 1e300, spread = 0;
  for (const auto& [name, standing] : standings)
    if (standing.ratio < best) {
      best = standing.ratio;
      spread = standing.spread;
    }
  // The default's time is 1 by definition; what it measures against itself is noise.
  best = std::min(best, 1.0);

  Json json;
  json["op"] = op;
  json["label"] = task.label;
  json["threads"] = options.threads;
  json["best_to_default"] = best;
  json["spread_of_best"] = number(spread);
  json["default_to_itself"] = number(standings.at(usual.schedule.to_string()).ratio);
  json["measured"] = table.measured();
  json["failed"] = table.failed();
  json["pairwise_accuracy"] = accuracy;
  for (const Searched& run : runs) {
    Json entry;
    entry["search"] = run.strategy == SearchStrategy::kEvolve ? "evolve" : "random";
    entry["seed"] = run.seed;
    entry["trials"] = run.trials.size();
    for (const size_t count : checkpoints) {
      // Nobody keeps what is slower than the default.
      double ratio = 1;
      for (const auto& candidate : best_of(run.trials, count))
        ratio = std::min(ratio, standings.at(candidate->schedule.to_string()).ratio);
      entry["of_best"][std::to_string(count)] = best / ratio;
    }
    std::map<std::string, int> origins;
    double so_far = 1e300;
    for (const Trial& trial : run.trials) {
      if (trial.cost_us < so_far) ++origins[trial.origin];
      so_far = std::min(so_far, trial.cost_us);
    }
    entry["gains_by_origin"] = origins;
    json["runs"].push_back(entry);
  }
  return json;
}

}  // namespace tensmith::bench
