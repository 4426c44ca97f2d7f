#include "graph/partition/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"

namespace tensmith::graph {

namespace {
constexpr int64_t kMaxArena = int64_t{1} << 46;
}

MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests, int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<int64_t> sizes(requests.size());
  std::map<int, int64_t> change;
  int64_t total = 0;
  for (size_t k = 0; k < requests.size(); ++k) {
    TS_USER_CHECK(requests[k].bytes >= 0 && requests[k].bytes <= kMaxArena &&
                      !__builtin_add_overflow(total, requests[k].bytes, &total) && total <= kMaxArena,
                  "arena-too-large")
        << "memory plan: tensors between kernels need more than " << kMaxArena << " bytes; use smaller dims";
    sizes[k] = (requests[k].bytes + alignment - 1) / alignment * alignment;
    change[requests[k].first] += sizes[k];
    change[requests[k].last + 1] -= sizes[k];
  }
  int64_t live = 0;
  for (const auto& [step, delta] : change) plan.lower_bound = std::max(plan.lower_bound, live += delta);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<size_t> placed;  // sorted by offset
  for (size_t k : order) {
    if (sizes[k] == 0) continue;
    int64_t best = -1, best_gap = INT64_MAX, end = 0;
    for (size_t other : placed) {
      if (requests[other].last < requests[k].first || requests[other].first > requests[k].last) continue;
      const int64_t gap = plan.offsets[other] - end;
      if (gap >= sizes[k] && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, plan.offsets[other] + sizes[other]);
    }
    plan.offsets[k] = best >= 0 ? best : end;
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[k] + sizes[k]);
    placed.insert(std::lower_bound(placed.begin(), placed.end(), k,
                                   [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  k);
  }
  return plan;
}

}  // namespace tensmith::graph
