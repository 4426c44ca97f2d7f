/// Arithmetic and movement on the contents of constants, at the speed of memory: for weights of many megabytes.
#pragma once

#include <functional>

#include "graph/constant.h"

namespace tensmith::graph {

/// The content with its axes in another order: output axis k is input axis perm[k].
Constant transpose(const Constant& value, const std::vector<int64_t>& perm);

/// `out[k] = fn(in[k], k)` in the type `dtype`, with the elements as doubles. 64-bit integers lose digits.
Constant map_elements(const Constant& in, DType dtype, const std::function<double(double, int64_t)>& fn);

/// `fn(a, b)` on float32 tensors that broadcast to `shape`, in double with one rounding.
Constant combine_elements(const Constant& a, const Constant& b, const std::vector<int64_t>& shape,
                          const std::function<double(double, double)>& fn);

/// The parts one behind the other along `axis`; types and other extents are the same.
Constant concatenate(const std::vector<const Constant*>& parts, int axis);

}  // namespace tensmith::graph
