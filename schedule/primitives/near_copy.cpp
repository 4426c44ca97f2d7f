#include "schedule/primitives/near_copy.h"

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"

namespace tensmith {

namespace {

Result<ScheduleState> with_vectors(const ScheduleState& state, const std::string& stage, int64_t lanes) {
  if (lanes == 1) return state;
  if (lanes < 1 || lanes > 64 || (lanes & (lanes - 1)) != 0)
    return Failure{"bad-lanes", "lanes: expected a power of two from 1 to 64, got " + std::to_string(lanes)};
  const StageState& copy = *state.find(stage);
  const LoopVar* last = copy.order.empty() ? nullptr : &copy.loops[copy.order.back()];
  if (!last || last->kind != ForKind::kSerial || !check_not_attach_point(state, copy, last->name))
    return Failure{"copy-without-loops", "no loop of the copy " + stage +
                                             " is left that could become vectors; choose a loop further outside, or "
                                             "lanes=1"};
  const std::string loop = last->name, outer = loop + ".o", inner = loop + ".v";
  return after_steps(
      state, {{"split", {{"stage", stage}, {"loop", loop}, {"factor", lanes}, {"outer", outer}, {"inner", inner}}},
              {"vectorize", {{"stage", stage}, {"loop", inner}}}});
}

}  // namespace

PrimitiveDef near_copy_primitive(PrimitiveDef def, const char* where,
                                 Result<ScheduleState> (*carry)(const ScheduleState&, const Step&)) {
  def.args.push_back({"scope", ArgKind::kText, where, "auto", {"auto", "register", "stack", "global"}});
  def.args.push_back({"lanes", ArgKind::kInt, "lanes of the vectors that are copied", "1"});
  def.check = [carry](const ScheduleState& state, const Step& step) -> Result<void> {
    if (const Result<ScheduleState> next = carry(state, step); !next) return next.failure();
    return {};
  };
  def.apply = [carry](ScheduleState& state, const Step& step) { state = carry(state, step).value(); };
  return def;
}

Result<ScheduleState> with_near_copy(const ScheduleState& state, const Step& step, const std::string& near,
                                     const std::string& copy) {
  const std::string& scope = step.text("scope");
  if (scope == "auto") return with_vectors(state, copy, step.number("lanes"));
  Result<ScheduleState> placed = after_steps(state, {{"set_scope", {{"stage", near}, {"scope", scope}}}});
  if (!placed) return placed;
  return with_vectors(placed.value(), copy, step.number("lanes"));
}

}  // namespace tensmith
