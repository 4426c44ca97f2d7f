#include "schedule/intrinsics.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

/// The one loop over output elements inside `position` (or at it).
int lanes_loop(const StageState& stage, int position) {
  int found = -1;
  for (size_t k = position; k < stage.order.size(); ++k)
    if (!stage.loops[stage.order[k]].is_reduce) found = stage.order[k];
  return found;
}

/// The factor of the split that made the loop the inner one, or its extent; 0 when neither is a known number.
int64_t known_extent(const StageState& stage, int loop) {
  int64_t value = 0;
  if (const LoopRelation* made = stage.maker_of(loop))
    return made->kind == LoopRelation::Kind::kSplit && made->inner == loop ? made->factor : 0;
  for (size_t a = 0; a < stage.axis_loops.size(); ++a)
    if (stage.axis_loops[a] == loop && as_const_int(stage.stage->axes[a].extent, &value)) return value;
  for (size_t a = 0; a < stage.reduce_loops.size(); ++a)
    if (stage.reduce_loops[a] == loop && as_const_int(stage.stage->reduce_axes[a].extent, &value)) return value;
  return 0;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const TensorIntrinsic& intrinsic = *find_tensor_intrinsic(step.text("intrinsic"));
  const auto refuse = [&](const std::string& why) {
    return Failure{"tensorize-mismatch", "stage " + stage.name + " does not compute what " + intrinsic.name + " (" +
                                             intrinsic.doc + ") does: " + why};
  };
  if (stage.intrinsic_loop >= 0)
    return Failure{"loop-already-marked", "stage " + stage.name + " is tensorized already"};
  const int position = stage.order_position(stage.find_loop(step.text("loop")));
  const int count = static_cast<int>(stage.order.size()) - position;
  if (count != 2)
    return refuse("expected two loops from " + step.text("loop") + " inwards, got " + std::to_string(count));
  const int first = stage.order[position], second = stage.order[position + 1];
  if (stage.loops[first].is_reduce == stage.loops[second].is_reduce)
    return refuse("expected one loop over output elements and one reduction loop innermost");
  const int lanes = stage.loops[first].is_reduce ? second : first, reduced = lanes == first ? second : first;
  for (const int loop : {lanes, reduced}) {
    const ForKind kind = stage.loops[loop].kind;
    if (kind != ForKind::kSerial && !(loop == lanes && kind == ForKind::kVectorized))
      return Failure{"loop-already-marked", "loop " + stage.loops[loop].name + " is parallel or unrolled"};
    if (Result<void> ok = check_not_attach_point(state, stage, stage.loops[loop].name); !ok) return ok;
    if (!stage.loops[loop].cuts.empty()) return refuse("loop " + stage.loops[loop].name + " is cut into pieces");
  }
  if (known_extent(stage, reduced) != intrinsic.reduced)
    return refuse("expected " + std::to_string(intrinsic.reduced) + " iterations of " + stage.loops[reduced].name +
                  "; split it by that");
  const int64_t n = known_extent(stage, lanes);
  if (n < 1 || n > intrinsic.max_lanes)
    return refuse("expected 1 to " + std::to_string(intrinsic.max_lanes) + " iterations of " + stage.loops[lanes].name +
                  "; split it by the vector width");
  if (const Result<IntrinsicMatch> match = match_intrinsic(intrinsic, *stage.stage); !match)
    return refuse(match.failure().message);
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.intrinsic = step.text("intrinsic");
  stage.intrinsic_loop = stage.find_loop(step.text("loop"));
  // The start values, and pieces of other extents, are vectors in the ordinary way.
  stage.loops[lanes_loop(stage, stage.order_position(stage.intrinsic_loop))].kind = ForKind::kVectorized;
}

}  // namespace

const PrimitiveDef& tensorize_primitive() {
  static const PrimitiveDef def{
      .name = "tensorize",
      .doc =
          "Replaces the innermost two loops of a reduction by an intrinsic that computes the same\n"
          "(schedule/intrinsics.h gives each intrinsic's meaning as a compute definition, which the stage must\n"
          "match). Pieces of other extents (tails) stay loops.\n"
          "Rewrite: for j in 16: for k in 4: C[j] += i32(A[k]) * i32(B[j, k])\n"
          "    -->  C[0:16] = dot_accumulate(C[0:16], A[0:4] repeated, B[0:16, 0:4])",
      .halide = "none (patterns in code generation)",
      .tvm = "tensorize",
      .args = {{"stage", ArgKind::kStage, "the reduction"},
               {"loop", ArgKind::kLoop, "the outer one of the two loops"},
               {"intrinsic", ArgKind::kText, "its name", nullptr, {"dot_s8s8_i32", "dot_u8s8_i32"}}},
      .check = check,
      .apply = apply,
      .samples = {
          {"int8_dot",
           {"split stage=C loop=i1 factor=8 outer=jo inner=ji", "split stage=C loop=r0 factor=4 outer=ko inner=ki",
            "reorder stage=C loops=i0,jo,ko,ji,ki", "transform_layout stage=B layout=1/8,0/4,1%8,0%4",
            "tensorize stage=C loop=ji intrinsic=dot_u8s8_i32"}}}};
  return def;
}

}  // namespace tensmith
