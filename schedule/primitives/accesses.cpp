#include "schedule/primitives/accesses.h"

#include <algorithm>

#include "schedule/primitive_def.h"
#include "schedule/primitives/helpers.h"
#include "tensor/equal_hash.h"
#include "tensor/simplify.h"

namespace tensmith {

void for_each_expression(const StageNode& stage, const std::function<void(const Expr&)>& fn) {
  for (const Expr& body : stage.bodies) fn(body);
  if (stage.where.get() != nullptr) fn(stage.where);
  for (const Expr& initial : stage.initial) fn(initial);
}

void rewrite_expressions(StageNode& stage, const std::function<Expr(const Expr&)>& fn) {
  for (Expr& body : stage.bodies) body = fn(body);
  if (stage.where.get() != nullptr) stage.where = fn(stage.where);
  for (Expr& initial : stage.initial) initial = fn(initial);
}

std::vector<Expr> places_read(const ScheduleState& state, const StageState& stage, int producer) {
  std::vector<Expr> places;
  for_each_expression(*stage.stage, [&](const Expr& expression) {
    visit(expression, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (read && state.producer_of(read->buffer.get()) == producer &&
          std::none_of(places.begin(), places.end(), [&](const Expr& p) { return equal(p, e); }))
        places.push_back(e);
      return true;
    });
  });
  return places;
}

Result<Expr> place_read(const ScheduleState& state, const StageState& stage, const std::string& producer,
                        int64_t read) {
  const std::vector<Expr> places =
      places_read(state, stage, static_cast<int>(state.find(producer) - state.stages.data()));
  if (places.empty()) return Failure{"cache-no-reader", "stage " + stage.name + " does not read " + producer};
  if (read < 0 || read >= static_cast<int64_t>(places.size()))
    return Failure{"bad-read", "read: stage " + stage.name + " reads " + producer + " at " +
                                   std::to_string(places.size()) + " places, numbered from 0, got " +
                                   std::to_string(read)};
  return places[read];
}

std::vector<Axis> axes_in(const StageNode& stage, const std::vector<Expr>& expressions, VarMap* renamed) {
  std::vector<Axis> axes;
  for (const std::vector<Axis>* own : {&stage.axes, &stage.reduce_axes})
    for (const Axis& axis : *own) {
      if (std::none_of(expressions.begin(), expressions.end(), [&](const Expr& e) { return uses_var(e, axis.var); }))
        continue;
      axes.push_back({Var(axis.var.name()), axis.extent});
      (*renamed)[axis.var.get()] = axes.back().var;
    }
  return axes;
}

Expr evaluable(const Expr& e, const std::vector<Axis>& axes) {
  Facts facts;
  for (const Axis& axis : axes) facts.set_range(axis.var, Expr(0), axis.extent);
  return rewrite(e, [&](const Expr& rebuilt) -> Expr {
    const auto* read = rebuilt.as<Load>();
    if (!read) return rebuilt;
    Expr inside;
    for (size_t d = 0; d < read->indices.size(); ++d)
      for (const Expr& part : {read->indices[d] >= 0, read->indices[d] < read->buffer->shape[d]})
        if (!can_prove(part, facts)) inside = inside.get() == nullptr ? part : (inside && part);
    return inside.get() == nullptr ? rebuilt : select(inside, rebuilt, make_zero(rebuilt.dtype()));
  });
}

std::vector<Stage> producers_of(const ScheduleState& state, const std::vector<Buffer>& buffers) {
  std::vector<Stage> producers;
  for (const Buffer& buffer : buffers) {
    const int index = state.producer_of(buffer.get());
    if (index < 0) continue;
    const Stage& stage = state.stages[index].stage;
    if (std::none_of(producers.begin(), producers.end(), [&](const Stage& s) { return s.same_as(stage); }))
      producers.push_back(stage);
  }
  return producers;
}

const Buffer& buffer_of(const ScheduleState& state, const std::string& stage) {
  return state.find(stage)->stage->outputs[0];
}

void insert_stage(ScheduleState& state, const std::string& before, const StageState& place, const std::string& name,
                  const std::vector<Axis>& axes, const Expr& body) {
  auto* node = new StageNode;
  const Stage keep(node);
  node->stage_kind = StageKind::kCompute;
  node->name = name;
  node->axes = axes;
  node->bodies = {body};
  std::vector<Expr> shape;
  for (const Axis& axis : axes) shape.push_back(axis.extent);
  node->outputs = {make_buffer(name, body.dtype(), shape)};
  node->producers = producers_of(state, read_buffers(*node));
  StageState fresh = fresh_stage(keep, name);
  fresh.attach = place.attach == AttachKind::kAt ? AttachKind::kAt : AttachKind::kRoot;
  fresh.attach_stage = place.attach_stage;
  fresh.attach_loop = place.attach_loop;
  state.stages.insert(state.stages.begin() + (state.find(before) - state.stages.data()), fresh);
}

int split_off_copy(ScheduleState& state, const std::string& stage, const std::string& name) {
  const int position = static_cast<int>(state.find(stage) - state.stages.data());
  const Stage original = state.stages[position].stage;
  // The new stage takes over the computation with fresh buffers; the old one becomes a copy of it.
  const Stage inner = rebuild_stage(original, [&](StageNode& node) {
    node.name = name;
    node.outputs.clear();
    for (const Buffer& output : original->outputs)
      node.outputs.push_back(make_buffer(name, output->dtype, output->shape));
  });
  const Stage copy = rebuild_stage(original, [&](StageNode& node) {
    node.reduce_axes.clear();
    node.reducer.reset();
    node.where = {};
    node.initial.clear();
    node.bodies.clear();
    node.producers = {inner};
    // Own axis variables, since both stages are lowered into one function.
    std::vector<Expr> indices;
    for (Axis& axis : node.axes) {
      axis.var = Var(axis.var.name());
      indices.push_back(axis.var);
    }
    for (const Buffer& output : inner->outputs) node.bodies.push_back(load(output, indices));
  });
  StageState outer = fresh_stage(copy, stage);
  StageState computing = state.stages[position];
  outer.attach = computing.attach;
  outer.attach_stage = computing.attach_stage;
  outer.attach_loop = computing.attach_loop;
  outer.scope = computing.scope;
  outer.layouts = computing.layouts;
  outer.align_elements = computing.align_elements;
  outer.separators = computing.separators;
  computing.name = name;
  computing.stage = inner;
  computing.scope.reset();
  computing.layouts.assign(inner->outputs.size(), Layout());
  computing.align_elements = 0;
  computing.separators.clear();
  rename_places(state, stage, name);
  state.stages[position] = outer;
  state.stages.insert(state.stages.begin() + position, computing);
  return position;
}

Result<ScheduleState> after_steps(const ScheduleState& state, const std::vector<Step>& steps) {
  ScheduleState next = state;
  for (const Step& step : steps) {
    const Result<Step> full = check_schema(next, step);
    if (!full) return full.failure();
    if (Result<void> done = apply_step(next, full.value()); !done) return done.failure();
  }
  return next;
}

}  // namespace tensmith
