#include "graph/partition/layout_price.h"

#include <algorithm>

#include "graph/cost.h"

namespace tensmith::graph {

namespace {

// What a symbolic dim counts as.
constexpr int64_t kSymbolicExtent = 64;

int64_t size_of(const Expr& dim) {
  int64_t extent;
  return as_const_int(dim, &extent) ? extent : kSymbolicExtent;
}

double bytes(const TensorType& type) {
  return count_elements(type, kSymbolicExtent) * static_cast<double>(type.dtype.bytes());
}

/// How much longer a loop over the channels is when they come in whole pieces.
double filled(int64_t channels, int64_t piece) {
  return static_cast<double>((channels + piece - 1) / piece * piece) /
         static_cast<double>(std::max<int64_t>(channels, 1));
}

// Units: bytes a cycle, for data that come from L2: reading and writing along memory, and element by element across.
constexpr double kAlong = 16, kAcross = 4;

/// The share of the peak that products reach with today's schedules. Source: notes/cpu.md sections 2.3 and 12 for 16
/// registers; for 32 the kernels of ResNet-50 and DenseNet-121 in both layouts, one thread, minima on an AVX-512 core:
/// 3x3 products 0.92 and deep 1x1 products 0.78 of the speed of channels last, whole models 0.975 and 0.98.
double efficiency(const TensorType& data, ChannelForm form, const Target& target) {
  const int64_t channels = size_of(data.shape[1]), element = data.dtype.bytes();
  const bool many_registers = target.vector_registers > 16;
  if (form.block == 0) {
    // Places that lie a multiple of 4 KiB apart fall into the same sets of L1: tiles must have few rows.
    const bool conflict = channels * element % 4096 == 0;
    return conflict && many_registers ? 0.94 : 0.96;
  }
  // Short pieces at a long stride: deep layers walk through many blocks that lie a whole image apart.
  constexpr int64_t kManyBlocks = 32;
  const int64_t blocks = (channels + form.block - 1) / form.block;
  const bool spatial = data.rank() > 2 && size_of(data.shape.back()) > 1;
  if (blocks >= kManyBlocks && spatial) return many_registers ? 0.75 : 0.8;
  return many_registers ? 0.89 : 0.93;
}

}  // namespace

double price_of_node(const Graph& graph, const Node& node, ChannelForm form, const Target& target) {
  const TensorType& out = node.types[0];
  const int64_t lanes = std::max(1, target.lanes(std::max<int64_t>(out.dtype.bytes(), 4)));
  const int64_t piece = form.block == 0 ? lanes : form.block;
  double moved = 0;
  for (const TensorType& type : node.types)
    if (type.rank() > 2) moved += bytes(type) * (form.block == 0 ? 1 : filled(size_of(type.shape[1]), form.block));
  for (const Value& input : node.inputs)
    if (input.given() && !graph.constant(input)) {
      const TensorType& type = graph.type(input);
      moved += bytes(type) * (form.block == 0 || type.rank() < 3 ? 1 : filled(size_of(type.shape[1]), form.block));
    }
  if (node.op->fusion != FusionKind::kContraction) {
    // Where pieces of channels are joined or taken apart, blocks that are not full end up inside of others.
    bool cut = false;
    if (node.op->fusion == FusionKind::kInjective && form.block != 0) {
      for (const TensorType& type : node.types) cut |= type.rank() > 2 && size_of(type.shape[1]) % form.block != 0;
      for (const Value& input : node.inputs)
        if (input.given() && !graph.constant(input) && graph.type(input).rank() > 2)
          cut |= size_of(graph.type(input).shape[1]) % form.block != 0;
    }
    return moved / (cut ? kAcross : kAlong);
  }
  const TensorType& data = graph.type(node.inputs[0]);
  // With one channel a group the vector runs over the group's channels alone.
  const int64_t depth = size_of(data.shape[1]) / std::max<int64_t>(1, node.attrs.get_int("group", 1));
  double work =
      flops_of(graph, node, kSymbolicExtent) / (2.0 * static_cast<double>(lanes * std::max(1, target.fma_ports)));
  work *= filled(size_of(out.shape[1]), piece);
  if (depth <= 1) return std::max(work, moved / kAlong);
  const bool stored = !graph.node(node.inputs[0].node).op->is_source;
  if (form.block != 0 && stored) work *= filled(depth, form.block);
  return std::max(work / efficiency(data, stored ? form : ChannelForm{}, target), moved / kAlong);
}

double price_of_conversion(const TensorType& type, ChannelForm form) {
  return 2 * bytes(type) * (form.block == 0 ? 1 : filled(size_of(type.shape[1]), form.block)) / kAcross;
}

}  // namespace tensmith::graph
