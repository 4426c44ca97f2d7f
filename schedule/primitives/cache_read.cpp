#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const StageState& consumer = *state.find(step.text("consumer"));
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (stage.stage->outputs.size() != 1)
    return Failure{"cache-outputs", "stage " + stage.name + " has several outputs; only stages with one can be cached"};
  if (stage.attach == AttachKind::kInlined)
    return Failure{"cache-inlined", "stage " + stage.name + " is inlined; use compute_root first"};
  for (int user : state.consumers_of(static_cast<int>(&stage - state.stages.data())))
    if (state.stages[user].name == consumer.name) return {};
  return Failure{"cache-no-reader", "stage " + consumer.name + " does not read " + stage.name};
}

void apply(ScheduleState& state, const Step& step) {
  const StageState& source = *state.find(step.text("stage"));
  const Buffer original = source.stage->outputs[0];
  auto* node = new StageNode;
  const Stage keep(node);
  node->stage_kind = StageKind::kCompute;
  node->name = step.text("name");
  std::vector<Expr> indices;
  for (size_t d = 0; d < original->shape.size(); ++d) {
    node->axes.push_back({Var("i" + std::to_string(d)), original->shape[d]});
    indices.push_back(node->axes.back().var);
  }
  node->bodies = {load(original, indices)};
  node->outputs = {make_buffer(step.text("name"), original->dtype, original->shape)};
  node->producers = {source.stage};
  const BufferMap map{{original.get(), node->outputs[0]}};
  StageState* consumer = state.find(step.text("consumer"));
  consumer->stage = rebuild_stage(consumer->stage, [&](StageNode& n) {
    for (Expr& body : n.bodies) body = substitute_buffers(body, map);
    for (Expr& initial : n.initial) initial = substitute_buffers(initial, map);
    n.where = substitute_buffers(n.where, map);
    n.imperative = substitute_buffers(n.imperative, map);
    for (Buffer& b : n.reads)
      if (b.same_as(original)) b = node->outputs[0];
    n.producers.push_back(keep);
  });
  // The copy is made where its source is.
  StageState copy = fresh_stage(keep, step.text("name"));
  copy.attach = source.attach;
  copy.attach_stage = source.attach_stage;
  copy.attach_loop = source.attach_loop;
  state.stages.insert(state.stages.begin() + (consumer - state.stages.data()), copy);
}

}  // namespace

const PrimitiveDef& cache_read_primitive() {
  static const PrimitiveDef def{.name = "cache_read",
                                .doc =
                                    "Puts a stage that copies a tensor between it and one of its readers; the copy\n"
                                    "can have its own place, layout and scope.\n"
                                    "Rewrite: C reads A  -->  A'[i] = A[i]; C reads A'",
                                .halide = "in",
                                .tvm = "cache_read",
                                .args = {{"stage", ArgKind::kStage, "the stage or input that is read"},
                                         {"consumer", ArgKind::kStage, "the reader"},
                                         {"name", ArgKind::kNewName, "name of the copying stage"}},
                                .check = check,
                                .apply = apply,
                                .samples = {{"dense", {"cache_read stage=A consumer=C name=Ac"}}}};
  return def;
}

}  // namespace tensmith
