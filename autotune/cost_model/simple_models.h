/// Cost models that learn nothing.
#pragma once

#include "autotune/cost_model/cost_model.h"

namespace tensmith {

/// The closed form of analytic_cycles.h.
class AnalyticCostModel : public CostModel {
 public:
  const char* name() const override { return "analytic"; }
  void fit(std::span<const CostSample>) override {}
  std::vector<double> predict(std::span<const KernelFeatures> programs) const override;
  std::string save_text() const override { return {}; }
};

/// For comparison: scores that have nothing to do with speed, the same for the same features and seed.
class RandomCostModel : public CostModel {
 public:
  explicit RandomCostModel(uint64_t seed) : seed_(seed) {}
  const char* name() const override { return "random"; }
  void fit(std::span<const CostSample>) override {}
  std::vector<double> predict(std::span<const KernelFeatures> programs) const override;
  std::string save_text() const override { return std::to_string(seed_); }

 private:
  uint64_t seed_;
};

}  // namespace tensmith
