#include "graph/passes/split_phases.h"

#include <algorithm>

#include "graph/element.h"
#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

/// One dim: output position `i stride + phase` is met by inputs `i + first ... i + first + taps - 1`, the last of them
/// through weight tap `tap`, the one before through `tap + stride` and so on.
struct Phase {
  int64_t first = 0, taps = 0, tap = 0;
};

/// The inputs of several phases in one dim.
struct Reach {
  int64_t low = 0, high = -1;
  int64_t taps() const { return high - low + 1; }
};

/// One transposed convolution: W [C, O / g, kernel...], output positions 0 .. out - 1 of each dim.
struct Transposed {
  int64_t group = 1, channels = 1, outs = 1;  ///< outs: of all groups
  std::vector<int64_t> kernel, stride, in, out;
  std::vector<std::vector<Phase>> phases;  ///< by dim, then phase
  int64_t count = 1;                       ///< phases of all dims together

  /// The phase of each dim, the last one fastest.
  std::vector<int64_t> split(int64_t phase) const {
    std::vector<int64_t> parts(stride.size());
    for (size_t d = stride.size(); d-- > 0; phase /= stride[d]) parts[d] = phase % stride[d];
    return parts;
  }
  std::vector<Reach> reach(int64_t phase) const {
    std::vector<Reach> reaches;
    const std::vector<int64_t> parts = split(phase);
    for (size_t d = 0; d < stride.size(); ++d) {
      const Phase& p = phases[d][static_cast<size_t>(parts[d])];
      reaches.push_back({p.first, p.first + p.taps - 1});
    }
    return reaches;
  }
};

std::optional<Transposed> read(const Rewriter& r, const Node& n) {
  const TensorType &x = r.type(n.inputs[0]), &y = n.types[0];
  const Constant* w = r.constant(n.inputs[1]);
  if (!w || !w->dtype().is_float() || !x.is_static() || !y.is_static()) return std::nullopt;
  const size_t rank = w->shape().size() - 2;
  Transposed t;
  t.group = n.attrs.get_int("group", 1);
  t.channels = w->shape()[0];
  t.outs = w->shape()[1] * t.group;
  t.kernel.assign(w->shape().begin() + 2, w->shape().end());
  t.stride = n.attrs.get_ints("strides", std::vector<int64_t>(rank, 1));
  for (const int64_t dilation : n.attrs.get_ints("dilations"))
    if (dilation != 1) return std::nullopt;
  // What auto_pad and output_shape cut off in front stands in no attribute.
  if (n.attrs.get_string("auto_pad", "NOTSET") != "NOTSET" || !n.attrs.get_ints("output_shape").empty())
    return std::nullopt;
  const std::vector<int64_t> pads = n.attrs.get_ints("pads", std::vector<int64_t>(2 * rank, 0));
  const std::vector<int64_t> in = x.static_shape(), out = y.static_shape();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = t.stride[d];
    t.in.push_back(in[2 + d]), t.out.push_back(out[2 + d]);
    t.count *= stride;
    std::vector<Phase> phases;
    for (int64_t phase = 0; phase < stride; ++phase) {
      const int64_t at = phase + pads[d], tap = at % stride;
      const int64_t taps = (t.kernel[d] - tap + stride - 1) / stride;
      if (tap >= t.kernel[d]) return std::nullopt;  // nothing meets these positions
      phases.push_back({at / stride - (taps - 1), taps, tap});
    }
    t.phases.push_back(std::move(phases));
    if (t.out.back() < 1 || t.in.back() < 1) return std::nullopt;
  }
  // Beyond that the pieces cost more than they spare.
  constexpr int64_t kMostPhases = 64;
  if (t.count > kMostPhases || t.outs < 1 || t.channels < 1) return std::nullopt;
  return t;
}

std::vector<Reach> join(std::vector<Reach> a, const std::vector<Reach>& b) {
  for (size_t d = 0; d < a.size(); ++d) a[d] = {std::min(a[d].low, b[d].low), std::max(a[d].high, b[d].high)};
  return a;
}

/// Phases [begin, end) in one convolution.
struct Piece {
  int64_t begin = 0, end = 0;
  std::vector<Reach> reach;
};

/// Units: multiply-adds of vectors for each place and input channel.
double cost(const Transposed& t, const Piece& piece, int lanes) {
  // A product with so few results fills no vector of its own; results of groups are computed one group at a time.
  const int64_t columns = (piece.end - piece.begin) * t.outs / t.group;
  double work = static_cast<double>((columns + lanes - 1) / lanes) * static_cast<double>(t.group);
  for (const Reach& reach : piece.reach) work *= static_cast<double>(reach.taps());
  return work;
}

/// Neighbouring phases together where that is no dearer.
std::vector<Piece> pieces_of(const Transposed& t, int lanes) {
  // A kernel of its own and another sweep over the data. Units: of its work.
  constexpr double kOwnKernel = 1.1;
  std::vector<Piece> pieces;
  for (int64_t phase = 0; phase < t.count; ++phase) pieces.push_back({phase, phase + 1, t.reach(phase)});
  if (t.group > 1) return pieces;  // results of one group would not lie side by side
  const auto merge = [&](size_t first, size_t count) {
    Piece all = pieces[first];
    double apart = 0;
    for (size_t k = first; k < first + count; ++k) {
      all.reach = join(all.reach, pieces[k].reach);
      all.end = pieces[k].end;
      apart += cost(t, pieces[k], lanes) * kOwnKernel;
    }
    if (cost(t, all, lanes) > apart) return false;
    pieces[first] = all;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                 pieces.begin() + static_cast<std::ptrdiff_t>(first + count));
    return true;
  };
  if (merge(0, pieces.size())) return pieces;
  for (size_t k = 0; k + 1 < pieces.size();)
    if (!merge(k, 2)) ++k;
  return pieces;
}

/// The weights of a piece: [phases x O, C / g, taps...].
Constant weights_of(const Transposed& t, const Piece& piece, const Constant& w) {
  const size_t rank = t.stride.size();
  const int64_t per_group = t.channels / t.group, group_outs = t.outs / t.group;
  std::vector<int64_t> shape{(piece.end - piece.begin) * t.outs, per_group};
  int64_t taps = 1, kernel = 1;
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back(piece.reach[d].taps());
    taps *= shape.back();
    kernel *= t.kernel[d];
  }
  Constant result = Constant::allocate(w.dtype(), shape);
  with_element_type(w.dtype(), [&]<typename E>(E) {
    using Stored = typename E::Stored;
    auto* to = static_cast<Stored*>(result.mutable_data());
    const auto* from = static_cast<const Stored*>(w.data());
    const Stored zero = E::from_float(0);
    for (int64_t phase = piece.begin; phase < piece.end; ++phase) {
      const std::vector<int64_t> parts = t.split(phase);
      for (int64_t o = 0; o < t.outs; ++o)
        for (int64_t c = 0; c < per_group; ++c) {
          const Stored* all = from + ((o / group_outs * per_group + c) * group_outs + o % group_outs) * kernel;
          for (int64_t k = 0; k < taps; ++k, ++to) {
            int64_t at = 0, left = k, step = taps;
            bool inside = true;
            for (size_t d = 0; d < rank; ++d) {
              step /= piece.reach[d].taps();
              const Phase& p = t.phases[d][static_cast<size_t>(parts[d])];
              const int64_t which = piece.reach[d].low + left / step - p.first;  // from the first input of the phase
              left %= step;
              inside = inside && which >= 0 && which < p.taps;
              at = at * t.kernel[d] + p.tap + (p.taps - 1 - which) * t.stride[d];
            }
            *to = inside ? all[at] : zero;
          }
        }
    }
  });
  return result;
}

/// As many elements again for each phase.
Constant repeated(const Constant& bias, int64_t times) {
  Constant result = Constant::allocate(bias.dtype(), {bias.num_elements() * times});
  auto* to = static_cast<char*>(result.mutable_data());
  const auto bytes = static_cast<size_t>(bias.num_elements() * bias.dtype().bytes());
  for (int64_t k = 0; k < times; ++k) std::copy_n(static_cast<const char*>(bias.data()), bytes, to + k * bytes);
  return result;
}

bool split(Rewriter& r, const Node& n, int lanes) {
  const std::optional<Transposed> t = read(r, n);
  if (!t) return false;
  const bool has_bias = n.inputs.size() > 2 && n.inputs[2].given();
  const Constant* bias = has_bias ? r.constant(n.inputs[2]) : nullptr;
  if (has_bias && !bias) return false;
  const std::vector<Piece> pieces = pieces_of(*t, lanes);
  const size_t rank = t->stride.size();
  // All pieces have one size: what one of them has too many places of is left out at the end.
  std::vector<int64_t> size(rank);
  for (size_t d = 0; d < rank; ++d) {
    size[d] = (t->out[d] + t->stride[d] - 1) / t->stride[d];
    for (const Piece& piece : pieces) {
      if (piece.reach[d].low > 0) return false;  // the first inputs meet nothing
      size[d] = std::max(size[d], t->in[d] - piece.reach[d].high);
    }
  }
  const std::string weights = r.graph.value_name(n.inputs[1]);
  std::vector<Value> parts;
  for (const Piece& piece : pieces) {
    std::vector<int64_t> pads(2 * rank);
    std::vector<int64_t> kernel(rank);
    for (size_t d = 0; d < rank; ++d) {
      kernel[d] = piece.reach[d].taps();
      pads[d] = -piece.reach[d].low;
      pads[rank + d] = size[d] - t->in[d] - pads[d] + kernel[d] - 1;
    }
    std::vector<Value> inputs{n.inputs[0], r.edit.add_constant(weights_of(*t, piece, *r.constant(n.inputs[1])),
                                                               weights + ".phase" + std::to_string(piece.begin))};
    if (has_bias)
      inputs.push_back(
          r.edit.add_constant(repeated(*bias, piece.end - piece.begin), r.graph.value_name(n.inputs[2]) + ".phases"));
    AttrMap attrs;
    attrs.set("group", t->group);
    attrs.set("kernel_shape", kernel);
    attrs.set("pads", pads);
    parts.push_back(r.add(n, "Conv", std::move(inputs), std::move(attrs)));
  }
  Value all = parts[0];
  if (parts.size() > 1) {
    AttrMap axis;
    axis.set("axis", int64_t{1});
    all = r.add(n, "Concat", parts, std::move(axis));
  }
  if (t->count > 1 || size != t->out) {
    AttrMap spread;
    spread.set("strides", t->stride);
    spread.set("sizes", t->out);
    all = {r.edit.add(*find_op("Interleave", "tensmith"), {all}, std::move(spread), n.name), 0};
  }
  return r.replace(n, all);
}

}  // namespace

int split_phases(GraphEditor& edit, const PassOptions& options) {
  Rewriter r(edit);
  int count = 0;
  for (NodeId id : edit.graph().topological_order()) {
    if (!edit.graph().alive(id)) continue;
    const Node& node = edit.graph().node(id);
    if (node.op->name != "ConvTranspose" || !node.op->domain.empty()) continue;
    const int lanes = options.target ? options.target->lanes(std::max<int64_t>(4, node.types[0].dtype.bytes())) : 8;
    count += split(r, node, std::max(1, lanes));
  }
  return count;
}

}  // namespace tensmith::graph
