#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (Result<void> ok = check_new_loop(stage, step.text("name")); !ok) return ok;
  if (stage.intrinsic_loop >= 0 && !step.text("loop").empty() &&
      stage.order_position(stage.find_loop(step.text("loop"))) > stage.order_position(stage.intrinsic_loop))
    return Failure{"inside-intrinsic", "loop " + step.text("loop") + " is a part of intrinsic " + stage.intrinsic +
                                           "; put the new one around it"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int position = step.text("loop").empty() ? 0 : stage.order_position(stage.find_loop(step.text("loop")));
  stage.order.insert(stage.order.begin() + position, static_cast<int>(stage.loops.size()));
  stage.loops.push_back({.name = step.text("name"), .is_unit = true});
}

}  // namespace

const PrimitiveDef& unit_loop_primitive() {
  static const PrimitiveDef def{
      .name = "unit_loop",
      .doc =
          "Puts a loop of one iteration around the stage or around one of its loops: a place at which others can be\n"
          "computed, also where the stage has no loop (a single number).\n"
          "Rewrite: C = f()  -->  for u in 1: C = f()",
      .halide = "none (split by 1)",
      .tvm = "add_unit_loop",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"name", ArgKind::kNewName, "name of the new loop"},
               {"loop", ArgKind::kLoop, "the loop around which it goes; empty: the outermost", ""}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"unit_loop stage=R name=u"}}, {"softmax", {"unit_loop stage=s name=u loop=r0"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
