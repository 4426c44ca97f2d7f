/// Candidates ordered by a cost model that learns while they are measured.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "autotune/cost_model/cost_model.h"
#include "autotune/search/scorer.h"

namespace tensmith {

/// Scores by the features of a candidate's loops. Cost: up to a millisecond a candidate; some tenths of a second when
/// the model learns anew, which is after a fifth more samples.
class ModelScorer : public CandidateScorer {
 public:
  explicit ModelScorer(std::unique_ptr<CostModel> model) : model_(std::move(model)) {}

  std::vector<double> score(const Space& space, std::span<const Candidate* const> candidates,
                            std::span<const Decisions* const> learned) override;
  void learn(const Space& space, const Candidate& candidate, double cost_us) override;
  /// Learns from samples of other runs and tasks at once. How far a blend trusts what it learned from the first trial
  /// on is seen by tasks that are left out in turn.
  void prime(std::vector<CostSample> samples);

  /// Learns what the last, incomplete batch held and all that was not learned yet.
  void finish();

  const CostModel& model() const { return *model_; }
  /// What the user has to know: how often candidates were ordered without the model, and why. Empty: nothing.
  std::string note() const;
  /// How often the model ordered two candidates of a batch rightly before it had seen them; 0.5 before any.
  double pairwise_accuracy() const { return pairs_ > 0 ? right_ / pairs_ : 0.5; }
  size_t samples() const { return samples_.size(); }

 private:
  void take_batch();
  void observe_unseen(const std::vector<CostSample>& samples);

  std::unique_ptr<CostModel> model_;
  std::vector<CostSample> samples_, batch_;
  /// By task and decisions: the number among samples and batch.
  std::map<std::string, std::unordered_map<uint64_t, size_t>> numbers_;
  size_t fitted_ = 0;
  int64_t failures_ = 0;
  std::string failure_;
  double pairs_ = 0, right_ = 0;
};

/// A sample of a schedule. Errors: those of lowering.
Result<CostSample> cost_sample(const Schedule& schedule, const ScheduleRequest& request, double us);

}  // namespace tensmith
