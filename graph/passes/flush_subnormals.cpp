#include "graph/passes/flush_subnormals.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

constexpr uint32_t kMagnitude = 0x7fffffff, kSmallestNormal = 0x00800000;
constexpr uint32_t kLargeEnough = (127 - 100) << 23;  // 2^-100

bool is_subnormal(uint32_t bits) { return (bits & kMagnitude) != 0 && (bits & kMagnitude) < kSmallestNormal; }

/// The weights without subnormal elements; nothing when they have none, or nothing else.
std::optional<Constant> flushed(const Constant& weights) {
  if (weights.dtype() != kFloat32) return std::nullopt;
  const auto count = static_cast<size_t>(weights.num_elements());
  const auto* bytes = static_cast<const char*>(weights.data());  // a mapped file need not be aligned
  const auto element = [&](size_t k) {
    uint32_t bits;
    std::memcpy(&bits, bytes + k * sizeof bits, sizeof bits);
    return bits;
  };
  uint32_t any = 0, largest = 0;
  for (size_t k = 0; k < count; ++k) {
    const uint32_t bits = element(k);
    any |= is_subnormal(bits) ? 1 : 0;
    largest = std::max(largest, bits & kMagnitude);
  }
  if (any == 0 || largest < kLargeEnough) return std::nullopt;
  Constant result = Constant::allocate(weights.dtype(), weights.shape());
  auto* out = static_cast<char*>(result.mutable_data());
  for (size_t k = 0; k < count; ++k) {
    const uint32_t bits = element(k), kept = is_subnormal(bits) ? bits & ~kMagnitude : bits;
    std::memcpy(out + k * sizeof kept, &kept, sizeof kept);
  }
  return result;
}

}  // namespace

int flush_subnormals(GraphEditor& edit, const PassOptions&) {
  const Graph& graph = edit.graph();
  std::unordered_map<NodeId, Value> done;  // null value: looked at and left
  int count = 0;
  for (NodeId id : graph.topological_order()) {
    if (!graph.alive(id) || graph.node(id).op->fusion != FusionKind::kContraction) continue;
    for (size_t k = 0; k < graph.node(id).inputs.size(); ++k) {
      const Value input = graph.node(id).inputs[k];
      const Constant* weights = input.given() ? graph.constant(input) : nullptr;
      if (!weights) continue;
      const auto [entry, fresh] = done.try_emplace(input.node);
      if (fresh)
        if (std::optional<Constant> clean = flushed(*weights))
          entry->second = edit.add_constant(*std::move(clean), graph.value_name(input));
      if (!entry->second.given()) continue;
      edit.set_input(id, static_cast<int>(k), entry->second);
      ++count;
    }
  }
  return count;
}

}  // namespace tensmith::graph
