#include <algorithm>

#include "schedule/prefetches.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

const Attrs& attrs_of(const StageState& stage, const std::string& loop) {
  return loop.empty() ? stage.notes : stage.loops[stage.find_loop(loop)].attrs;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const Attrs& attrs = attrs_of(stage, step.text("loop"));
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
  const_cast<Attrs&>(attrs_of(stage, step.text("loop"))).erase(step.text("key"));
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
               {"key", ArgKind::kText, "what was noted"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense",
                   {"annotate stage=C loop=i0 key=note.rows value=7", "unannotate stage=C loop=i0 key=note.rows"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
