#include "graph/passes/choose_algorithm.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "graph/op_def.h"
#include "graph/ops/winograd.h"

namespace tensmith::graph {

namespace {

// Figures of both measured kinds of CPU, near enough for a choice (notes/cpu.md sections 1, 4 and 4.1).
// What register tiles reach of the FMA peak: long sums over neighbouring taps, and the short ones of transformed tiles.
constexpr double kDirectShare = 0.92, kProductsShare = 0.85;
// Weights are read once a run. Units: bytes a cycle from beyond L2, on one core.
constexpr double kFarBytes = 4;
// Loading, transforming and storing one vector of a tile, on the way in and on the way out. Units: cycles.
constexpr double kTransformCycles = 7;

int64_t tiles_of(const ConvSize& s, int tile) {
  return s.batch * ((s.rows + tile - 1) / tile) * ((s.columns + tile - 1) / tile);
}

double fma_per_cycle(const ConvSize& s, const Target& target) {
  return static_cast<double>(target.lanes(s.element_bytes)) * target.fma_ports;
}

/// By tiles of so many outputs along an axis, or directly (0), and what that costs.
struct Way {
  int tile;
  double cycles;
};

std::string name_of(const Way& way) {
  const std::string tile = std::to_string(way.tile);
  return way.tile == 0 ? "directly" : "by Winograd tiles of " + tile + " x " + tile;
}

/// `algorithm of 3x3 convolutions 64 to 64 at 1x56x56`: directly or by tiles.
ChoiceSite site_of(const ConvSize& s, size_t by_price) {
  const auto text = [](int64_t extent) { return std::to_string(extent); };
  return {"algorithm of 3x3 convolutions " + text(s.channels) + " to " + text(s.outs) + " at " + text(s.batch) + "x" +
              text(s.rows) + "x" + text(s.columns),
          {"direct", "winograd-2", "winograd-4"},
          by_price};
}

/// `Conv_3: 64 channels to 64 at 56 x 56: by Winograd tiles of 4 x 4, 0.21 Mcycles; directly 0.39; ...`
std::string why(const std::string& node, const ConvSize& s, const std::array<Way, 3>& ways, int taken) {
  std::string line = node + ": " + std::to_string(s.channels) + " channels to " + std::to_string(s.outs) + " at " +
                     std::to_string(s.rows) + " x " + std::to_string(s.columns) + ": ";
  std::string others;
  for (const Way& way : ways) {
    char cost[32];
    std::snprintf(cost, sizeof cost, " %.3g", way.cycles * 1e-6);
    if (way.tile == taken) line += name_of(way) + cost + " million cycles of one core";
    else others += "; " + name_of(way) + cost;
  }
  return line + others;
}

std::optional<ConvSize> size_of(const Rewriter& r, const Node& n) {
  const TensorType& out = n.types[0];
  const Constant* w = r.constant(n.inputs[1]);
  if (out.dtype != kFloat32 || !out.is_static() || !w || w->shape().size() != 4) return std::nullopt;
  if (w->shape()[2] != kWinogradKernel || w->shape()[3] != kWinogradKernel) return std::nullopt;
  if (n.attrs.get_int("group", 1) != 1 || !all_are(n.attrs.get_ints("strides"), 1) ||
      !all_are(n.attrs.get_ints("dilations"), 1) || n.attrs.get_string("auto_pad", "NOTSET") != "NOTSET")
    return std::nullopt;
  const std::vector<int64_t> shape = out.static_shape();
  return ConvSize{shape[0], w->shape()[1], shape[1], shape[2], shape[3], w->dtype().bytes()};
}

}  // namespace

double direct_cycles(const ConvSize& s, const Target& target) {
  const double taps = kWinogradKernel * kWinogradKernel;
  const double weights = taps * static_cast<double>(s.channels * s.outs);
  const double products = weights * static_cast<double>(s.batch * s.rows * s.columns);
  return std::max(products / fma_per_cycle(s, target) / kDirectShare,
                  weights * static_cast<double>(s.element_bytes) / kFarBytes);
}

double winograd_cycles(const ConvSize& s, int tile, const Target& target) {
  const double points = (tile + kWinogradKernel - 1) * (tile + kWinogradKernel - 1);
  const double tiles = static_cast<double>(tiles_of(s, tile));
  const double weights = points * static_cast<double>(s.channels * s.outs);
  const double vectors = points * tiles * static_cast<double>(s.channels + s.outs) / target.lanes(s.element_bytes);
  return std::max(weights * tiles / fma_per_cycle(s, target) / kProductsShare,
                  weights * static_cast<double>(s.element_bytes) / kFarBytes) +
         vectors * kTransformCycles;
}

int choose_algorithm(GraphEditor& edit, const PassOptions& options) {
  if (!options.target || !options.winograd) return 0;
  const Target& target = *options.target;
  Rewriter r(edit);
  int count = 0;
  for (NodeId id : edit.graph().topological_order()) {
    if (!edit.graph().alive(id)) continue;
    const Node& node = edit.graph().node(id);
    if (node.op->name != "Conv" || !node.op->domain.empty()) continue;
    const std::optional<ConvSize> size = size_of(r, node);
    const int lanes = size ? target.lanes(size->element_bytes) : 0;
    if (!size || size->channels < lanes || size->outs < lanes || reaches_output(edit.graph(), id)) continue;
    const std::array<Way, 3> ways = {Way{0, direct_cycles(*size, target)}, Way{2, winograd_cycles(*size, 2, target)},
                                     Way{4, winograd_cycles(*size, 4, target)}};
    // Of ways that cost the same the first, which needs the least memory.
    const auto cheapest =
        std::min_element(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.cycles < b.cycles; });
    const int best = ways[choose(options.choose, site_of(*size, static_cast<size_t>(cheapest - ways.begin())))].tile;
    if (options.explain) options.explain(why(node.name, *size, ways, best));
    if (best == 0) continue;
    AttrMap attrs;
    attrs.set("tile", int64_t{best});
    attrs.set("pads", node.attrs.get_ints("pads", {0, 0, 0, 0}));
    std::vector<Value> inputs = node.inputs;
    inputs[1] = edit.add_constant(winograd_weights(*r.constant(node.inputs[1]), winograd(best)),
                                  edit.graph().value_name(node.inputs[1]) + ".winograd");
    const NodeId made = edit.add(*find_op("WinogradConv", "tensmith"), std::move(inputs), std::move(attrs), node.name);
    if (r.replace(node, {made, 0})) ++count;
  }
  return count;
}

}  // namespace tensmith::graph
