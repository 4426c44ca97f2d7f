#include "autotune/cost_model/simple_models.h"

#include <cmath>
#include <cstring>

#include "runtime/base/rng.h"

namespace tensmith {

std::vector<double> AnalyticCostModel::predict(std::span<const KernelFeatures> programs) const {
  std::vector<double> scores;
  scores.reserve(programs.size());
  for (const KernelFeatures& program : programs) scores.push_back(-std::log2(program.analytic_cycles));
  return scores;
}

std::vector<double> RandomCostModel::predict(std::span<const KernelFeatures> programs) const {
  std::vector<double> scores;
  for (const KernelFeatures& program : programs) {
    uint64_t state = seed_;
    for (const auto* row : {&program.kernel, &program.nests})
      for (float value : *row) {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        state ^= bits;
        state = splitmix64(state);
      }
    scores.push_back(Rng(state).uniform());
  }
  return scores;
}

}  // namespace tensmith
