#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const int64_t output = step.number("output");
  if (output < 0 || output >= static_cast<int64_t>(stage.stage->outputs.size()))
    return Failure{"bad-output", "stage " + stage.name + " has " + std::to_string(stage.stage->outputs.size()) + " outputs, got number " + std::to_string(output)};
  if (stage.attach == AttachKind::kInlined) return Failure{"no-loops", "stage " + stage.name + " is inlined and has no storage"};
  const Result<Layout> layout = Layout::parse(step.text("layout"), static_cast<int>(stage.stage->outputs[output]->shape.size()));
  if (!layout) return layout.failure();
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int64_t output = step.number("output");
  stage.layouts[output] = *Layout::parse(step.text("layout"), static_cast<int>(stage.stage->outputs[output]->shape.size()));
}

}  // namespace

const PrimitiveDef& transform_layout_primitive() {
  static const PrimitiveDef def{
      .name = "transform_layout",
      .doc = "Stores a tensor in another order, in blocks, or with a halo. Of an input or output the caller must provide that layout\n"
             "(constants are packed at compile time).\n"
             "Rewrite: B[k, j]  --layout 1/16,0,1%16-->  B[j / 16, k, j % 16]",
      .halide = "reorder_storage, fold_storage",
      .tvm = "transform_layout",
      .args = {{"stage", ArgKind::kStage, "the stage or input"},
               {"layout", ArgKind::kText, "physical dims: d, d/f, d%f, d/f%m, then ;halo d:before+after"},
               {"output", ArgKind::kInt, "which output of the stage", "0"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"transform_layout stage=B layout=1/16,0,1%16"}}}};
  return def;
}

}  // namespace tensmith
