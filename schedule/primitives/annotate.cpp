#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const std::string &key = step.text("key"), &access = step.text("access");
  if (!access.empty()) {
    if (!step.text("loop").empty())
      return Failure{"unknown-annotation", "access: expected a loop or an access to annotate, got both; leave one out"};
    if (Result<Expr> read = place_read(state, stage, access, 0); !read) return read.failure();
  }
  if (is_note(key)) return {};
  if (step.text("loop").empty())
    return Failure{"unknown-annotation", "key: expected note.NAME on a stage or an access, got '" + key +
                                             "'; lowering reads other keys of a loop"};
  if (Result<void> ok = check_key(key); !ok) return ok;
  return check_mark(key, step.number("value"));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const std::string &loop = step.text("loop"), &access = step.text("access");
  Attrs& attrs = !access.empty() ? stage.access_notes[access]
                 : loop.empty()  ? stage.notes
                                 : stage.loops[stage.find_loop(loop)].attrs;
  attrs[step.text("key")] = step.number("value");
}

}  // namespace

const PrimitiveDef& annotate_primitive() {
  static const PrimitiveDef def{
      .name = "annotate",
      .doc =
          "Notes a number under a key on a loop, a stage or what a stage reads of another one (an access). Keys that\n"
          "lowering and code generation read have their meaning (see pragma); others begin with note. and are for\n"
          "tools: they stay with the loop and are printed with the nests.\n"
          "Rewrite: for i  -->  for i @(key = value)",
      .halide = "none",
      .tvm = "annotate, annotate_buffer_access",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "the loop; empty: the stage as a whole", ""},
               {"key", ArgKind::kText, "what is noted: unroll, min_chunk, piece or note.NAME"},
               {"value", ArgKind::kInt, "the number"},
               {"access", ArgKind::kStage, "the stage or input whose reads it is noted on; empty: none", ""}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"annotate stage=C loop=i0 key=note.rows value=7"}},
                  {"dense", {"annotate stage=C key=note.cost value=100"}},
                  {"dense", {"annotate stage=C key=note.hot value=1 access=B"}},
                  {"dense", {"annotate stage=C loop=r0 key=unroll value=23"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
