/// Places the values between kernels in one arena.
#pragma once

#include <map>
#include <vector>

#include "graph/graph.h"

namespace tensmith::graph {

/// A piece of memory and the steps (inclusive) during which it is in use.
struct MemoryRequest {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< by request. Units: bytes
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  ///< the most that is in use at one step: no plan can need less
};

/// Offsets such that requests that are in use together do not overlap. Greedy by size, best fit. Units: bytes; every
/// offset is a multiple of `alignment`. Errors: UserError `arena-too-large` when sizes add up beyond 2^46.
MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests, int64_t alignment = 64);

}  // namespace tensmith::graph
