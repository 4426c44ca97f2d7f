#include <algorithm>

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/equal_hash.h"
#include "tensor/simplify.h"

namespace tensmith {

namespace {

/// An axis of the stage with the extent that it gets.
struct PaddedAxis {
  Axis axis;
  Expr extent;
  bool is_reduce;
  bool grows() const { return !equal(axis.extent, extent); }
};

std::vector<PaddedAxis> padded_axes(const ScheduleState& state, const StageNode& stage,
                                    const std::vector<int64_t>& multiples) {
  Facts facts;
  for (const Var& dim : state.dims) facts.assume(dim >= 1);
  std::vector<PaddedAxis> padded;
  for (const std::vector<Axis>* axes : {&stage.axes, &stage.reduce_axes})
    for (const Axis& axis : *axes) {
      const Expr multiple(multiples[padded.size()]);
      const bool divides = can_prove(floor_mod(axis.extent, multiple) == 0, facts);
      padded.push_back({axis, divides ? axis.extent : simplify(ceil_div(axis.extent, multiple) * multiple, facts),
                        axes == &stage.reduce_axes});
    }
  return padded;
}

const PaddedAxis* axis_at(const std::vector<PaddedAxis>& axes, const Expr& index) {
  for (const PaddedAxis& axis : axes)
    if (axis.axis.var.same_as(index)) return &axis;
  return nullptr;
}

/// Factors of a product, casts taken off.
void factors_of(const Expr& e, std::vector<Expr>* factors) {
  if (const auto* product = e.as<Binary>(); product && product->op == BinaryOp::kMul) {
    factors_of(product->a, factors);
    factors_of(product->b, factors);
  } else if (const auto* cast = e.as<Cast>(); cast && !e.dtype().is_bool()) {
    factors_of(cast->value, factors);
  } else {
    factors->push_back(e);
  }
}

bool is_sum(const Reducer& reducer) {
  const auto* sum = reducer.combined[0].as<Binary>();
  return sum && sum->op == BinaryOp::kAdd && reducer.lhs.size() == 1;
}

/// Why what is added for the padded part of a reduction would not be neutral, or ok.
Result<void> check_neutral(const StageState& stage, const std::vector<PaddedAxis>& axes) {
  const auto refuse = [&](const std::string& what) {
    return Failure{"pad-einsum-body", "stage " + stage.name + ": " + what +
                                          "; pad only the axes of the results (multiple 1 for reduction axes), or "
                                          "split them with tail=peel"};
  };
  const Expr& body = stage.stage->bodies[0];
  if (body.kind() == NodeKind::kLoad) {
    for (const PaddedAxis& axis : axes)
      if (axis.is_reduce && axis.grows() && !uses_var(body, axis.axis.var))
        return refuse("what is reduced does not depend on the padded axis " + axis.axis.var.name());
  } else if (!is_sum(*stage.stage->reducer)) {
    return refuse("expected a sum of products, or a reduction of what is read, on a padded reduction axis");
  }
  std::vector<Expr> factors;
  factors_of(body, &factors);
  for (const PaddedAxis& axis : axes) {
    if (!axis.is_reduce || !axis.grows()) continue;
    for (const Expr& factor : factors) {
      const auto* read = factor.as<Load>();
      // A factor that is not zero there may be infinite, and 0 * infinity is no zero.
      if (!read || std::none_of(read->indices.begin(), read->indices.end(),
                                [&](const Expr& i) { return i.get() == axis.axis.var.get(); }))
        return refuse("expected every factor to be read at the padded reduction axis " + axis.axis.var.name() +
                      " itself, so that it is zero in the padding (reindex gives such reads)");
    }
  }
  return {};
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (Result<void> ok = check_no_attached(state, stage); !ok) return ok;
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (Result<void> ok = check_unscheduled(stage); !ok) return ok;
  if (stage.window != Window::kNone)
    return Failure{"window-illegal", "stage " + stage.name + " keeps its storage between iterations; pad it before"};
  if (stage.stage->outputs.size() != 1)
    return Failure{"cache-outputs", "stage " + stage.name + " has several outputs; only stages with one can be padded"};
  const std::vector<int64_t>& multiples = step.numbers("multiples");
  const size_t count = stage.stage->axes.size() + stage.stage->reduce_axes.size();
  if (multiples.size() != count)
    return Failure{"bad-multiples", "multiples: expected one for each of the " + std::to_string(count) + " axes of " +
                                        stage.name + ", reduction axes last, got " + std::to_string(multiples.size())};
  for (int64_t multiple : multiples)
    if (multiple < 1 || multiple > 4096)
      return Failure{"bad-multiples", "multiples: expected 1 to 4096, got " + std::to_string(multiple)};
  const std::vector<PaddedAxis> axes = padded_axes(state, *stage.stage, multiples);
  if (std::none_of(axes.begin(), axes.end(), [](const PaddedAxis& a) { return a.grows(); }))
    return Failure{"pad-einsum-nothing", "all extents of " + stage.name + " are such multiples already"};
  if (std::any_of(axes.begin(), axes.end(), [](const PaddedAxis& a) { return a.grows() && a.is_reduce; }))
    return check_neutral(stage, axes);
  return {};
}

/// Puts reads of padded copies in place of reads at padded axes.
class Padder {
 public:
  Padder(ScheduleState& state, const std::string& stage, const std::vector<PaddedAxis>& axes, const Expr& filling)
      : state_(state), stage_(stage), axes_(axes), filling_(filling) {}

  Expr pad(const Expr& body) {
    return rewrite(body, [&](const Expr& e) { return e.kind() == NodeKind::kLoad ? read(e) : e; });
  }
  std::vector<Axis> grown() const {
    std::vector<Axis> grown;
    for (const PaddedAxis& a : axes_) grown.push_back({a.axis.var, a.extent});
    return grown;
  }

 private:
  Expr read(const Expr& e) {
    const Load& load = *e.as<Load>();
    bool padded = false, computed = false;
    for (const Expr& index : load.indices) {
      const PaddedAxis* axis = axis_at(axes_, index);
      padded |= axis && axis->grows();
      for (const PaddedAxis& other : axes_) computed |= !axis && other.grows() && uses_var(index, other.axis.var);
    }
    const Expr there = padded ? Load::make(copy_of(load), load.indices) : e;
    return computed ? evaluable(there, grown()) : there;
  }

  /// Two reads share a copy when it is filled from the same elements on (null: nowhere): what lies beyond one axis may
  /// be read by another one.
  struct Copy {
    Buffer from, to;
    std::vector<Expr> ends;
  };

  Buffer copy_of(const Load& load) {
    std::vector<Axis> axes;
    Expr inside;
    std::vector<Expr> ends;
    std::vector<Expr> shape, indices;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const PaddedAxis* axis = axis_at(axes_, load.indices[d]);
      const bool grows = axis && axis->grows();
      axes.push_back({Var("i" + std::to_string(d)), grows ? axis->extent : load.buffer->shape[d]});
      indices.push_back(axes.back().var);
      shape.push_back(axes.back().extent);
      ends.emplace_back();
      if (!grows) continue;
      // Elements behind the operand's end are not asked for, but the axis may go on (padding of padding).
      const Expr& extent = axis->axis.extent;
      const Expr& shape_there = load.buffer->shape[d];
      const Expr end = can_prove(extent <= shape_there) ? extent : simplify(min(extent, shape_there));
      const Expr part = axes.back().var < end;
      ends.back() = end;
      inside = inside.get() == nullptr ? part : (inside && part);
    }
    const auto same = [](const Expr& x, const Expr& y) {
      return x.get() == nullptr || y.get() == nullptr ? x.get() == y.get() : equal(x, y);
    };
    for (const Copy& copy : copies_)
      if (copy.from.same_as(load.buffer) && std::equal(ends.begin(), ends.end(), copy.ends.begin(), same) &&
          std::equal(shape.begin(), shape.end(), copy.to->shape.begin(), same))
        return copy.to;
    const StageState& from = state_.stages[state_.producer_of(load.buffer.get())];
    const std::string name = state_.unique_name(from.name + "_pad");
    const Expr filling = filling_.dtype() == load.dtype ? filling_ : make_zero(load.dtype);
    const StageState place = *state_.find(stage_);
    insert_stage(state_, stage_, place, name, axes, select(inside, Load::make(load.buffer, indices), filling));
    copies_.push_back({load.buffer, buffer_of(state_, name), ends});
    return copies_.back().to;
  }

  ScheduleState& state_;
  const std::string stage_;
  const std::vector<PaddedAxis>& axes_;
  Expr filling_;
  std::vector<Copy> copies_;
};

void apply(ScheduleState& state, const Step& step) {
  const std::string name = step.text("name");
  split_off_copy(state, step.text("stage"), name);
  const StageState old = *state.find(name);
  const std::vector<PaddedAxis> axes = padded_axes(state, *old.stage, step.numbers("multiples"));
  const bool is_read = old.stage->reducer && old.stage->bodies[0].kind() == NodeKind::kLoad;
  Padder padder(state, name, axes, is_read ? old.stage->reducer->identity[0] : make_zero(old.stage->bodies[0].dtype()));
  const Expr body = padder.pad(old.stage->bodies[0]);
  const Stage padded = rebuild_stage(old.stage, [&](StageNode& node) {
    std::vector<Expr> shape;
    for (size_t a = 0; a < node.axes.size(); ++a) {
      node.axes[a].extent = axes[a].extent;
      shape.push_back(axes[a].extent);
    }
    for (size_t a = 0; a < node.reduce_axes.size(); ++a) node.reduce_axes[a].extent = axes[node.axes.size() + a].extent;
    node.bodies = {body};
    if (node.where.get() != nullptr) node.where = evaluable(node.where, padder.grown());
    for (Expr& initial : node.initial) initial = evaluable(initial, padder.grown());
    node.outputs = {make_buffer(name, old.stage->outputs[0]->dtype, shape)};
    node.producers = producers_of(state, read_buffers(node));
  });
  StageState computing = fresh_stage(padded, name);
  computing.attach = old.attach;
  computing.attach_stage = old.attach_stage;
  computing.attach_loop = old.attach_loop;
  *state.find(name) = computing;
  redirect_reads(state, old.stage->outputs[0].get(), padded->outputs[0]);
}

}  // namespace

const PrimitiveDef& pad_einsum_primitive() {
  static const PrimitiveDef def{
      .name = "pad_einsum",
      .doc =
          "Makes the extents of a product multiples of given numbers, so that no tile of it has an edge: the\n"
          "operands are copied with zeros behind (or what is neutral to the reduction), the product is computed\n"
          "over the larger extents into a stage of its own, and the stage copies out what was asked for. Reduction\n"
          "axes may be padded where each factor is zero in the padding.\n"
          "Rewrite: C[i, j] += A[i, k] * B[k, j]\n"
          "    --8,16,4-->  A_pad, B_pad; C'[i, j] += A_pad[i, k] * B_pad[k, j] over multiples of 8, 16, 4;\n"
          "    C[i, j] = C'[i, j]",
      .halide = "none (constant_exterior and bound)",
      .tvm = "pad_einsum",
      .args = {{"stage", ArgKind::kStage, "the stage, not scheduled yet"},
               {"multiples", ArgKind::kInts,
                "for each axis, reduction axes last, what its extent becomes a multiple of"},
               {"name", ArgKind::kNewName, "name of the computing stage"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"pad_einsum stage=C multiples=4,8,5 name=Cp"}},
                  {"dense_m", {"pad_einsum stage=C multiples=4,8,4 name=Cp"}},
                  {"conv", {"pad_einsum stage=Y multiples=1,8,1,1,4,1,1 name=Yp"}},
                  {"int8_product", {"pad_einsum stage=C multiples=1,16,4 name=Cp"}},
                  {"softmax", {"pad_einsum stage=m multiples=1,8 name=mp"}}}};
  return def;
}

}  // namespace tensmith
