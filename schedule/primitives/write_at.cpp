#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/near_copy.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<ScheduleState> carried_out(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok.failure();
  const std::string& name = step.text("name");
  if (state.find(name))
    return Failure{"duplicate-stage", "there is already a stage '" + name + "'; choose another name"};
  if (stage.window != Window::kNone || stage.scope == Scope::kRegister)
    return Failure{"window-illegal", "stage " + stage.name +
                                         " has a window or lives in registers, where nothing is gained by collecting "
                                         "results elsewhere; use write_at before those steps"};
  const int position = stage.order_position(stage.find_loop(step.text("loop")));
  for (int k = 0; k <= position; ++k)
    if (stage.loops[stage.order[k]].is_reduce)
      return Failure{"attach-illegal", "loop " + stage.loops[stage.order[k]].name + " of " + stage.name +
                                           " is a reduction: its results are not there before its end; use "
                                           "cache_inplace, which takes them up again"};
  ScheduleState next = state;
  split_off_copy(next, stage.name, name);
  Result<ScheduleState> done = after_steps(
      next, {{"reverse_compute_at", {{"stage", stage.name}, {"producer", name}, {"at", step.text("loop")}}}});
  if (!done) return done;
  return with_near_copy(done.value(), step, name, stage.name);
}

}  // namespace

const PrimitiveDef& write_at_primitive() {
  static const PrimitiveDef def = near_copy_primitive(
      {.name = "write_at",
       .doc =
           "Computes what one iteration of a loop computes into memory near by and copies it out at the iteration's\n"
           "end, in vectors where `lanes` says so. The stage may be split and reordered already: a new stage takes\n"
           "over its loops, the stage itself becomes the copy, with the loops down to that one.\n"
           "Rewrite: for io: for ii: C[io, ii] = f  --at io-->  for io: { for ii: C'[ii] = f; C[io, 0:n] = C'[0:n] }",
       .halide = "in (of the output), compute_at",
       .tvm = "write_at",
       .args = {{"stage", ArgKind::kStage, "the stage"},
                {"loop", ArgKind::kLoop, "a loop of the stage, outside its reductions"},
                {"name", ArgKind::kNewName, "name of the computing stage"}},
       .samples = {{"dense", {"write_at stage=C loop=i0 name=Cl lanes=8"}},
                   {"dense",
                    {"split stage=R loop=i0 factor=3 outer=io inner=ii", "parallel stage=R loop=io",
                     "compute_at stage=C consumer=R at=io", "write_at stage=R loop=io name=Rl scope=stack lanes=4"}},
                   {"max_plus",
                    {"split stage=C loop=i0 factor=2 outer=io inner=ii",
                     "split stage=C loop=i1 factor=4 outer=jo inner=ji", "reorder stage=C loops=io,jo,r0,ii,ji",
                     "vectorize stage=C loop=ji", "write_at stage=C loop=jo name=Cl lanes=4"}}}},
      "where the results are collected", carried_out);
  return def;
}

}  // namespace tensmith
