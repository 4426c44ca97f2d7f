/// What read_at and write_at share: a copy between a stage and memory near by, made of other steps.
#pragma once

#include <functional>

#include "schedule/primitive_def.h"

namespace tensmith {

/// Completes a primitive that is other steps one after another: the arguments `scope` (`where` says of what) and
/// `lanes` behind those that `def` has, `check` and `apply`. `carry` gives the state behind the steps.
PrimitiveDef near_copy_primitive(PrimitiveDef def, const char* where,
                                 Result<ScheduleState> (*carry)(const ScheduleState&, const Step&));

/// The last of those steps: stage `near` in the step's scope (auto: lowering chooses), the innermost loop of the stage
/// `copy`, inside which nothing is, in vectors of the step's lanes (1: as it is).
/// Errors: those of set_scope; bad-lanes; copy-without-loops.
Result<ScheduleState> with_near_copy(const ScheduleState& state, const Step& step, const std::string& near,
                                     const std::string& copy);

}  // namespace tensmith
