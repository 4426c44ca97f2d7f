#include <algorithm>

#include "schedule/prefetches.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

const Attrs& attrs_of(const StageState& stage, const std::string& loop, const std::string& access) {
  static const Attrs kNone;
  if (!access.empty()) {
    const auto notes = stage.access_notes.find(access);
    return notes == stage.access_notes.end() ? kNone : notes->second;
  }
  return loop.empty() ? stage.notes : stage.loops[stage.find_loop(loop)].attrs;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const std::string& access = step.text("access");
  if (!access.empty() && !step.text("loop").empty())
    return Failure{"no-annotation", "access: expected a loop or an access whose note goes, got both"};
  const Attrs& attrs = attrs_of(stage, step.text("loop"), access);
  std::vector<std::string> known;
  for (const auto& [key, value] : attrs) known.push_back(key);
  if (!step.text("loop").empty())
    for (const Prefetch& p : stage.loops[stage.find_loop(step.text("loop"))].prefetches)
      known.push_back(prefetch_key(p));
  if (std::find(known.begin(), known.end(), step.text("key")) != known.end()) return {};
  std::string keys;
  for (const std::string& key : known) keys += (keys.empty() ? "" : ", ") + key;
  return Failure{"no-annotation", "nothing is noted under '" + step.text("key") + "' here; the keys are " +
                                      (keys.empty() ? "none" : keys)};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  if (const std::string& access = step.text("access"); !access.empty()) {
    Attrs& notes = stage.access_notes.at(access);
    notes.erase(step.text("key"));
    if (notes.empty()) stage.access_notes.erase(access);
    return;
  }
  const_cast<Attrs&>(attrs_of(stage, step.text("loop"), "")).erase(step.text("key"));
  if (step.text("loop").empty()) return;
  std::erase_if(stage.loops[stage.find_loop(step.text("loop"))].prefetches,
                [&](const Prefetch& p) { return prefetch_key(p) == step.text("key"); });
}

}  // namespace

const PrimitiveDef& unannotate_primitive() {
  static const PrimitiveDef def{
      .name = "unannotate",
      .doc =
          "Takes back what annotate, pragma, prefetch (key prefetch:STAGE) or prefetch_next (prefetch_next:STAGE)\n"
          "noted.\n"
          "Rewrite: for i @(key = value)  -->  for i",
      .halide = "none",
      .tvm = "unannotate",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "the loop; empty: the stage as a whole", ""},
               {"key", ArgKind::kText, "what was noted"},
               {"access", ArgKind::kStage, "the stage or input whose reads it was noted on; empty: none", ""}},
      .check = check,
      .apply = apply,
      .samples = {{"dense",
                   {"annotate stage=C loop=i0 key=note.rows value=7", "unannotate stage=C loop=i0 key=note.rows"}},
                  {"dense",
                   {"annotate stage=C key=note.hot value=1 access=B", "unannotate stage=C key=note.hot access=B"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
