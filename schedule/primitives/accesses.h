/// Looks into what stages read, for primitives that put stages between a stage and its operands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/state.h"
#include "schedule/step.h"
#include "tensor/walk.h"

namespace tensmith {

/// Calls `fn` for each expression of the stage: bodies, the condition, start values.
void for_each_expression(const StageNode& stage, const std::function<void(const Expr&)>& fn);
/// Rewrites each of them in place.
void rewrite_expressions(StageNode& stage, const std::function<Expr(const Expr&)>& fn);

/// The different places (loads) at which the stage reads outputs of stage `producer`, in order of appearance.
std::vector<Expr> places_read(const ScheduleState& state, const StageState& stage, int producer);
/// The place with number `read` among those. Errors: cache-no-reader, bad-read.
Result<Expr> place_read(const ScheduleState& state, const StageState& stage, const std::string& producer, int64_t read);

/// The axes of the stage, reduce axes behind the others, that occur in the expressions; fresh variables for them in
/// `*renamed`.
std::vector<Axis> axes_in(const StageNode& stage, const std::vector<Expr>& expressions, VarMap* renamed);

/// The expression with loads that cannot be shown to lie inside their buffer made conditional: it can be evaluated for
/// all values of the axes, also where the stage that it comes from leaves it out. Loads outside give 0.
Expr evaluable(const Expr& e, const std::vector<Axis>& axes);

/// A stage of one output over the axes, computed where `place` is, in front of stage `before`.
void insert_stage(ScheduleState& state, const std::string& before, const StageState& place, const std::string& name,
                  const std::vector<Axis>& axes, const Expr& body);
/// The buffer of a stage of one output.
const Buffer& buffer_of(const ScheduleState& state, const std::string& stage);
/// The stages whose outputs are among `buffers`; keeps them alive in StageNode::producers.
std::vector<Stage> producers_of(const ScheduleState& state, const std::vector<Buffer>& buffers);

/// Splits a stage in two: `name` computes, as the stage does now, into buffers of its own; the stage copies from
/// there. The copy is fresh and stands behind the computing one, at the same place. What is computed at loops of the
/// stage stays with the computing one. Returns the index of the computing stage.
int split_off_copy(ScheduleState& state, const std::string& stage, const std::string& name);

/// Applies steps one after the other to a copy of the state. Errors: those of the first one that is illegal.
Result<ScheduleState> after_steps(const ScheduleState& state, const std::vector<Step>& steps);

}  // namespace tensmith
