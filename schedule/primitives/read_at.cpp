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
  Result<ScheduleState> next =
      after_steps(state, {{"cache_read", {{"stage", step.text("producer")}, {"consumer", stage.name}, {"name", name}}},
                          {"compute_at", {{"stage", name}, {"consumer", stage.name}, {"at", step.text("loop")}}}});
  if (!next) return next;
  return with_near_copy(next.value(), step, name, name);
}

}  // namespace

const PrimitiveDef& read_at_primitive() {
  static const PrimitiveDef def = near_copy_primitive(
      {.name = "read_at",
       .doc =
           "Copies, in each iteration of a loop, the part of a tensor that the iteration reads into memory near by,\n"
           "in vectors where `lanes` says so. The copy is a stage (as cache_read and compute_at make it) and can be\n"
           "scheduled further.\n"
           "Rewrite: for io: for ii: use A[io, ii]  --at io-->  for io: { A'[0:n] = A[io, 0:n]; for ii: use A'[ii] }",
       .halide = "in, compute_at",
       .tvm = "read_at",
       .args = {{"stage", ArgKind::kStage, "the reader"},
                {"loop", ArgKind::kLoop, "a loop of the reader"},
                {"producer", ArgKind::kStage, "the stage or input that is read"},
                {"name", ArgKind::kNewName, "name of the copying stage"}},
       .samples = {{"dense", {"read_at stage=C loop=i0 producer=A name=Ac lanes=8"}},
                   {"dense",
                    {"split stage=C loop=r0 factor=6 outer=ko inner=ki", "reorder stage=C loops=ko,i0,i1,ki",
                     "read_at stage=C loop=ko producer=B name=Bc scope=stack lanes=4"}},
                   {"conv", {"parallel stage=Y loop=i1", "read_at stage=Y loop=i2 producer=X name=Xc"}}}},
      "where the copy is", carried_out);
  return def;
}

}  // namespace tensmith
