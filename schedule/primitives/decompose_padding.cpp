#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

bool reads_memory(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& part) {
    found = found || part.kind() == NodeKind::kLoad;
    return !found;
  });
  return found;
}

/// The opposite of a condition; of a choice between conditions the parts, so that each can bound a loop.
Expr opposite(const Expr& e) {
  const auto* both = e.as<Binary>();
  if (!both) return logical_not(e);
  const auto flipped = [&](BinaryOp op) { return Binary::make(op, both->a, both->b); };
  const bool whole_numbers = !both->a.dtype().is_float();
  switch (both->op) {
    case BinaryOp::kOr: return opposite(both->a) && opposite(both->b);
    case BinaryOp::kEQ: return flipped(BinaryOp::kNE);
    case BinaryOp::kNE: return flipped(BinaryOp::kEQ);
    case BinaryOp::kLT: return whole_numbers ? flipped(BinaryOp::kGE) : logical_not(e);
    case BinaryOp::kLE: return whole_numbers ? flipped(BinaryOp::kGT) : logical_not(e);
    case BinaryOp::kGT: return whole_numbers ? flipped(BinaryOp::kLE) : logical_not(e);
    case BinaryOp::kGE: return whole_numbers ? flipped(BinaryOp::kLT) : logical_not(e);
    default: return logical_not(e);
  }
}

/// A stage as padding: `value` where `inside` holds, else `filling`, which reads no memory.
struct Padding {
  Expr inside, value, filling;
};

Result<Padding> padding_of(const StageState& stage) {
  const auto refuse = [&](const std::string& why) {
    return Failure{"no-padding", "stage " + stage.name + " " + why +
                                     "; expected one output of the form select(inside, value, filling), where the "
                                     "filling reads no memory"};
  };
  if (stage.stage->reducer) return refuse("is a reduction");
  if (stage.stage->bodies.size() != 1) return refuse("has several outputs");
  const auto* choice = stage.stage->bodies[0].as<Select>();
  if (!choice) return refuse("makes no choice");
  if (!reads_memory(choice->b)) return Padding{choice->cond, choice->a, choice->b};
  if (!reads_memory(choice->a)) return Padding{opposite(choice->cond), choice->b, choice->a};
  return refuse("reads memory in both cases");
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (const Result<Padding> padding = padding_of(stage); !padding) return padding.failure();
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const Padding padding = padding_of(stage).value();
  const DType dtype = padding.value.dtype();
  // Start values are the filling; what is "added" takes their place where the condition holds.
  stage.stage = rebuild_stage(stage.stage, [&](StageNode& node) {
    const Var filled("filled", dtype), value("value", dtype);
    node.reducer = Reducer{"replace", {filled}, {value}, {Expr(value)}, {make_zero(dtype)}};
    node.where = padding.inside;
    node.bodies = {padding.value};
    node.initial = {padding.filling};
  });
  stage.init_loop = stage.find_loop(step.text("loop"));
}

}  // namespace

const PrimitiveDef& decompose_padding_primitive() {
  static const PrimitiveDef def{
      .name = "decompose_padding",
      .doc =
          "Turns a stage that pads into two sets of loops: one fills everything, just before the given loop, and\n"
          "one puts the values where they are, without a condition in its loops. As with a reduction,\n"
          "decompose_reduction moves the place of the filling.\n"
          "Rewrite: for i: P[i] = select(inside(i), X[i - 1], 0)\n"
          "    --at i-->  for i: P[i] = 0; for i inside: P[i] = X[i - 1]",
      .halide = "none (pure definition and update)",
      .tvm = "decompose_padding",
      .args = {{"stage", ArgKind::kStage, "the stage that pads"},
               {"loop", ArgKind::kLoop, "the loop before which everything is filled"}},
      .check = check,
      .apply = apply,
      .samples = {
          {"padded", {"decompose_padding stage=P loop=i0"}},
          {"padded", {"parallel stage=P loop=i0", "vectorize stage=P loop=i1", "decompose_padding stage=P loop=i1"}},
          {"padded",
           {"compute_at stage=P consumer=C at=i0", "rolling_buffer stage=P", "decompose_padding stage=P loop=i0"}},
          {"conv", {"reindex stage=Y producer=X name=Xr", "decompose_padding stage=Xr loop=i2"}}}};
  return def;
}

}  // namespace tensmith
