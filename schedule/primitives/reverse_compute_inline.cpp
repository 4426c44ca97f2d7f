#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

int only_producer(const ScheduleState& state, const StageState& stage) {
  int found = -1;
  for (const Buffer& read : read_buffers(*stage.stage)) {
    const int from = state.producer_of(read.get());
    if (state.stages[from].stage->stage_kind == StageKind::kPlaceholder) continue;
    if (found >= 0 && found != from) return -1;
    found = from;
  }
  return found;
}

bool only_copies(const StageState& stage) {
  const std::vector<Expr>& bodies = stage.stage->bodies;
  return bodies.size() == 1 && bodies[0].kind() == NodeKind::kLoad;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (stage.stage->reducer) return Failure{"inline-reduction", "stage " + stage.name + " is a reduction"};
  const int index = only_producer(state, stage);
  if (index < 0)
    return Failure{"inline-producers", "stage " + stage.name + " reads no other stage, or several; expected one"};
  const StageState& producer = state.stages[index];
  if (Result<void> ok = check_has_loops(producer); !ok) return ok;
  if (producer.stage->reducer && !only_copies(stage))
    return Failure{"inline-reduction", "stage " + producer.name +
                                           " is a reduction, whose parts are no results yet, and " + stage.name +
                                           " does more than copy it; compute it at a loop of " + stage.name};
  if (state.is_output(index))
    return Failure{"inline-output", "stage " + producer.name + " is an output of the workload"};
  if (state.consumers_of(index).size() != 1)
    return Failure{"inline-producers", "stage " + producer.name + " is read by others, too"};
  if (Result<void> ok = check_unscheduled(stage); !ok) return ok;
  if (Result<void> ok = check_no_attached(state, stage); !ok) return ok;
  if (stage.attach != producer.attach || stage.attach_stage != producer.attach_stage ||
      stage.attach_loop != producer.attach_loop)
    return Failure{"inline-places", "stages " + stage.name + " and " + producer.name +
                                        " are computed at different places; expected the same"};
  for (const LoopRelation& r : producer.relations)
    if (r.kind == LoopRelation::Kind::kSplit && r.tail == Tail::kPad)
      return Failure{"pad-of-output", "stage " + producer.name + " has a padded tail, for which the storage of " +
                                          stage.name + " need not have room; use tail=guard or tail=peel"};
  const Result<std::vector<int>> axes = matching_axes(state, stage, index);
  if (!axes) return axes.failure();
  if (axes->size() != stage.stage->axes.size())
    return Failure{"inline-axes", "stage " + stage.name + " has more axes than " + producer.name +
                                      ", whose loops would not reach all of its elements"};
  return {};
}

/// Replaces reads of the producer's outputs by its expressions.
class ReadReplacer : public Mutator {
 public:
  explicit ReadReplacer(const StageNode& producer) : producer_(producer) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    if (const auto* read = e.as<Load>())
      for (size_t o = 0; o < producer_.outputs.size(); ++o)
        if (producer_.outputs[o].same_as(read->buffer)) return producer_.bodies[o];
    return mutate_children(e);
  }

 private:
  const StageNode& producer_;
};

void apply(ScheduleState& state, const Step& step) {
  const StageState reader = *state.find(step.text("stage"));
  const int index = only_producer(state, reader);
  const StageState producer = state.stages[index];
  const std::vector<int> axes = matching_axes(state, reader, index).value();
  VarMap map;
  for (size_t d = 0; d < axes.size(); ++d) map[reader.stage->axes[axes[d]].var.get()] = producer.stage->axes[d].var;
  const Stage merged = rebuild_stage(producer.stage->reducer ? producer.stage : reader.stage, [&](StageNode& node) {
    node.axes = producer.stage->axes;
    // The reader's dims in its own order: axes of the stage are those of its outputs.
    for (size_t d = 0; d < axes.size(); ++d) node.axes[axes[d]] = producer.stage->axes[d];
    node.name = reader.stage->name;
    node.outputs = reader.stage->outputs;
    if (producer.stage->reducer) return;
    ReadReplacer replacer(*producer.stage);
    for (Expr& body : node.bodies) body = replacer.mutate(substitute(body, map));
    node.producers.insert(node.producers.end(), producer.stage->producers.begin(), producer.stage->producers.end());
  });
  StageState result = producer;
  result.name = reader.name;
  result.stage = merged;
  for (size_t d = 0; d < axes.size(); ++d) result.axis_loops[axes[d]] = producer.axis_loops[d];
  result.scope = reader.scope;
  result.layouts = reader.layouts;
  result.align_elements = reader.align_elements;
  result.notes.insert(reader.notes.begin(), reader.notes.end());
  *state.find(reader.name) = result;
  state.stages.erase(state.stages.begin() + index);
  rename_places(state, producer.name, reader.name);
}

}  // namespace

const PrimitiveDef& reverse_compute_inline_primitive() {
  static const PrimitiveDef def{
      .name = "reverse_compute_inline",
      .doc =
          "Puts a stage into the only stage that it reads: that one then computes the reader's values directly, by\n"
          "its own loops. Both are elementwise to each other; of a reduction the reader may only be a copy.\n"
          "Rewrite: P[i] = f(i) by P's loops; C[i] = g(P[i])  -->  C[i] = g(f(i)) by P's loops",
      .halide = "none",
      .tvm = "reverse_compute_inline",
      .args = {{"stage", ArgKind::kStage, "the reader"}},
      .check = check,
      .apply = apply,
      .samples = {{"stencils",
                   {"split stage=C loop=i0 factor=4 outer=io inner=ii", "parallel stage=C loop=io",
                    "reverse_compute_inline stage=Q"}},
                  {"dense",
                   {"cache_write stage=C name=Cacc", "split stage=Cacc loop=r0 factor=4 outer=ko inner=ki",
                    "reverse_compute_inline stage=C"}}}};
  return def;
}

}  // namespace tensmith
