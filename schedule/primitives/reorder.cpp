#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

std::vector<int> new_order(const StageState& stage, const std::vector<std::string>& names) {
  std::vector<int> positions, loops;
  for (const std::string& name : names) {
    loops.push_back(stage.find_loop(name));
    positions.push_back(stage.order_position(loops.back()));
  }
  std::sort(positions.begin(), positions.end());
  std::vector<int> order = stage.order;
  for (size_t k = 0; k < loops.size(); ++k) order[positions[k]] = loops[k];
  return order;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  std::vector<std::string> names = step.texts("loops");
  std::sort(names.begin(), names.end());
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return Failure{"reorder-duplicate", "loop " + *twice + " is named twice"};
  // A stage computed at a loop needs that this loop keeps the same loops outside it.
  const std::vector<int> order = new_order(stage, step.texts("loops"));
  for (const StageState& other : state.stages) {
    if (other.attach != AttachKind::kAt || other.attach_stage != stage.name) continue;
    const int at = stage.find_loop(other.attach_loop);
    const auto outside = [&](const std::vector<int>& list) {
      std::vector<int> loops(list.begin(), std::find(list.begin(), list.end(), at));
      std::sort(loops.begin(), loops.end());
      return loops;
    };
    if (outside(order) != outside(stage.order))
      return Failure{"attach-point", "stage " + other.name + " is computed at " + stage.name + "." + other.attach_loop +
                                         ", which would get other loops around it; reorder before that step"};
  }
  return check_shift_order(stage, order, stage.init_loop);
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.order = new_order(stage, step.texts("loops"));
}

}  // namespace

const PrimitiveDef& reorder_primitive() {
  static const PrimitiveDef def{
      .name = "reorder",
      .doc =
          "Puts the named loops, in the given order, into the places that they hold together; other loops stay.\n"
          "Rewrite: for i: for j: for k  --reorder k, i-->  for k: for j: for i",
      .halide = "reorder (innermost first there)",
      .tvm = "reorder",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loops", ArgKind::kLoops, "the loops in their new order, outermost first"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"reorder stage=C loops=r0,i0,i1"}}}};
  return def;
}

}  // namespace tensmith
