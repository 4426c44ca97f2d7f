// Each reason for which a step or a schedule can be refused, by its id.
#include <gtest/gtest.h>

#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

struct Refusal {
  const char* id;
  const char* workload;
  std::vector<std::string> before;
  std::string step;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.id << ": " << refusal.step; }

/// A copy by statements, read by and reading an elementwise stage; beside it a stage with several outputs.
SizedWorkload statements_workload() {
  const Tensor x = placeholder("X", {8}, kFloat32);
  const Tensor a = compute("A", {8}, [&](const Indices& i) { return x(i) + make_const(kFloat32, 1); });
  const Tensor s = imperative("S", {a}, {{Expr(8)}}, {kFloat32}, [&](const std::vector<Buffer>& out) {
    const Var i("i");
    return For::make(i, Expr(0), Expr(8), ForKind::kSerial, Store::make(out[0], {Expr(7) - i}, a(Expr(i))));
  })[0];
  const std::vector<Tensor> two = compute_multi("T", {8}, [&](const Indices& i) {
    return std::vector<Expr>{s(i), s(i) * make_const(kFloat32, 2)};
  });
  const Tensor out = compute("Y", {8}, [&](const Indices& i) { return two[0](i) + two[1](i); });
  return {make_workload("statements", {x}, {out}), {}};
}

/// An output that its reader needs shifted, and a reduction whose condition reads memory.
SizedWorkload outputs_workload() {
  const Tensor x = placeholder("X", {9}, kFloat32), keep = placeholder("K", {9}, kBool);
  const Tensor p = compute("P", {9}, [&](const Indices& i) { return x(i) + make_const(kFloat32, 1); });
  const Tensor c = compute("C", {8}, [&](const Indices& i) { return p(i[0] + 1); });
  const Tensor w = reduce(
      "W", {8}, {9}, sum_reducer(kFloat32), [&](const Indices&, const Indices& r) { return x(r[0]); },
      [&](const Indices&, const Indices& r) { return keep(r[0]); });
  const Tensor y = compute("Y", {8}, [&](const Indices& i) { return w(i) + c(i); });
  return {make_workload("outputs", {x, keep}, {p, y}), {}};
}

SizedWorkload named(const std::string& name) {
  if (name == "statements") return statements_workload();
  if (name == "outputs") return outputs_workload();
  if (name == "large") return {dense_workload(32, 32, 8), {}};
  return sample_workload(name);
}

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, HasItsId) {
  const Refusal& refusal = GetParam();
  Schedule schedule = make_schedule(named(refusal.workload).workload, refusal.before);
  const std::string before = schedule.to_string();
  const Step step = parse_step(refusal.step).value();
  const Result<void> result = schedule.try_apply(step);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.failure().id, refusal.id) << result.failure().message;
  EXPECT_EQ(schedule.to_string(), before) << "a refused step must leave the schedule as it is";
  // A message in lower case that names what the step named, without a full stop.
  EXPECT_FALSE(result.failure().message.ends_with(".")) << result.failure().message;
  try {
    schedule.apply(step);
    FAIL();
  } catch (const ScheduleError& error) {
    EXPECT_NE(std::string(error.what()).find(result.failure().message), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("stage "), std::string::npos) << "the error shows the loop nests";
  }
}

const std::vector<std::string> kNone = {};
const std::string kSplitIo = "split stage=C loop=i0 factor=3 outer=io inner=ii";

INSTANTIATE_TEST_SUITE_P(
    Schema, RefusalTest,
    testing::Values(Refusal{"unknown-stage", "dense", kNone, "unroll stage=Q loop=i0"},
                    Refusal{"unknown-loop", "dense", kNone, "unroll stage=C loop=q"},
                    Refusal{"unknown-loop", "dense", kNone, "reorder stage=C loops=i0,q"},
                    Refusal{"missing-step-argument", "dense", kNone, "unroll stage=C"},
                    Refusal{"bad-step-argument", "dense", kNone, "set_scope stage=C scope=disk"},
                    Refusal{"bad-step-argument", "dense", kNone,
                            "split stage=C loop=i0 factor=2 outer=a inner=b tail=cut"},
                    Refusal{"bad-step-argument", "dense", kNone, "split stage=C loop=i0 factor=2 outer= inner=b"},
                    Refusal{"no-loops", "dense", kNone, "storage_align stage=A elements=8"},
                    Refusal{"no-loops", "statements", kNone, "set_scope stage=S scope=stack"},
                    Refusal{"no-loops", "softmax", {"compute_inline stage=e"}, "cache_write stage=e name=e2"}));

INSTANTIATE_TEST_SUITE_P(
    Sampling, RefusalTest,
    testing::Values(
        Refusal{"sample-extent", "dense_m", kNone, "sample_tile stage=C loop=i0 names=a,b"},
        Refusal{"bad-step-argument", "dense", kNone, "sample_tile stage=C loop=r0 names=a"},
        Refusal{"bad-factor", "dense", kNone, "sample_tile stage=C loop=r0 names=a,b max_inner=0"},
        Refusal{"bad-decision", "complex_product", kNone, "sample_tile stage=C loop=i0 names=a,b decision=2,3"},
        Refusal{"bad-decision", "complex_product", kNone, "sample_tile stage=C loop=i0 names=a,b decision=4"},
        Refusal{"bad-decision", "complex_product", kNone,
                "sample_tile stage=C loop=i0 names=a,b max_inner=2 decision=1,4"},
        Refusal{"bad-decision", "complex_product", kNone, "sample_tile stage=C loop=i0 names=a,b decision=-2,-2"},
        Refusal{"duplicate-loop", "complex_product", kNone, "sample_tile stage=C loop=i0 names=i1,b"},
        Refusal{"bad-sample-weights", "dense", kNone,
                "sample_categorical stage=C loop=r0 key=unroll values=1,2 weights=1"},
        Refusal{"bad-sample-weights", "dense", kNone,
                "sample_categorical stage=C loop=r0 key=unroll values=1,2 weights=0,0"},
        Refusal{"bad-annotation", "dense", kNone, "sample_categorical stage=C loop=r0 key=unroll values=1,0"},
        Refusal{"unknown-annotation", "dense", kNone, "sample_categorical stage=C loop=r0 key=speed values=1"},
        Refusal{"bad-step-argument", "dense", kNone, "sample_categorical stage=C loop=r0 key=unroll values="},
        Refusal{"bad-decision", "dense", kNone, "sample_categorical stage=C loop=r0 key=unroll values=1,2 decision=2"},
        Refusal{"bad-decision", "dense", kNone, "sample_location stage=C consumer=R decision=2"},
        Refusal{"compute-at-input", "dense", kNone, "sample_location stage=A consumer=C"}));

INSTANTIATE_TEST_SUITE_P(
    StagesAtOnce, RefusalTest,
    testing::Values(Refusal{"group-no-path", "stencils", kNone, "group stage=P from=C consumer=Q at=i0"},
                    Refusal{"compute-at-self", "stencils", kNone, "group stage=Q from=C consumer=Q at=i0"},
                    Refusal{"unknown-loop", "stencils", kNone, "group stage=C from=P consumer=Q at=none"},
                    Refusal{"duplicate-loop", "dense", kNone, "unit_loop stage=C name=r0"},
                    Refusal{"no-loops", "dense", kNone, "unit_loop stage=A name=u"},
                    Refusal{"dtype-illegal", "stencils", kNone, "unsafe_set_dtype stage=Q dtype=f64"},
                    Refusal{"dtype-illegal", "dense", kNone, "unsafe_set_dtype stage=C dtype=f64"},
                    Refusal{"dtype-illegal", "statements", kNone, "unsafe_set_dtype stage=A dtype=f64"},
                    Refusal{"dtype-illegal", "stencils", kNone, "unsafe_set_dtype stage=P dtype=f32x4"},
                    Refusal{"bad-dtype", "stencils", kNone, "unsafe_set_dtype stage=P dtype=f33"},
                    Refusal{"epilogue-illegal", "stencils", kNone, "fuse_reduction_epilogue stage=Q producer=C"},
                    Refusal{"epilogue-illegal", "siblings", kNone, "fuse_reduction_epilogue stage=Y producer=S"},
                    Refusal{"epilogue-illegal", "softmax", kNone, "fuse_reduction_epilogue stage=e producer=m"},
                    Refusal{"cache-no-reader", "dense", kNone, "annotate stage=C key=note.x value=1 access=bias"},
                    Refusal{"unknown-annotation", "dense", kNone,
                            "annotate stage=C loop=r0 key=note.x value=1 access=A"},
                    Refusal{"unknown-annotation", "dense", kNone, "annotate stage=C key=unroll value=1 access=A"},
                    Refusal{"no-annotation", "dense", kNone, "unannotate stage=C key=note.x access=A"},
                    Refusal{"inline-reduction", "dense", kNone, "reverse_compute_inline stage=R"}));

INSTANTIATE_TEST_SUITE_P(
    Loops, RefusalTest,
    testing::Values(
        Refusal{"bad-factor", "dense", kNone, "split stage=C loop=i0 factor=0 outer=a inner=b"},
        Refusal{"duplicate-loop", "dense", kNone, "split stage=C loop=i0 factor=2 outer=i1 inner=b"},
        Refusal{"duplicate-loop", "dense", kNone, "split stage=C loop=i0 factor=2 outer=a inner=a"},
        Refusal{"split-of-marked-loop",
                "dense",
                {"parallel stage=C loop=i0"},
                "split stage=C loop=i0 factor=2 outer=a inner=b"},
        Refusal{"attach-point",
                "dense",
                {"compute_at stage=C consumer=R at=i0"},
                "split stage=R loop=i0 factor=2 outer=a inner=b"},
        Refusal{"shift-of-reduction", "dense", kNone, "split stage=C loop=r0 factor=5 outer=a inner=b tail=shift"},
        Refusal{"shift-inside-reduction",
                "dense",
                {"reorder stage=C loops=r0,i0"},
                "split stage=C loop=i0 factor=5 outer=a inner=b tail=shift"},
        Refusal{"shift-inside-reduction",
                "dense",
                {"split stage=C loop=i0 factor=5 outer=a inner=b tail=shift"},
                "reorder stage=C loops=r0,a,b"},
        Refusal{"shift-inside-reduction",
                "dense",
                {"split stage=C loop=i0 factor=5 outer=a inner=b tail=shift"},
                "decompose_reduction stage=C loop=a"},
        Refusal{"shift-overlap",
                "dense",
                {"split stage=C loop=i0 factor=5 outer=a inner=b tail=shift"},
                "parallel stage=C loop=a"},
        Refusal{"shift-overlap",
                "dense",
                {"split stage=C loop=i0 factor=5 outer=a inner=b tail=shift"},
                "vectorize stage=C loop=a"},
        Refusal{"pad-of-output", "dense", kNone, "split stage=R loop=i0 factor=5 outer=a inner=b tail=pad"},
        Refusal{"pad-of-split-loop", "dense", {kSplitIo}, "split stage=C loop=ii factor=2 outer=a inner=b tail=pad"},
        Refusal{"pad-of-where", "outputs", kNone, "split stage=W loop=i0 factor=3 outer=a inner=b tail=pad"},
        Refusal{"fuse-too-few", "dense", kNone, "fuse stage=C loops=i0 fused=f"},
        Refusal{"fuse-not-adjacent", "dense", kNone, "fuse stage=C loops=i0,r0 fused=f"},
        Refusal{"fuse-mixed", "dense", kNone, "fuse stage=C loops=i1,r0 fused=f"},
        Refusal{"duplicate-loop", "dense", kNone, "fuse stage=C loops=i0,i1 fused=r0"},
        Refusal{"fuse-of-marked-loop", "dense", {"unroll stage=C loop=i1"}, "fuse stage=C loops=i0,i1 fused=f"},
        Refusal{"reorder-duplicate", "dense", kNone, "reorder stage=C loops=i0,i1,i0"},
        Refusal{"attach-point", "dense", {"compute_at stage=C consumer=R at=i0"}, "reorder stage=R loops=i1,i0"},
        Refusal{"loop-already-marked", "dense", {"parallel stage=C loop=i0"}, "parallel stage=C loop=i0"},
        Refusal{"loop-already-marked", "dense", {"parallel stage=C loop=i0"}, "unroll stage=C loop=i0"},
        Refusal{"loop-already-marked", "dense", {"parallel stage=C loop=i0"}, "vectorize stage=C loop=i0"},
        Refusal{"parallel-reduction", "dense", kNone, "parallel stage=C loop=r0"},
        Refusal{"bad-lanes", "dense", kNone, "tile stage=C rows=i0 columns=i1 lanes=6"},
        Refusal{"tile-of-reduction", "dense", kNone, "tile stage=C rows=i0,r0 columns=i1 lanes=8"},
        Refusal{"duplicate-loop", "dense", kNone, "tile stage=C rows=i0,i0 columns=i1 lanes=8"},
        Refusal{"loop-already-marked", "dense", {"unroll stage=C loop=i0"}, "tile stage=C rows=i0 columns=i1 lanes=8"},
        Refusal{"tile-of-output", "max_plus", kNone, "tile stage=C rows=i0 columns=i1 lanes=8"}));

INSTANTIATE_TEST_SUITE_P(
    Places, RefusalTest,
    testing::Values(
        Refusal{"compute-at-input", "dense", kNone, "compute_at stage=A consumer=C at=i0"},
        Refusal{"compute-at-input", "dense", kNone, "compute_root stage=A"},
        Refusal{"compute-at-self", "dense", kNone, "compute_at stage=C consumer=C at=i0"},
        Refusal{"unknown-loop", "dense", kNone, "compute_at stage=C consumer=R at=q"},
        Refusal{"no-loops", "statements", kNone, "compute_at stage=S consumer=T at=i0"},
        Refusal{"attach-illegal", "dense", {"unroll stage=R loop=i0"}, "compute_at stage=C consumer=R at=i0"},
        Refusal{"attach-illegal", "dense", kNone, "compute_at stage=R consumer=C at=i0"},
        Refusal{"attach-illegal", "softmax", kNone, "compute_at stage=e consumer=Y at=i0"},
        Refusal{"attach-illegal",
                "softmax",
                {"compute_at stage=s consumer=Y at=i0", "compute_at stage=e consumer=Y at=i0"},
                "compute_root stage=s"},
        Refusal{"attach-illegal",
                "expand_depthwise_project",
                {"compute_at stage=D6 consumer=O at=i2", "compute_at stage=D consumer=O at=i2"},
                "compute_at stage=D6 consumer=O at=i0"},
        Refusal{
            "attach-cycle", "softmax", {"compute_at stage=s consumer=Y at=i0"}, "compute_at stage=Y consumer=s at=i0"},
        Refusal{"compute-at-output", "outputs", kNone, "compute_at stage=P consumer=C at=i0"},
        Refusal{"inline-illegal", "dense", kNone, "compute_inline stage=A"},
        Refusal{"inline-illegal", "statements", kNone, "compute_inline stage=S"},
        Refusal{"inline-reduction", "dense", kNone, "compute_inline stage=C"},
        Refusal{"inline-output", "dense", kNone, "compute_inline stage=R"},
        Refusal{"attach-point",
                "expand_depthwise_project",
                {"compute_at stage=E consumer=E6 at=i0"},
                "compute_inline stage=E6"},
        Refusal{"inline-into-statements", "statements", kNone, "compute_inline stage=A"}));

INSTANTIATE_TEST_SUITE_P(
    Stages, RefusalTest,
    testing::Values(
        Refusal{"duplicate-stage", "dense", kNone, "cache_read stage=A consumer=C name=R"},
        Refusal{"duplicate-stage", "dense", kNone, "cache_write stage=C name=R"},
        Refusal{"duplicate-stage", "dense", kNone, "rfactor stage=C loop=r0 name=R"},
        Refusal{"cache-outputs", "statements", kNone, "cache_read stage=T consumer=Y name=Q"},
        Refusal{"cache-inlined", "softmax", {"compute_inline stage=e"}, "cache_read stage=e consumer=Y name=Q"},
        Refusal{"cache-no-reader", "dense", kNone, "cache_read stage=A consumer=R name=Q"},
        Refusal{"cache-after-split", "dense", {kSplitIo}, "cache_write stage=C name=Q"},
        Refusal{"attach-point", "dense", {"compute_at stage=C consumer=R at=i0"}, "cache_write stage=R name=Q"},
        Refusal{"rfactor-no-reduction", "dense", kNone, "rfactor stage=R loop=i0 name=Q"},
        Refusal{"rfactor-no-reduction", "dense", kNone, "rfactor stage=C loop=i0 name=Q"},
        Refusal{"rfactor-after-split", "dense", {kSplitIo}, "rfactor stage=C loop=r0 name=Q"},
        Refusal{"rfactor-of-fused", "conv", {"fuse stage=Y loops=r0,r1 fused=f"}, "rfactor stage=Y loop=f name=Q"},
        Refusal{"rfactor-of-shifted",
                "max_plus",
                {"split stage=C loop=r0 factor=3 outer=a inner=b tail=shift"},
                "rfactor stage=C loop=b name=Q"},
        Refusal{"rfactor-after-mark", "dense", {"unroll stage=C loop=r0"}, "rfactor stage=C loop=r0 name=Q"},
        Refusal{"attach-point",
                "outputs",
                {"compute_at stage=C consumer=Y at=i0", "compute_at stage=W consumer=Y at=i0",
                 "cache_read stage=X consumer=W name=Xw", "compute_at stage=Xw consumer=W at=i0"},
                "rfactor stage=W loop=r0 name=Q"},
        Refusal{"decompose-no-reduction", "dense", kNone, "decompose_reduction stage=R loop=i0"},
        Refusal{"decompose-inside-reduction",
                "dense",
                {"reorder stage=C loops=r0,i1"},
                "decompose_reduction stage=C loop=i1"},
        Refusal{"scope-of-output", "dense", kNone, "set_scope stage=R scope=stack"},
        Refusal{"scope-of-output", "dense", kNone, "storage_align stage=R elements=8"},
        Refusal{"bad-alignment", "dense", kNone, "storage_align stage=C elements=-1"},
        Refusal{"bad-output", "dense", kNone, "transform_layout stage=C layout=0,1 output=1"},
        Refusal{"bad-layout", "dense", kNone, "transform_layout stage=C layout=0,2"},
        Refusal{"layout-loses-elements", "dense", kNone, "transform_layout stage=C layout=0/4,1"},
        Refusal{"layout-loses-elements", "dense", kNone, "transform_layout stage=C layout=0%4,1"},
        Refusal{"layout-loses-elements", "dense", kNone, "transform_layout stage=C layout=0/8,1,0%4"},
        Refusal{"no-loops", "softmax", {"compute_inline stage=e"}, "transform_layout stage=e layout=1,0"},
        Refusal{"bad-distance", "dense", kNone, "prefetch stage=C producer=B loop=r0 distance=0"},
        Refusal{"prefetch-not-read", "dense", kNone, "prefetch stage=R producer=B loop=i0 distance=1"},
        Refusal{"spread-loop", "dense", kNone, "prefetch_next stage=C producer=B loop=r0 spread=i0"},
        Refusal{"unknown-loop",
                "dense",
                {"compute_at stage=C consumer=R at=i0"},
                "prefetch_next stage=C producer=B loop=r0 spread=i7"},
        Refusal{"spread-loop",
                "dense",
                {"compute_at stage=C consumer=R at=i0"},
                "prefetch_next stage=C producer=B loop=r0 spread=i1"},
        Refusal{"prefetch-not-read",
                "dense",
                {"compute_at stage=C consumer=R at=i0"},
                "prefetch_next stage=C producer=bias loop=r0 spread=i0"}));

INSTANTIATE_TEST_SUITE_P(
    Annotations, RefusalTest,
    testing::Values(Refusal{"unknown-annotation", "dense", kNone, "annotate stage=C loop=i0 key=unrol value=4"},
                    Refusal{"unknown-annotation", "dense", kNone, "annotate stage=C loop=i0 key=note. value=4"},
                    Refusal{"unknown-annotation", "dense", kNone, "annotate stage=C key=unroll value=4"},
                    Refusal{"bad-annotation", "dense", kNone, "annotate stage=C loop=i0 key=unroll value=0"},
                    Refusal{"bad-annotation", "dense", kNone, "pragma stage=C loop=i0 key=min_chunk value=0"},
                    Refusal{"bad-annotation", "dense", kNone, "annotate stage=C loop=i0 key=piece value=-1"},
                    Refusal{"no-annotation", "dense", kNone, "unannotate stage=C loop=i0 key=unroll"},
                    Refusal{"unknown-loop", "dense", kNone, "annotate stage=C loop=q key=unroll value=4"},
                    Refusal{"bad-points", "dense", kNone, "loop_partition stage=C loop=i0 points=0"},
                    Refusal{"bad-points", "dense", kNone, "loop_partition stage=C loop=i0 points=3,2"},
                    Refusal{"bad-points", "dense", kNone, "loop_partition stage=C loop=i0 points=-1,2"},
                    Refusal{"bad-points", "dense", kNone, "loop_partition stage=C loop=i0 points=1,2,3,4,5,6,7,8,9"},
                    Refusal{"loop-already-marked",
                            "dense",
                            {"loop_partition stage=C loop=i0 points=2"},
                            "loop_partition stage=C loop=i0 points=1"},
                    Refusal{"split-of-marked-loop",
                            "dense",
                            {"loop_partition stage=C loop=i0 points=2"},
                            "split stage=C loop=i0 factor=2 outer=a inner=b"},
                    Refusal{"fuse-of-marked-loop",
                            "dense",
                            {"loop_partition stage=C loop=i0 points=2"},
                            "fuse stage=C loops=i0,i1 fused=f"}));

const std::string kAtRow = "compute_at stage=P consumer=C at=i0";

INSTANTIATE_TEST_SUITE_P(
    Windows, RefusalTest,
    testing::Values(
        Refusal{"window-illegal", "stencils", kNone, "rolling_buffer stage=P"},
        Refusal{"window-illegal", "stencils", kNone, "double_buffer stage=Q"},
        Refusal{"window-illegal", "stencils", {kAtRow, "rolling_buffer stage=P"}, "double_buffer stage=P"},
        Refusal{"window-illegal", "stencils", {kAtRow, "rolling_buffer stage=P"}, "parallel stage=C loop=i0"},
        Refusal{"window-illegal", "stencils", {kAtRow, "parallel stage=C loop=i0"}, "rolling_buffer stage=P"},
        Refusal{"window-illegal", "stencils", {kAtRow, "rolling_buffer stage=P"}, "set_scope stage=P scope=register"},
        Refusal{"window-illegal",
                "stencils",
                {kAtRow, "rolling_buffer stage=P"},
                "split stage=P loop=i0 factor=4 outer=a inner=b tail=pad"},
        Refusal{"window-illegal",
                "stencils",
                {kAtRow, "split stage=P loop=i0 factor=4 outer=a inner=b tail=pad"},
                "rolling_buffer stage=P"},
        Refusal{"window-illegal",
                "stencils",
                {"fuse stage=C loops=i0,i1 fused=f", "compute_at stage=P consumer=C at=f"},
                "rolling_buffer stage=P"},
        Refusal{"window-illegal",
                "stencils",
                {"compute_at stage=C consumer=Q at=i0", "compute_at stage=P consumer=Q at=i0"},
                "double_buffer stage=C"},
        Refusal{"window-illegal",
                "conv",
                {"cache_read stage=X consumer=Y name=Xc", "compute_at stage=Xc consumer=Y at=r1"},
                "rolling_buffer stage=Xc"},
        Refusal{"bad-slots", "stencils", {kAtRow}, "pipeline stage=P slots=1"},
        Refusal{"no-loops", "stencils", kNone, "rolling_buffer stage=X"}));

INSTANTIATE_TEST_SUITE_P(
    Reverse, RefusalTest,
    testing::Values(
        Refusal{
            "already-scheduled", "stencils", {"unroll stage=Q loop=i0"}, "reverse_compute_at stage=Q producer=C at=i0"},
        Refusal{"not-elementwise", "stencils", kNone, "reverse_compute_at stage=C producer=P at=i0"},
        Refusal{"not-elementwise", "stencils", kNone, "reverse_compute_at stage=Q producer=P at=i0"},
        Refusal{"attach-illegal", "dense", kNone, "reverse_compute_at stage=R producer=C at=r0"},
        Refusal{"attach-illegal", "dense", {"unroll stage=C loop=i0"}, "reverse_compute_at stage=R producer=C at=i0"},
        Refusal{"attach-point",
                "stencils",
                {"compute_at stage=C consumer=Q at=i0"},
                "reverse_compute_at stage=Q producer=C at=i0"},
        Refusal{"unknown-loop", "dense", kNone, "reverse_compute_at stage=R producer=C at=q"},
        Refusal{"pad-of-output",
                "dense",
                {"split stage=C loop=i0 factor=4 outer=a inner=b tail=pad"},
                "reverse_compute_at stage=R producer=C at=a"},
        Refusal{"not-elementwise", "softmax", kNone, "reverse_compute_at stage=s producer=e at=i0"},
        Refusal{"inline-reduction", "dense", kNone, "reverse_compute_inline stage=R"},
        Refusal{"inline-reduction", "dense", kNone, "reverse_compute_inline stage=C"},
        Refusal{"inline-producers", "softmax", kNone, "reverse_compute_inline stage=Y"},
        Refusal{"not-elementwise", "stencils", kNone, "reverse_compute_inline stage=C"},
        Refusal{"tensorize-mismatch", "dense", kNone, "tensorize stage=C loop=i1 intrinsic=dot_u8s8_i32"},
        Refusal{"tensorize-mismatch", "dense", kNone, "tensorize stage=C loop=i0 intrinsic=dot_u8s8_i32"},
        Refusal{"bad-step-argument", "dense", kNone, "tensorize stage=C loop=i1 intrinsic=fma"}));

INSTANTIATE_TEST_SUITE_P(
    Derived, RefusalTest,
    testing::Values(
        Refusal{"duplicate-stage", "dense", kNone, "reindex stage=C producer=A name=R"},
        Refusal{"cache-no-reader", "dense", kNone, "reindex stage=R producer=A name=Q"},
        Refusal{"bad-read", "dense", kNone, "reindex stage=C producer=A name=Q read=1"},
        Refusal{"no-loops", "statements", kNone, "reindex stage=S producer=A name=Q"},
        Refusal{"cache-inlined", "softmax", {"compute_inline stage=e"}, "reindex stage=Y producer=e name=Q"},
        Refusal{"duplicate-stage", "depthwise", kNone, "cache_index stage=Y producer=X dim=2 name=W"},
        Refusal{"cache-index-plain", "dense", kNone, "cache_index stage=C producer=A dim=0 name=Q"},
        Refusal{"bad-read", "depthwise", kNone, "cache_index stage=Y producer=X dim=4 name=Q"},
        Refusal{"cache-no-reader", "dense", kNone, "cache_index stage=R producer=A dim=0 name=Q"},
        Refusal{"no-padding", "stencils", kNone, "decompose_padding stage=P loop=i0"},
        Refusal{"no-padding", "dense", kNone, "decompose_padding stage=C loop=i0"},
        Refusal{"no-padding", "statements", kNone, "decompose_padding stage=T loop=i0"},
        Refusal{"no-loops", "padded", {"compute_inline stage=P"}, "decompose_padding stage=P loop=i0"},
        Refusal{"bad-multiples", "dense", kNone, "pad_einsum stage=C multiples=2,2 name=Q"},
        Refusal{"bad-multiples", "dense", kNone, "pad_einsum stage=C multiples=2,2,0 name=Q"},
        Refusal{"pad-einsum-nothing", "dense", kNone, "pad_einsum stage=C multiples=7,19,23 name=Q"},
        Refusal{"pad-einsum-body", "max_plus", kNone, "pad_einsum stage=C multiples=1,1,4 name=Q"},
        Refusal{"pad-einsum-body", "conv", kNone, "pad_einsum stage=Y multiples=1,1,1,1,1,4,1 name=Q"},
        Refusal{"already-scheduled", "dense", {kSplitIo}, "pad_einsum stage=C multiples=4,1,1 name=Q"},
        Refusal{"cache-outputs", "complex_product", kNone, "pad_einsum stage=C multiples=4,4,4 name=Q"},
        Refusal{"duplicate-stage", "dense", kNone, "pad_einsum stage=C multiples=4,4,4 name=R"},
        Refusal{"bad-separators", "dense", kNone, "set_axis_separator stage=C separators=2"},
        Refusal{"bad-separators", "dense", kNone, "set_axis_separator stage=C separators=0"},
        Refusal{"bad-separators", "expand_depthwise_project", kNone, "set_axis_separator stage=E separators=2,1"},
        Refusal{"bad-separators",
                "dense",
                {"transform_layout stage=C layout=1/4,0,1%4", "set_axis_separator stage=C separators=2"},
                "transform_layout stage=C layout=0,1"},
        Refusal{"scope-of-output", "dense", kNone, "set_axis_separator stage=R separators=1"},
        Refusal{"unknown-loop", "dense", kNone, "read_at stage=C loop=q producer=A name=Q"},
        Refusal{"cache-no-reader", "dense", kNone, "read_at stage=R loop=i0 producer=A name=Q"},
        Refusal{"bad-lanes", "dense", kNone, "read_at stage=C loop=i0 producer=A name=Q lanes=3"},
        Refusal{"attach-illegal", "siblings", kNone, "read_at stage=T loop=r0 producer=start name=Q"},
        Refusal{"attach-illegal", "dense", {"unroll stage=C loop=i0"}, "read_at stage=C loop=i0 producer=A name=Q"},
        Refusal{"duplicate-stage", "dense", kNone, "write_at stage=C loop=i0 name=R"},
        Refusal{"attach-illegal", "dense", kNone, "write_at stage=C loop=r0 name=Q"},
        Refusal{"attach-illegal", "dense", {"vectorize stage=R loop=i1"}, "write_at stage=R loop=i1 name=Q"},
        Refusal{"copy-without-loops", "dense", kNone, "write_at stage=R loop=i1 name=Q lanes=4"},
        Refusal{"window-illegal",
                "stencils",
                {"compute_at stage=P consumer=C at=i0", "rolling_buffer stage=P"},
                "write_at stage=P loop=i0 name=Pw"},
        Refusal{"cache-inplace-no-reduction", "dense", kNone, "cache_inplace stage=R loop=i0"},
        Refusal{"cache-inplace-no-reduction", "dense", kNone, "cache_inplace stage=C loop=r0"},
        Refusal{"loop-already-marked", "dense", {"cache_inplace stage=C loop=i0"}, "cache_inplace stage=C loop=i1"},
        Refusal{"attach-illegal", "dense", {"unroll stage=C loop=i1"}, "cache_inplace stage=C loop=i1"},
        Refusal{"attach-point",
                "dense",
                {"cache_inplace stage=C loop=i0"},
                "split stage=C loop=i0 factor=2 outer=a inner=b"},
        Refusal{"attach-point", "dense", {"cache_inplace stage=C loop=i0"}, "cache_write stage=C name=Q"},
        Refusal{"attach-point", "dense", {"cache_inplace stage=C loop=i0"}, "rfactor stage=C loop=r0 name=Q"},
        Refusal{"pad-of-cache",
                "dense",
                {"split stage=C loop=i0 factor=4 outer=a inner=b tail=pad"},
                "cache_inplace stage=C loop=a"},
        Refusal{"blockize-depends", "siblings", kNone, "blockize stage=S with=S name=Q"},
        Refusal{"duplicate-stage", "siblings", kNone, "blockize stage=S with=T name=Y"},
        Refusal{"blockize-differs", "dense", kNone, "blockize stage=C with=R name=Q"},
        Refusal{"blockize-differs", "stencils", kNone, "blockize stage=P with=C name=PC"},
        Refusal{"blockize-depends", "stencils", kNone, "blockize stage=Q with=C name=CQ"},
        Refusal{"already-scheduled", "siblings", {"parallel stage=T loop=i0"}, "blockize stage=S with=T name=Q"},
        Refusal{"already-scheduled", "siblings", {"set_scope stage=S scope=stack"}, "blockize stage=S with=T name=Q"},
        Refusal{
            "attach-illegal", "siblings", {"compute_at stage=S consumer=Y at=i0"}, "blockize stage=S with=T name=Q"}));

const std::string kAtIo = "compute_at stage=C consumer=R at=i0";

INSTANTIATE_TEST_SUITE_P(
    Prefetches, RefusalTest,
    testing::Values(
        Refusal{"prefetch-no-memory",
                "softmax",
                {"compute_inline stage=e"},
                "prefetch stage=s producer=e loop=r0 distance=1"},
        Refusal{"prefetch-no-memory", "dense", {kAtIo}, "prefetch stage=R producer=C loop=i0 distance=1"},
        Refusal{"prefetch-no-memory",
                "dense",
                {kAtIo, "set_scope stage=C scope=register"},
                "prefetch stage=R producer=C loop=i1 distance=1"},
        Refusal{"prefetch-no-memory",
                "softmax",
                {"prefetch stage=s producer=e loop=r0 distance=1"},
                "compute_inline stage=e"},
        Refusal{"prefetch-no-sweep", "dense", {kAtIo}, "prefetch_next stage=C producer=B loop=i1 spread=i0"},
        Refusal{
            "prefetch-no-sweep",
            "conv",
            {"cache_write stage=Y name=acc", "compute_at stage=acc consumer=Y at=i1", "reorder stage=acc loops=r0,i2"},
            "prefetch_next stage=acc producer=W loop=i2 spread=i0"},
        Refusal{"prefetch-no-memory",
                "depthwise",
                {"prefetch stage=Y producer=X loop=i3 distance=2", "cache_index stage=Y producer=X dim=3 name=I"},
                "compute_at stage=I consumer=Y at=i3"},
        Refusal{"fuse-of-marked-loop",
                "dense",
                {"prefetch stage=C producer=A loop=i1 distance=1"},
                "fuse stage=C loops=i0,i1 fused=f"}));

/// Refused only while lowering, by sizes that the steps do not see.
class LoweringRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(LoweringRefusalTest, IsAScheduleError) {
  const Refusal& refusal = GetParam();
  const Schedule schedule = make_schedule(named(refusal.workload).workload, refusal.before);
  try {
    lower(schedule);
    FAIL() << "expected " << refusal.id;
  } catch (const ScheduleError& error) {
    EXPECT_EQ(error.id(), refusal.id) << error.what();
    EXPECT_NE(error.message().find(';'), std::string::npos) << "says no way out: " << error.message();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lowering, LoweringRefusalTest,
    testing::Values(Refusal{"vectorize-extent", "dense_m", {"vectorize stage=R loop=i0"}, ""},
                    Refusal{"shift-inside-reduction",
                            "dense",
                            {"split stage=C loop=i0 factor=5 outer=a inner=b tail=shift",
                             "tile stage=C rows=a,b columns=i1 lanes=8"},
                            ""},
                    Refusal{"vectorize-race", "arg_max", {"vectorize stage=best loop=r0"}, ""},
                    Refusal{"vectorize-body", "dense", {"vectorize stage=R loop=i0", "vectorize stage=R loop=i1"}, ""},
                    Refusal{"unroll-limit",
                            "large",
                            {"unroll stage=C loop=i0", "unroll stage=C loop=i1", "unroll stage=C loop=r0",
                             "unroll stage=R loop=i0", "unroll stage=R loop=i1"},
                            ""},
                    Refusal{"register-size",
                            "dense_m",
                            {"reorder stage=R loops=i1,i0", "compute_at stage=C consumer=R at=i1",
                             "set_scope stage=C scope=register"},
                            ""},
                    Refusal{"parallel-workspace",
                            "dense_m",
                            {"parallel stage=R loop=i0", "compute_at stage=C consumer=R at=i0",
                             "set_scope stage=C scope=global"},
                            ""}));

}  // namespace
}  // namespace tensmith
