#include "apps/bench/tuning_program/runs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>

namespace tensmith::bench {

std::vector<Trial> run_search(TaskSearch& search, int64_t trials, const CostsOf& costs_of,
                              const std::function<bool(const std::vector<Trial>&)>& until) {
  constexpr int kBatch = 8;
  constexpr size_t kUnderWay = 2;
  std::vector<Trial> made;
  std::deque<std::vector<Proposal>> batches;
  int64_t proposed = 0;
  while (true) {
    while (batches.size() < kUnderWay && proposed < trials) {
      std::vector<Proposal> batch =
          search.propose(static_cast<int>(std::min<int64_t>(batch_size(proposed, kBatch), trials - proposed)));
      if (batch.empty()) break;
      proposed += static_cast<int64_t>(batch.size());
      batches.push_back(std::move(batch));
    }
    if (batches.empty()) return made;
    const std::vector<Proposal> batch = std::move(batches.front());
    batches.pop_front();
    std::vector<const Candidate*> candidates;
    for (const Proposal& proposal : batch) candidates.push_back(proposal.candidate.get());
    const std::vector<double> costs = costs_of(candidates);
    for (size_t k = 0; k < batch.size(); ++k) {
      search.tell(batch[k], costs[k]);
      made.push_back({batch[k].candidate, batch[k].origin, costs[k]});
    }
    if (until && until(made)) return made;
  }
}

std::vector<std::shared_ptr<const Candidate>> best_of(const std::vector<Trial>& trials, size_t count) {
  constexpr size_t kFinalists = 3;
  constexpr double kNearBest = 1.03;
  std::vector<const Trial*> valid;
  for (size_t k = 0; k < std::min(count, trials.size()); ++k)
    if (std::isfinite(trials[k].cost)) valid.push_back(&trials[k]);
  std::stable_sort(valid.begin(), valid.end(), [](const Trial* a, const Trial* b) { return a->cost < b->cost; });
  std::vector<std::shared_ptr<const Candidate>> best;
  for (const Trial* trial : valid)
    if (best.size() < kFinalists && trial->cost <= kNearBest * valid[0]->cost) best.push_back(trial->candidate);
  return best;
}

size_t trials_until(const std::vector<Trial>& trials, double cost) {
  const auto at = std::find_if(trials.begin(), trials.end(), [&](const Trial& trial) { return trial.cost <= cost; });
  return static_cast<size_t>(at - trials.begin()) + 1;
}

Json gains_of(const std::vector<Trial>& trials) {
  Json gains = Json::array();
  double best = 1e300;
  for (size_t k = 0; k < trials.size(); ++k) {
    if (trials[k].cost >= best) continue;
    best = trials[k].cost;
    gains.push_back({k + 1, trials[k].origin, best});
  }
  return gains;
}

}  // namespace tensmith::bench
