/// Features of candidates whatever their lowering does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "autotune/cost_model/features.h"
#include "runtime/base/result.h"

namespace tensmith {

/// What a candidate may take; most take a millisecond and next to no memory.
struct FeatureLimits {
  double seconds = 5;  ///< Units: seconds of wall time, of one candidate
  int64_t mib = 2048;  ///< Units: MiB of address space beyond what this process has
};

/// `features(k)` for all k below `count`, in a copy of this process, so that one that does not end, takes all memory or
/// crashes costs nothing but itself: null for these and for those that throw Error. Cost: some milliseconds in all,
/// beside the features.
/// Threads: other threads may go on meanwhile; `features` must not wait for any of them.
/// Errors: worker-start when the system gives no process.
Result<std::vector<std::optional<KernelFeatures>>> guarded_features(
    size_t count, const std::function<KernelFeatures(size_t)>& features, const FeatureLimits& limits = {});

}  // namespace tensmith
