/// Two models weighed by how well each ordered what was measured of late.
#pragma once

#include "autotune/cost_model/cost_model.h"

namespace tensmith {

/// Starts as the first model (the analytic one) and moves to the second one (the learned one) as far as that orders
/// recent measurements better. What a model was trained on would flatter it, so its accuracy is observed on samples
/// that it had not seen: `observe` comes before `fit`.
class BlendCostModel : public CostModel {
 public:
  BlendCostModel(std::unique_ptr<CostModel> first, std::unique_ptr<CostModel> second);

  const char* name() const override { return "blend"; }
  /// Fits both. The weight stays.
  void fit(std::span<const CostSample> samples) override;
  /// Compares both models on samples that were just measured, a round of a search; older rounds fade.
  void observe(std::span<const CostSample> recent);
  std::vector<double> predict(std::span<const KernelFeatures> programs) const override;
  std::string save_text() const override;
  /// Errors: cost-model-damaged.
  static Result<std::unique_ptr<CostModel>> parse(const std::string& text);

  /// Of the second model, in [0, 1].
  double weight() const;
  /// Pairwise accuracies as observed; 0.5 before anything was.
  double first_accuracy() const { return pairs_ > 0 ? first_right_ / pairs_ : 0.5; }
  double second_accuracy() const { return pairs_ > 0 ? second_right_ / pairs_ : 0.5; }

 private:
  std::unique_ptr<CostModel> first_, second_;
  double pairs_ = 0, first_right_ = 0, second_right_ = 0;
};

}  // namespace tensmith
