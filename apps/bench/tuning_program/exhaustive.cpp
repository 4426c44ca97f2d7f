#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/bench/tuning_program/finals.h"
#include "apps/bench/tuning_program/parts.h"
#include "autotune/search/model_scorer.h"

namespace tensmith::bench {

Json exhaustive(const PartOptions& options) {
  constexpr size_t kFinalists = 12;
  constexpr double kClose = 1.02, kShare = 0.05;
  const std::string& op = options.ops.at(0);
  const TuningTask task = task_of_op(op, options.threads);
  const Space space(task.workload, task.request);
  std::vector<std::shared_ptr<const Candidate>> all;
  std::set<std::string> names;
  const bool is_whole = enumerate(space, options.points, [&](const Candidate& candidate) {
    if (names.insert(candidate.schedule.to_string()).second)
      all.push_back(std::make_shared<const Candidate>(candidate));
    return true;
  });
  Json json;
  json["op"] = op;
  json["label"] = task.label;
  json["points"] = all.size();
  json["is_whole"] = is_whole;
  if (!is_whole) return json;

  MeasureSession session(session_options());
  const int number = session.add_task({task.workload, task.request, false, true, task.cold_bytes, 0}).value();
  CostTable table(session, number);
  std::vector<const Candidate*> pointers;
  for (const auto& candidate : all) pointers.push_back(candidate.get());
  // The default first: it is what the others are compared with.
  PreferredChooser preferred;
  const Candidate usual = space.make(preferred).value();
  const double usual_us = table.costs({&usual})[0];
  const std::vector<double> costs = table.costs(pointers);
  std::vector<size_t> order(all.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a] < costs[b]; });
  order.resize(std::min(order.size(), kFinalists));
  std::vector<const Candidate*> field;
  for (const size_t k : order) field.push_back(pointers[k]);
  double best_us = usual_us;
  for (const auto& [name, standing] : finals(session, number, usual, field, options.rounds))
    for (const Candidate* candidate : field) {
      if (candidate->schedule.to_string() != name) continue;
      table.correct(*candidate, standing.ratio * usual_us);
      best_us = std::min(best_us, standing.ratio * usual_us);
    }
  const std::vector<double> corrected = table.costs(pointers);
  int64_t close = 0;
  for (const double cost : corrected) close += cost <= kClose * best_us;
  json["best_to_default"] = best_us / usual_us;
  json["points_within_2_percent"] = close;
  json["failed"] = table.failed();
  const auto budget = static_cast<int64_t>(std::max(1.0, kShare * static_cast<double>(all.size())));
  int found_cheaply = 0;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    ModelScorer scorer(make_cost_model("blend", static_cast<uint64_t>(seed)).value());
    TaskSearch search(space, SearchStrategy::kEvolve, static_cast<uint64_t>(seed), scorer);
    int64_t found_at = -1;
    const std::vector<Trial> trials =
        run_search(search, static_cast<int64_t>(all.size()), table, [&](const std::vector<Trial>& made) {
          for (size_t k = 0; k < made.size() && found_at < 0; ++k)
            if (made[k].cost_us <= kClose * best_us) found_at = static_cast<int64_t>(k) + 1;
          return found_at > 0;
        });
    found_cheaply += found_at > 0 && found_at <= budget;
    json["searches"].push_back({{"seed", seed}, {"found_at", found_at}, {"seen", trials.size()}});
  }
  json["budget"] = budget;
  json["found_within_budget"] = found_cheaply / static_cast<double>(options.seeds);
  return json;
}

}  // namespace tensmith::bench
