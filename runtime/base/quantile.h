/// Order statistics of sorted samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tensmith {

/// The value below which `share` (0 to 1) of the samples lie, interpolated linearly between ranks. `sorted` is sorted
/// upwards and not empty.
inline double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace tensmith
