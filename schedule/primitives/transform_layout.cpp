#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

/// Refuses a layout that puts several elements into one place: of each dim the parts must make up the whole index.
Result<void> check_keeps_elements(const Layout& layout) {
  for (int d = 0; d < layout.rank(); ++d)
    for (int64_t below = 1; below != 0;) {
      // The part that counts pieces of `below` elements.
      const auto part = std::find_if(layout.dims().begin(), layout.dims().end(),
                                     [&](const LayoutDim& p) { return p.dim == d && p.div == below && p.mod != 1; });
      if (part == layout.dims().end())
        return Failure{"layout-loses-elements",
                       "layout " + layout.text() + " puts several elements of dim " + std::to_string(d) +
                           " into one place: expected a part " + std::to_string(d) +
                           (below == 1 ? std::string(" or ") + std::to_string(d) + "%f" : "/" + std::to_string(below))};
      if (part->mod != 0 && below > (int64_t{1} << 40) / part->mod) break;  // larger than any extent
      below *= part->mod;
    }
  return {};
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const int64_t output = step.number("output");
  if (output < 0 || output >= static_cast<int64_t>(stage.stage->outputs.size()))
    return Failure{"bad-output", "stage " + stage.name + " has " + std::to_string(stage.stage->outputs.size()) +
                                     " outputs, got number " + std::to_string(output)};
  if (stage.attach == AttachKind::kInlined)
    return Failure{"no-loops", "stage " + stage.name + " is inlined and has no storage"};
  const Result<Layout> layout =
      Layout::parse(step.text("layout"), static_cast<int>(stage.stage->outputs[output]->shape.size()));
  if (!layout) return layout.failure();
  if (!stage.separators.empty() && stage.separators.back() >= static_cast<int64_t>(layout->dims().size()))
    return Failure{"bad-separators", "stage " + stage.name + " has a separator before dimension " +
                                         std::to_string(stage.separators.back()) +
                                         ", which this layout has not; use set_axis_separator behind this step"};
  return check_keeps_elements(*layout);
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int64_t output = step.number("output");
  stage.layouts[output] =
      *Layout::parse(step.text("layout"), static_cast<int>(stage.stage->outputs[output]->shape.size()));
}

}  // namespace

const PrimitiveDef& transform_layout_primitive() {
  static const PrimitiveDef def{
      .name = "transform_layout",
      .doc =
          "Stores a tensor in another order, in blocks, or with a halo. Of an input or output the caller must\n"
          "provide that layout (constants are packed at compile time).\n"
          "Rewrite: B[k, j]  --layout 1/16,0,1%16-->  B[j / 16, k, j % 16]",
      .halide = "reorder_storage, fold_storage",
      .tvm = "transform_layout",
      .args = {{"stage", ArgKind::kStage, "the stage or input"},
               {"layout", ArgKind::kText, "physical dims: d, d/f, d%f, d/f%m, then ;halo d:before+after"},
               {"output", ArgKind::kInt, "which output of the stage", "0"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"transform_layout stage=B layout=1/16,0,1%16"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
