#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/equal_hash.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const StageState& producer = *state.find(step.text("producer"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (producer.attach == AttachKind::kInlined)
    return Failure{"cache-inlined", "stage " + producer.name + " is inlined; use compute_root first"};
  const Result<Expr> place = place_read(state, stage, producer.name, step.number("read"));
  if (!place) return place.failure();
  VarMap renamed;
  if (axes_in(*stage.stage, {place.value()}, &renamed).empty())
    return Failure{"reindex-constant", "stage " + stage.name + " reads one place of " + producer.name +
                                           " whatever its axes, so there is nothing to lay out; use cache_read"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const Expr place = place_read(state, stage, step.text("producer"), step.number("read")).value();
  VarMap renamed;
  const std::vector<Axis> axes = axes_in(*stage.stage, {place}, &renamed);
  std::vector<Expr> own;
  for (const std::vector<Axis>* list : {&stage.stage->axes, &stage.stage->reduce_axes})
    for (const Axis& axis : *list)
      if (renamed.count(axis.var.get())) own.push_back(axis.var);
  const StageState producer = *state.find(step.text("producer"));
  const std::string stage_name = stage.name, name = step.text("name");
  insert_stage(state, stage_name, producer, name, axes, evaluable(substitute(place, renamed), axes));
  StageState& reader = *state.find(stage_name);
  const Expr there = load(buffer_of(state, name), own);
  reader.stage = rebuild_stage(reader.stage, [&](StageNode& node) {
    rewrite_expressions(node, [&](const Expr& e) {
      return rewrite(e, [&](const Expr& part) { return equal(part, place) ? there : part; });
    });
    node.producers.push_back(state.find(name)->stage);
  });
}

}  // namespace

const PrimitiveDef& reindex_primitive() {
  static const PrimitiveDef def{
      .name = "reindex",
      .doc =
          "Copies what a stage reads of a tensor into the order of the stage's own axes: the copy has one dimension\n"
          "for each axis that the index uses (reduction axes behind the others), so that the stage reads it at\n"
          "plain axes (im2col of a convolution, the rows that a gather takes). The copy can have its own place,\n"
          "layout and scope. Results have the order of their axes already: for those use cache_write and\n"
          "transform_layout.\n"
          "Rewrite: C[i, j] += A[2 * i + k] * B[k, j]  -->  A'[i, k] = A[2 * i + k]; C[i, j] += A'[i, k] * B[k, j]",
      .halide = "none",
      .tvm = "reindex (of reads), reindex_cache_read",
      .args = {{"stage", ArgKind::kStage, "the reader"},
               {"producer", ArgKind::kStage, "the stage or input that is read"},
               {"name", ArgKind::kNewName, "name of the copying stage"},
               {"read", ArgKind::kInt, "which of the different places that it reads, in order of appearance", "0"}},
      .check = check,
      .apply = apply,
      .samples = {
          {"conv", {"reindex stage=Y producer=X name=Xr"}},
          {"stencils", {"reindex stage=C producer=P name=Pr read=2"}},
          {"depthwise", {"split stage=Y loop=i2 factor=3 outer=yo inner=yi", "reindex stage=Y producer=X name=Xr"}}}};
  return def;
}

}  // namespace tensmith
