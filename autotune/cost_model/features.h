/// Fixed-length rows of numbers for learned cost models.
///
/// They come from the loops before vectorized and unrolled ones are written out (see loop_tree.h). Sizes, counts and
/// cycles are log2(1 + x), shares lie in [0, 1]. No name of a workload, stage or buffer has an influence; nothing is
/// random.
#pragma once

#include <string>
#include <vector>

#include "autotune/cost_model/kernel_facts.h"
#include "autotune/default_schedule.h"

namespace tensmith {

/// The features of a program: one row for each nest (heaviest first, by the analytic model), one for the kernel.
struct KernelFeatures {
  std::vector<float> nests;    ///< Shapes: [nests, nest_feature_names().size()]
  std::vector<float> kernel;   ///< Shapes: [kernel_feature_names().size()]
  double analytic_cycles = 1;  ///< of the analytic model, see analytic_cycles.h; at least 1

  friend bool operator==(const KernelFeatures&, const KernelFeatures&) = default;
};

/// What the columns mean; the count and the order are the schema that models are saved with.
const std::vector<std::string>& nest_feature_names();
const std::vector<std::string>& kernel_feature_names();

KernelFeatures features_of(const KernelFacts& facts);
/// Of a function as `nests_of` gives it. Cost: 0.02 to 0.1 ms.
KernelFeatures features_of(const LoopFunction& nests, const Target& target, int threads);
/// Errors: those of lowering. Cost: 0.1 to 1 ms, nearly all of it lowering.
KernelFeatures features_of(const Schedule& schedule, const ScheduleRequest& request);

}  // namespace tensmith
