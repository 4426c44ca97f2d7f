#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (Result<void> ok = check_no_attached(state, stage); !ok) return ok;
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (!stage.relations.empty())
    return Failure{"cache-after-split",
                   "stage " + stage.name + " already has split or fused loops; use cache_write first"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int position = static_cast<int>(&stage - state.stages.data());
  const Stage original = stage.stage;
  // The new stage takes over the computation with fresh buffers; the old one becomes a copy of it.
  const Stage inner = rebuild_stage(original, [&](StageNode& node) {
    node.name = step.text("name");
    node.outputs.clear();
    for (const Buffer& output : original->outputs)
      node.outputs.push_back(make_buffer(step.text("name"), output->dtype, output->shape));
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
  StageState outer = fresh_stage(copy, stage.name);
  outer.attach = stage.attach;
  outer.attach_stage = stage.attach_stage;
  outer.attach_loop = stage.attach_loop;
  outer.scope = stage.scope;
  outer.layouts = stage.layouts;
  // What the computation reads may itself be computed there.
  StageState computing = fresh_stage(inner, step.text("name"));
  computing.attach = stage.attach;
  computing.attach_stage = stage.attach_stage;
  computing.attach_loop = stage.attach_loop;
  state.stages[position] = outer;
  state.stages.insert(state.stages.begin() + position, computing);
}

}  // namespace

const PrimitiveDef& cache_write_primitive() {
  static const PrimitiveDef def{
      .name = "cache_write",
      .doc =
          "Computes a stage into a buffer of its own, which the stage then copies out; the copy may be tiled and the "
          "computation be\n"
          "done per tile in registers.\n"
          "Rewrite: C[i] = f(i)  -->  C'[i] = f(i); C[i] = C'[i]",
      .halide = "in (of the output)",
      .tvm = "cache_write",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"name", ArgKind::kNewName, "name of the computing stage"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"cache_write stage=C name=Cacc"}}}};
  return def;
}

}  // namespace tensmith
