#include "graph/partition/access.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/op_def.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith::graph {

namespace {

/// The axes of a stage as facts.
Facts facts_of(const std::vector<Axis>& axes) {
  Facts facts;
  for (const Axis& axis : axes) facts.set_range(axis.var, Expr(0), axis.extent);
  return facts;
}

bool is_static(const Graph& graph, const Node& node) {
  for (const TensorType& type : node.types)
    if (!type.is_static()) return false;
  for (const Value& input : node.inputs)
    if (input.given() && !graph.type(input).is_static()) return false;
  return true;
}

/// The leaves of a tree of selections whose conditions compare one index with constants, in the order of that index.
class Tree {
 public:
  explicit Tree(const std::vector<Axis>& axes) : axes_(axes) {}

  bool collect(const Expr& e) {
    if (const auto* select = e.as<Select>()) {
      const auto* compare = select->cond.as<Binary>();
      if (!compare || compare->op != BinaryOp::kLT || !as_axis(compare->a) || !is_number(compare->b)) return false;
      return collect(select->a) && collect(select->b);
    }
    if (!e.as<Load>()) return false;
    leaves.push_back(e);
    return true;
  }

  std::vector<Expr> leaves;
  int axis = -1;

 private:
  static bool is_number(const Expr& e) {
    int64_t value;
    return as_const_int(e, &value);
  }
  bool as_axis(const Expr& e) {
    for (size_t a = 0; a < axes_.size(); ++a)
      if (e.get() == axes_[a].var.get()) {
        if (axis >= 0 && axis != static_cast<int>(a)) return false;
        axis = static_cast<int>(a);
        return true;
      }
    return false;
  }
  const std::vector<Axis>& axes_;
};

std::optional<MovedOutput> moved_output(const Graph& graph, const StageNode& stage,
                                        const std::map<const BufferNode*, Value>& sources) {
  if (stage.stage_kind != StageKind::kCompute || stage.reducer || stage.bodies.size() != 1) return std::nullopt;
  const Facts facts = facts_of(stage.axes);
  MovedOutput moved;
  std::vector<int64_t> extents;
  for (const Axis& axis : stage.axes) {
    int64_t extent;
    if (!as_const_int(axis.extent, &extent) || extent == 0) return std::nullopt;
    extents.push_back(extent);
    moved.index.push_back(axis.var);
  }
  Tree tree(stage.axes);
  const Expr body = simplify(stage.bodies[0], facts);
  if (!tree.collect(body)) return std::nullopt;
  int64_t at = 0;
  for (const Expr& leaf : tree.leaves) {
    const auto& load = *leaf.as<Load>();
    const auto source = sources.find(load.buffer.get());
    if (source == sources.end()) return std::nullopt;
    MovedOutput::Piece piece{source->second, std::max(tree.axis, 0), at, 0, load.indices};
    for (const Expr& index : piece.from) {
      bool reads = false;
      visit(index, [&](const Expr& e) {
        reads |= e.kind() == NodeKind::kLoad;
        return true;
      });
      if (reads) return std::nullopt;
    }
    if (tree.leaves.size() == 1) {
      piece.extent = extents.empty() ? 1 : extents[static_cast<size_t>(piece.axis)];
      moved.pieces.push_back(std::move(piece));
      continue;
    }
    // One of several: the source whole, shifted along the axis, and the selection takes it at both of its ends. (What
    // it takes in between then follows: the conditions are half lines.)
    const std::vector<int64_t> shape = graph.type(source->second).static_shape();
    const auto a = static_cast<size_t>(tree.axis);
    if (shape.size() != extents.size()) return std::nullopt;
    piece.extent = shape[a];
    for (size_t d = 0; d < shape.size(); ++d) {
      const Expr wanted = d == a ? Expr(stage.axes[d].var) - at : Expr(stage.axes[d].var);
      if (d != a && shape[d] != extents[d]) return std::nullopt;
      if (!is_const_int(simplify(piece.from[d] - wanted, facts), 0)) return std::nullopt;
    }
    for (int64_t end : {at, at + piece.extent - 1}) {
      VarMap map;
      map[stage.axes[a].var.get()] = Expr(end);
      const Expr taken = simplify(substitute(body, map), facts);
      const auto* read = taken.as<Load>();
      if (!read || !read->buffer.same_as(load.buffer)) return std::nullopt;
    }
    at += piece.extent;
    moved.pieces.push_back(std::move(piece));
  }
  if (tree.leaves.size() > 1 && at != extents[static_cast<size_t>(tree.axis)]) return std::nullopt;
  return moved;
}

}  // namespace

std::optional<std::vector<MovedOutput>> moved_outputs(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->fusion != FusionKind::kInjective || !node.op->compute || !is_static(graph, node)) return std::nullopt;
  ComputeContext context{node, {}, {}, {}};
  std::map<const BufferNode*, Value> sources;
  for (const Value& input : node.inputs) {
    context.input_types.push_back(input.given() ? &graph.type(input) : nullptr);
    context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
    context.inputs.emplace_back();
    if (!input.given()) continue;
    context.inputs.back() = placeholder("x", graph.type(input).shape, graph.type(input).dtype);
    sources[context.inputs.back().buffer().get()] = input;
  }
  const std::vector<Tensor> results = node.op->compute(context);
  std::vector<MovedOutput> outputs;
  for (size_t o = 0; o < node.types.size(); ++o) {
    auto moved = moved_output(graph, *results[o].stage(), sources);
    if (!moved) return std::nullopt;
    outputs.push_back(std::move(*moved));
  }
  return outputs;
}

std::optional<Strided> strided(const Layout& layout, const std::vector<int64_t>& shape) {
  Strided place;
  place.strides.assign(shape.size(), 0);
  if (layout.dims().empty()) {
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      place.strides[d] = stride;
      stride *= shape[d];
    }
    return place;
  }
  const std::vector<int64_t> physical = layout.physical_shape(shape);
  int64_t stride = 1;
  for (size_t k = physical.size(); k-- > 0;) {
    const LayoutDim& dim = layout.dims()[k];
    if (dim.div != 1 || dim.mod != 0) return std::nullopt;
    place.strides[static_cast<size_t>(dim.dim)] = stride;
    place.offset += layout.pad_before()[static_cast<size_t>(dim.dim)] * stride;
    stride *= physical[k];
  }
  return place;
}

std::optional<Layout> layout_of(const Strided& place, const std::vector<int64_t>& shape) {
  // Dense row-major data have the default layout, whatever dims of one element say.
  int64_t dense = 1;
  bool row_major = true;
  for (size_t d = shape.size(); d-- > 0; dense *= shape[d]) row_major &= shape[d] == 1 || place.strides[d] == dense;
  if (row_major) return Layout();
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Dims of one element lie wherever they please: outermost.
  const auto key = [&](size_t d) { return shape[d] == 1 ? INT64_MAX : place.strides[d]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  std::vector<LayoutDim> dims;
  std::vector<int64_t> before(shape.size(), 0), after(shape.size(), 0);
  int64_t stride = 1;  // of the dim at hand, from the inside
  for (size_t k = order.size(); k-- > 0;) {
    const size_t d = order[k];
    if (shape[d] == 1) continue;
    if (place.strides[d] != stride) return std::nullopt;
    // How far the next dim outside lies decides the padding.
    int64_t next = stride * shape[d];
    if (k > 0 && shape[order[k - 1]] != 1) {
      next = place.strides[order[k - 1]];
      if (next % stride != 0 || next / stride < shape[d]) return std::nullopt;
      after[d] = next / stride - shape[d];
    }
    stride = next;
  }
  for (size_t d : order) dims.push_back({static_cast<int>(d), 1, 0});
  return Layout(std::move(dims), std::move(before), std::move(after));
}

std::optional<Strided> through(const MovedOutput& moved, const Strided& source, const std::vector<int64_t>& shape) {
  if (moved.pieces.size() != 1) return std::nullopt;
  Facts facts;
  for (size_t d = 0; d < shape.size(); ++d) facts.set_range(moved.index[d], Expr(0), Expr(shape[d]));
  Expr flat(source.offset);
  const std::vector<Expr>& from = moved.pieces[0].from;
  for (size_t d = 0; d < from.size(); ++d) flat = flat + from[d] * source.strides[d];
  const LinearForm form = linear_form(simplify(flat, facts));
  Strided place;
  place.offset = form.constant;
  place.strides.assign(shape.size(), 0);
  for (const auto& [term, coefficient] : form.terms) {
    const auto var = std::find_if(moved.index.begin(), moved.index.end(),
                                  [&, &t = term](const Var& v) { return v.get() == t.get(); });
    if (var == moved.index.end()) return std::nullopt;
    place.strides[static_cast<size_t>(var - moved.index.begin())] = coefficient;
  }
  // A dim along which nothing moves would show one element many times.
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && place.strides[d] <= 0) return std::nullopt;
  return place;
}

}  // namespace tensmith::graph
