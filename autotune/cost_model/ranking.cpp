#include "autotune/cost_model/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace tensmith {

namespace {

/// Indices of a list from the highest value to the lowest; equal ones in their order.
std::vector<size_t> descending(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

/// Ranks from 0 on; equal values share their mean.
std::vector<double> ranks_of(const std::vector<double>& values) {
  const std::vector<size_t> order = descending(values);
  std::vector<double> ranks(values.size());
  for (size_t k = 0; k < order.size();) {
    size_t end = k + 1;
    while (end < order.size() && values[order[end]] == values[order[k]]) ++end;
    for (size_t j = k; j < end; ++j) ranks[order[j]] = static_cast<double>(k + end - 1) / 2;
    k = end;
  }
  return ranks;
}

}  // namespace

std::vector<RankedTask> rank_samples(const CostModel& model, std::span<const CostSample> samples) {
  std::vector<KernelFeatures> programs;
  std::vector<const CostSample*> kept;
  for (const CostSample& sample : samples) {
    if (!(sample.us > 0) || !std::isfinite(sample.us)) continue;
    programs.push_back(sample.features);
    kept.push_back(&sample);
  }
  const std::vector<double> scores = model.predict(programs);
  std::vector<RankedTask> tasks;
  std::unordered_map<std::string, size_t> numbers;
  for (size_t k = 0; k < kept.size(); ++k) {
    const auto [entry, fresh] = numbers.try_emplace(kept[k]->task, tasks.size());
    if (fresh) tasks.push_back({kept[k]->task, {}, {}});
    tasks[entry->second].scores.push_back(scores[k]);
    tasks[entry->second].us.push_back(kept[k]->us);
  }
  return tasks;
}

double pairwise_accuracy(const RankedTask& task, double tie) {
  double right = 0, pairs = 0;
  for (size_t a = 0; a < task.us.size(); ++a)
    for (size_t b = a + 1; b < task.us.size(); ++b) {
      const double low = std::min(task.us[a], task.us[b]), high = std::max(task.us[a], task.us[b]);
      if (high == low || high < low * (1 + tie)) continue;
      pairs += 1;
      if (task.scores[a] == task.scores[b]) right += 0.5;
      else right += (task.scores[a] > task.scores[b]) == (task.us[a] < task.us[b]);
    }
  return pairs > 0 ? right / pairs : 0.5;
}

double rank_correlation(const RankedTask& task) {
  std::vector<double> speed;
  for (double us : task.us) speed.push_back(-us);
  const std::vector<double> a = ranks_of(task.scores), b = ranks_of(speed);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    ab += (a[k] - mean) * (b[k] - mean);
    aa += (a[k] - mean) * (a[k] - mean);
    bb += (b[k] - mean) * (b[k] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double top_k_recall(const RankedTask& task, size_t k) {
  k = std::min(k, task.us.size());
  if (k == 0) return 0;
  std::vector<double> speed;
  for (double us : task.us) speed.push_back(-us);
  std::vector<size_t> fastest = descending(speed), chosen = descending(task.scores);
  fastest.resize(k);
  chosen.resize(k);
  size_t both = 0;
  for (size_t c : chosen) both += std::find(fastest.begin(), fastest.end(), c) != fastest.end();
  return static_cast<double>(both) / static_cast<double>(k);
}

double top_k_speed(const RankedTask& task, size_t k) {
  k = std::min(k, task.us.size());
  if (k == 0) return 0;
  const std::vector<size_t> chosen = descending(task.scores);
  double best = task.us[chosen[0]];
  for (size_t c = 0; c < k; ++c) best = std::min(best, task.us[chosen[c]]);
  return *std::min_element(task.us.begin(), task.us.end()) / best;
}

RankQuality rank_quality(std::span<const RankedTask> tasks) {
  RankQuality sum;
  sum.pairwise = 0;
  for (const RankedTask& task : tasks) {
    if (task.us.size() < 2) continue;
    sum.pairwise += pairwise_accuracy(task);
    sum.correlation += rank_correlation(task);
    sum.recall_8 += top_k_recall(task, 8);
    sum.top_1 += top_k_speed(task, 1);
    sum.top_8 += top_k_speed(task, 8);
    ++sum.tasks;
  }
  if (sum.tasks == 0) return {};
  for (double* mean : {&sum.pairwise, &sum.correlation, &sum.recall_8, &sum.top_1, &sum.top_8}) *mean /= sum.tasks;
  return sum;
}

}  // namespace tensmith
