#include "autotune/search/model_scorer.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cmath>
#include <limits>

#include "autotune/cost_model/blend_model.h"
#include "autotune/search/guarded_features.h"

namespace tensmith {

namespace {

// What a batch of one task has to hold before it says something of a model, and by how much the samples grow before it
// learns anew.
constexpr size_t kBatch = 8;
constexpr double kGrowth = 1.2;

/// What learning leaves behind lies in pieces between what lasts; a third of the tuner's memory after some thousand
/// trials.
void give_memory_back() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

std::string task_name(const Workload& workload, const ScheduleRequest& request) {
  return to_text(workload) + "|" + std::to_string(request.threads);
}

}  // namespace

Result<CostSample> cost_sample(const Schedule& schedule, const ScheduleRequest& request, double us) {
  try {
    return CostSample{task_name(schedule.workload(), request), features_of(schedule, request), us};
  } catch (const Error& e) {
    return Failure{e.id(), e.message()};
  }
}

std::vector<double> ModelScorer::score(const Space& space, std::span<const Candidate* const> candidates,
                                       std::span<const Decisions* const> learned) {
  Result<std::vector<std::optional<KernelFeatures>>> guarded = guarded_features(
      candidates.size(), [&](size_t k) { return features_of(candidates[k]->schedule, space.request()); });
  if (!guarded) {
    // The rules' own expectations need no features. Maybe next time.
    failure_ = guarded.failure().message;
    ++failures_;
    return PriorScorer().score(space, candidates, learned);
  }
  std::vector<std::optional<KernelFeatures>> features = std::move(guarded).value();
  std::vector<KernelFeatures> legal;
  for (std::optional<KernelFeatures>& row : features)
    if (row) legal.push_back(std::move(*row));
  const auto its = numbers_.find(task_name(space.workload(), space.request()));
  for (const Decisions* decisions : learned) {
    features.emplace_back();
    if (its == numbers_.end()) continue;
    const auto at = its->second.find(decisions->hash());
    if (at == its->second.end()) continue;
    legal.push_back(
        (at->second < samples_.size() ? samples_[at->second] : batch_[at->second - samples_.size()]).features);
    features.back().emplace();
  }
  const std::vector<double> scores = model_->predict(legal);
  // Of candidates that will be refused none is tried before the others.
  constexpr double kRefused = 1e300;
  std::vector<double> costs;
  size_t next = 0;
  for (size_t k = 0; k < features.size(); ++k) {
    if (features[k]) costs.push_back(std::exp2(-scores[next++]));
    else costs.push_back(k < candidates.size() ? kRefused : std::numeric_limits<double>::quiet_NaN());
  }
  return costs;
}

std::string ModelScorer::note() const {
  if (failures_ == 0) return {};
  return "the cost model was passed over " + std::to_string(failures_) + " times: " + failure_;
}

void ModelScorer::learn(const Space& space, const Candidate& candidate, double cost_us) {
  if (!std::isfinite(cost_us)) return;
  Result<CostSample> sample = cost_sample(candidate.schedule, space.request(), cost_us);
  if (!sample) return;
  if (!batch_.empty() && batch_.front().task != sample->task) take_batch();
  numbers_[sample->task][candidate.decisions.hash()] = samples_.size() + batch_.size();
  batch_.push_back(std::move(sample).value());
  if (batch_.size() >= kBatch) take_batch();
}

void ModelScorer::take_batch() {
  std::vector<KernelFeatures> features;
  for (const CostSample& sample : batch_) features.push_back(sample.features);
  const std::vector<double> scores = model_->predict(features);
  for (size_t a = 0; a < batch_.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      // Times that lie within the noise of each other order nothing.
      constexpr double kApart = 0.05;
      if (std::abs(std::log2(batch_[a].us / batch_[b].us)) < kApart) continue;
      ++pairs_;
      if (scores[a] == scores[b]) right_ += 0.5;
      else right_ += (scores[a] > scores[b]) == (batch_[a].us < batch_[b].us);
    }
  if (auto* blend = dynamic_cast<BlendCostModel*>(model_.get())) blend->observe(batch_);
  for (CostSample& sample : batch_) samples_.push_back(std::move(sample));
  batch_.clear();
  if (static_cast<double>(samples_.size()) < kGrowth * static_cast<double>(fitted_)) return;
  model_->fit(samples_);
  fitted_ = samples_.size();
  give_memory_back();
}

void ModelScorer::finish() {
  if (!batch_.empty()) take_batch();
  if (samples_.size() == fitted_) return;
  model_->fit(samples_);
  fitted_ = samples_.size();
}

void ModelScorer::observe_unseen(const std::vector<CostSample>& samples) {
  auto* blend = dynamic_cast<BlendCostModel*>(model_.get());
  if (!blend) return;
  std::map<std::string, std::vector<CostSample>> tasks;
  for (const CostSample& sample : samples) tasks[sample.task].push_back(sample);
  // Each of some tasks by what the others teach.
  constexpr size_t kJudged = 4;
  if (tasks.size() < 2) return;
  size_t judged = 0;
  for (const auto& [task, its] : tasks) {
    if (its.size() < kBatch) continue;
    if (++judged > kJudged) break;
    std::vector<CostSample> others;
    for (const CostSample& sample : samples)
      if (sample.task != task) others.push_back(sample);
    blend->fit(others);
    blend->observe(its);
  }
}

void ModelScorer::prime(std::vector<CostSample> samples) {
  if (samples.empty()) return;
  if (!batch_.empty()) take_batch();
  observe_unseen(samples);
  samples_.insert(samples_.end(), std::make_move_iterator(samples.begin()), std::make_move_iterator(samples.end()));
  model_->fit(samples_);
  fitted_ = samples_.size();
}

}  // namespace tensmith
