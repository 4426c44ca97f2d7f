#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
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
  std::vector<Step> steps = {
      {"reverse_compute_at", {{"stage", stage.name}, {"producer", name}, {"at", step.text("loop")}}}};
  if (step.text("scope") != "auto") steps.push_back({"set_scope", {{"stage", name}, {"scope", step.text("scope")}}});
  Result<ScheduleState> done = after_steps(next, steps);
  if (!done) return done;
  return with_vector_copy(done.value(), stage.name, step.number("lanes"));
}

Result<void> check(const ScheduleState& state, const Step& step) {
  if (const Result<ScheduleState> next = carried_out(state, step); !next) return next.failure();
  return {};
}

void apply(ScheduleState& state, const Step& step) { state = carried_out(state, step).value(); }

}  // namespace

const PrimitiveDef& write_at_primitive() {
  static const PrimitiveDef def{
      .name = "write_at",
      .doc =
          "Computes what one iteration of a loop computes into memory near by and copies it out at the iteration's "
          "end, "
          "in vectors where\n"
          "`lanes` says so. The stage may be split and reordered already: a new stage takes over its loops, the stage "
          "itself becomes\n"
          "the copy, with the loops down to that one.\n"
          "Rewrite: for io: for ii: C[io, ii] = f  --at io-->  for io: { for ii: C'[ii] = f; C[io, 0:n] = C'[0:n] }",
      .halide = "in (of the output), compute_at",
      .tvm = "write_at",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "a loop of the stage, outside its reductions"},
               {"name", ArgKind::kNewName, "name of the computing stage"},
               {"scope",
                ArgKind::kText,
                "where the results are collected",
                "auto",
                {"auto", "register", "stack", "global"}},
               {"lanes", ArgKind::kInt, "lanes of the vectors that are copied", "1"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"write_at stage=C loop=i0 name=Cl lanes=8"}},
                  {"dense",
                   {"split stage=R loop=i0 factor=3 outer=io inner=ii", "parallel stage=R loop=io",
                    "compute_at stage=C consumer=R at=io", "write_at stage=R loop=io name=Rl scope=stack lanes=4"}},
                  {"max_plus",
                   {"split stage=C loop=i0 factor=2 outer=io inner=ii",
                    "split stage=C loop=i1 factor=4 outer=jo inner=ji", "reorder stage=C loops=io,jo,r0,ii,ji",
                    "vectorize stage=C loop=ji", "write_at stage=C loop=jo name=Cl lanes=4"}}}};
  return def;
}

}  // namespace tensmith
