/// The definition of a schedule primitive: everything that is known of it, in one file each under schedule/primitives/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/rng.h"
#include "schedule/state.h"
#include "schedule/step.h"

namespace tensmith {

enum class ArgKind : uint8_t { kStage, kLoop, kLoops, kNewName, kNewNames, kInt, kInts, kText };

struct ArgSpec {
  const char* name;
  ArgKind kind;
  const char* doc;
  const char* default_text = nullptr;  ///< null: required; of numbers only "", no numbers
  std::vector<std::string> allowed = {};
};

/// The argument that stands for one that is not given. Requires: it has a default.
StepArg default_arg(const ArgSpec& spec);

/// An example that tests and documentation are generated from: steps on one of the sample workloads of tests.
struct PrimitiveSample {
  const char* workload;            ///< name of a workload of tests/support/workloads.h
  std::vector<std::string> steps;  ///< text form; the last one is the primitive itself
};

struct PrimitiveDef {
  std::string name;
  std::string doc;          ///< first line: what it does; then `Rewrite:` before --> after
  std::string halide, tvm;  ///< counterparts
  std::vector<ArgSpec> args;
  /// Why the step is illegal, or ok. Never throws: search calls it often. Stages and loops named exist when it is
  /// called. Whether all stages stand right afterwards (schedule/places.h) is not its work but apply_step's.
  std::function<Result<void>(const ScheduleState&, const Step&)> check = nullptr;
  /// Carries the step out; may assume that `check` passed.
  std::function<void(ScheduleState&, const Step&)> apply = nullptr;
  std::vector<PrimitiveSample> samples = {};
  /// It neither moves stages nor changes who reads what: their places need no second look.
  bool keeps_places = false;
  /// Steps that decide at random: a legal value of their argument `decision` (a list of numbers, empty until it is
  /// drawn), which Schedule draws when it is not given. Null: the step decides nothing. Errors: as `check`.
  std::function<Result<std::vector<int64_t>>(const ScheduleState&, const Step&, Rng&)> draw = nullptr;
};

/// All primitives, one explicit list (primitives/primitive_list.cpp), alphabetical.
std::span<const PrimitiveDef* const> all_primitives();
/// Null when unknown.
const PrimitiveDef* find_primitive(const std::string& name);
/// What other compilers call a step, or what they need one for, and what does it here.
struct OtherName {
  std::string name, here;
};
/// Alphabetical; names that are also ours are left out.
std::span<const OtherName> other_names();
/// The failure `unknown-primitive`, which lists the primitives that there are.
Failure unknown_primitive(const std::string& name);

/// Fills in defaults and checks names and kinds of arguments against the schema, and that stages and loops exist.
Result<Step> check_schema(const ScheduleState& state, const Step& step);
/// Draws the decision of a step that has none yet (see PrimitiveDef::draw); others stay as they are.
Result<void> draw_decision(const ScheduleState& state, Step& step, Rng& rng);
/// Legality, application, and whether all stages still stand right. The state is unchanged on failure.
Result<void> apply_step(ScheduleState& state, const Step& step);

}  // namespace tensmith
