/// Accuracy of the cost models on samples.
#pragma once

#include <string>
#include <vector>

#include "autotune/cost_model/ranking.h"
#include "runtime/base/json.h"

namespace tensmith::bench {

/// One model on one task that it did not learn from.
struct Judgement {
  std::string model, task;
  RankQuality quality;
  double near_pairwise = 0.5;  ///< among candidates up to twice as slow as the best, which are hard to tell apart
};

/// All models on all tasks: learned ones are trained on the other tasks (in folds), the blend observes the first
/// candidates of a task and is judged on the rest.
std::vector<Judgement> judge_models(const std::vector<CostSample>& samples, uint64_t seed);

/// Of the learned model while a task is tuned: trained on the other tasks and on the first `known` candidates.
double accuracy_with_known(const std::vector<CostSample>& samples, size_t known, uint64_t seed);

Json to_json(const std::vector<Judgement>& judgements);

}  // namespace tensmith::bench
