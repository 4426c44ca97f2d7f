#include "schedule/primitive_def.h"

#include <algorithm>
#include <charconv>

#include "schedule/places.h"
#include "schedule/prefetches.h"

namespace tensmith {

namespace {

std::string names_of_loops(const StageState& stage) {
  std::string text;
  for (int loop : stage.order) text += (text.empty() ? "" : ", ") + stage.loops[loop].name;
  return text.empty() ? "none" : text;
}

std::string names_of_stages(const ScheduleState& state) {
  std::string text;
  for (const StageState& s : state.stages) text += (text.empty() ? "" : ", ") + s.name;
  return text;
}

Result<void> check_arg(const ScheduleState& state, const Step& step, const ArgSpec& spec, const StepArg& arg) {
  const auto wrong = [&](const std::string& expected) {
    return Failure{"bad-step-argument", step.primitive + ": " + spec.name + ": expected " + expected};
  };
  const StageState* stage = nullptr;
  if (const StepArg* name = step.find("stage"); name && std::holds_alternative<std::string>(*name))
    stage = state.find(std::get<std::string>(*name));
  const auto check_loop = [&](const std::string& name) -> Result<void> {
    if (name.empty() && spec.default_text) return {};
    if (stage && stage->find_loop(name) < 0)
      return Failure{"unknown-loop",
                     "stage " + stage->name + " has no loop '" + name + "'; its loops are " + names_of_loops(*stage)};
    return {};
  };
  switch (spec.kind) {
    case ArgKind::kInt: return std::holds_alternative<int64_t>(arg) ? Result<void>() : wrong("a number");
    case ArgKind::kInts: return std::holds_alternative<std::vector<int64_t>>(arg) ? Result<void>() : wrong("numbers");
    case ArgKind::kStage:
      if (!std::holds_alternative<std::string>(arg)) return wrong("a stage");
      if (std::get<std::string>(arg).empty() && spec.default_text) return {};
      if (!state.find(std::get<std::string>(arg)))
        return Failure{"unknown-stage",
                       "no stage '" + std::get<std::string>(arg) + "'; the stages are " + names_of_stages(state)};
      return {};
    case ArgKind::kLoop:
      return std::holds_alternative<std::string>(arg) ? check_loop(std::get<std::string>(arg)) : wrong("a loop");
    case ArgKind::kLoops:
      if (!std::holds_alternative<std::vector<std::string>>(arg)) return wrong("a list of loops");
      for (const std::string& name : std::get<std::vector<std::string>>(arg))
        if (Result<void> ok = check_loop(name); !ok) return ok;
      return {};
    case ArgKind::kNewName:
      if (!std::holds_alternative<std::string>(arg) || std::get<std::string>(arg).empty()) return wrong("a new name");
      return {};
    case ArgKind::kNewNames:
      if (!std::holds_alternative<std::vector<std::string>>(arg)) return wrong("a list of new names");
      for (const std::string& name : std::get<std::vector<std::string>>(arg))
        if (name.empty()) return wrong("names that are not empty");
      return {};
    case ArgKind::kText: {
      if (!std::holds_alternative<std::string>(arg)) return wrong("a text");
      const std::string& text = std::get<std::string>(arg);
      if (!spec.allowed.empty() && std::find(spec.allowed.begin(), spec.allowed.end(), text) == spec.allowed.end()) {
        std::string choices;
        for (const std::string& choice : spec.allowed) choices += (choices.empty() ? "" : ", ") + choice;
        return wrong("one of " + choices + ", got '" + text + "'");
      }
      return {};
    }
  }
  return {};
}

}  // namespace

StepArg default_arg(const ArgSpec& spec) {
  if (spec.kind == ArgKind::kInts) return std::vector<int64_t>();
  if (spec.kind != ArgKind::kInt) return std::string(spec.default_text);
  int64_t value = 0;
  const std::string text = spec.default_text;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Failure unknown_primitive(const std::string& name) {
  std::string known;
  for (const PrimitiveDef* p : all_primitives()) known += (known.empty() ? "" : ", ") + p->name;
  return {"unknown-primitive", "no primitive '" + name + "'; the primitives are " + known};
}

Result<Step> check_schema(const ScheduleState& state, const Step& step) {
  const PrimitiveDef* def = find_primitive(step.primitive);
  if (!def) return unknown_primitive(step.primitive);
  Step full{step.primitive, {}};
  for (const ArgSpec& spec : def->args) {
    if (const StepArg* arg = step.find(spec.name)) {
      full.args.emplace_back(spec.name, *arg);
    } else if (spec.default_text) {
      full.args.emplace_back(spec.name, default_arg(spec));
    } else {
      return Failure{"missing-step-argument",
                     step.primitive + ": missing argument " + spec.name + " (" + spec.doc + ")"};
    }
  }
  for (const auto& [name, value] : step.args)
    if (std::none_of(def->args.begin(), def->args.end(), [&](const ArgSpec& s) { return name == s.name; }))
      return Failure{"unknown-step-argument", step.primitive + " has no argument '" + name + "'"};
  for (const ArgSpec& spec : def->args)
    if (Result<void> ok = check_arg(state, full, spec, *full.find(spec.name)); !ok) return ok.failure();
  return full;
}

Result<void> draw_decision(const ScheduleState& state, Step& step, Rng& rng) {
  const PrimitiveDef& def = *find_primitive(step.primitive);
  if (!def.draw || !step.numbers("decision").empty()) return {};
  const Result<std::vector<int64_t>> drawn = def.draw(state, step, rng);
  if (!drawn) return drawn.failure();
  for (auto& [name, value] : step.args)
    if (name == "decision") value = drawn.value();
  return {};
}

Result<void> apply_step(ScheduleState& state, const Step& step) {
  const PrimitiveDef& def = *find_primitive(step.primitive);
  if (Result<void> legal = def.check(state, step); !legal) return legal;
  const auto has_window = [](const StageState& s) { return s.window != Window::kNone; };
  if (def.keeps_places && std::none_of(state.stages.begin(), state.stages.end(), has_window) &&
      !has_prefetches(state)) {
    def.apply(state, step);
    return {};
  }
  ScheduleState next = state;
  def.apply(next, step);
  if (Result<void> places = check_places(next); !places) return places;
  if (Result<void> prefetches = check_prefetches(next); !prefetches) return prefetches;
  state = std::move(next);
  return {};
}

}  // namespace tensmith
