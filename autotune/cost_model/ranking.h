/// How well scores order what was measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autotune/cost_model/cost_model.h"

namespace tensmith {

/// Scores of candidates of one task beside their times; `scores[k]` belongs to `us[k]`.
struct RankedTask {
  std::string task;
  std::vector<double> scores, us;
};

/// Predicts all samples and groups them by task, in the order in which tasks first occur. Samples without a valid time
/// are left out.
std::vector<RankedTask> rank_samples(const CostModel& model, std::span<const CostSample> samples);

/// Share of the pairs of a task that scores order as times do. Pairs whose times differ by less than `tie` (a share)
/// do not count, equal scores count half; 0.5 where no pair counts.
double pairwise_accuracy(const RankedTask& task, double tie = 0.02);
/// Spearman's: 1 when both orders agree, -1 when they are opposite, 0 for constants.
double rank_correlation(const RankedTask& task);
/// Share of the k fastest that are among the k of highest score.
double top_k_recall(const RankedTask& task, size_t k);
/// The best time over the least time among the k of highest score: 1 is best.
double top_k_speed(const RankedTask& task, size_t k);

/// Means over the tasks that have at least two samples.
struct RankQuality {
  double pairwise = 0.5, correlation = 0, recall_8 = 0, top_1 = 0, top_8 = 0;
  int tasks = 0;
};
RankQuality rank_quality(std::span<const RankedTask> tasks);

}  // namespace tensmith
