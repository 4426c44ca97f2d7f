#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (!stage.stage->reducer)
    return Failure{"cache-inplace-no-reduction",
                   "stage " + stage.name +
                       " writes each element once and updates none in place; use write_at to collect its results"};
  if (stage.cache_loop >= 0)
    return Failure{"loop-already-marked", "results of " + stage.name + " are cached at its loop " +
                                              stage.loops[stage.cache_loop].name + " already"};
  const int loop = stage.find_loop(step.text("loop")), position = stage.order_position(loop);
  const ForKind kind = stage.loops[loop].kind;
  if (kind == ForKind::kVectorized || kind == ForKind::kUnrolled)
    return Failure{"attach-illegal",
                   "loop " + step.text("loop") + " is vectorized or unrolled; cache at a loop outside it"};
  if (stage.intrinsic_loop >= 0 && position >= stage.order_position(stage.intrinsic_loop))
    return Failure{"attach-illegal",
                   "loop " + step.text("loop") + " is part of an intrinsic; cache at a loop outside it"};
  if (std::none_of(stage.order.begin() + position + 1, stage.order.end(),
                   [&](int inner) { return stage.loops[inner].is_reduce; }))
    return Failure{"cache-inplace-no-reduction", "no reduction loop of " + stage.name + " lies inside " +
                                                     step.text("loop") +
                                                     ", so that each element would be updated once; choose a loop "
                                                     "further outside"};
  for (const LoopRelation& r : stage.relations)
    if (r.kind == LoopRelation::Kind::kSplit && r.tail == Tail::kPad && !stage.loops[r.whole].is_reduce)
      return Failure{"pad-of-cache", "loop " + stage.loops[r.whole].name + " of " + stage.name +
                                         " has a padded tail, for which a cache of its results has no room; use "
                                         "tail=guard or tail=peel"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.cache_loop = stage.find_loop(step.text("loop"));
  stage.cache_scope = step.text("scope") == "register" ? Scope::kRegister : Scope::kStack;
}

}  // namespace

const PrimitiveDef& cache_inplace_primitive() {
  static const PrimitiveDef def{
      .name = "cache_inplace",
      .doc =
          "Keeps the results that one iteration of a loop updates in memory near by, or in registers, while it\n"
          "does: they are taken up at its start (unless the reduction begins there) and put back at its end, by the\n"
          "stage's own loops inside. So a reduction in pieces, whose outer loop keeps what the pieces read in a\n"
          "cache, works on accumulators in each piece.\n"
          "Rewrite: for ko: for j: for ki: C[j] += ...\n"
          "    --at j-->  for ko: for j: { c = C[j]; for ki: c += ...; C[j] = c }",
      .halide = "none",
      .tvm = "cache_inplace",
      .args = {{"stage", ArgKind::kStage, "the reduction"},
               {"loop", ArgKind::kLoop, "a loop with a reduction loop inside"},
               {"scope", ArgKind::kText, "where the cache is", "stack", {"stack", "register"}}},
      .check = check,
      .apply = apply,
      .samples = {
          {"dense",
           {"split stage=C loop=r0 factor=8 outer=ko inner=ki", "reorder stage=C loops=ko,i0,i1,ki",
            "cache_inplace stage=C loop=i0"}},
          {"dense",
           {"split stage=C loop=r0 factor=8 outer=ko inner=ki", "split stage=C loop=i0 factor=3 outer=io inner=ii",
            "split stage=C loop=i1 factor=8 outer=jo inner=ji", "reorder stage=C loops=ko,io,jo,ki,ii,ji",
            "unroll stage=C loop=ii", "vectorize stage=C loop=ji", "cache_inplace stage=C loop=jo scope=register"}},
          {"arg_max",
           {"split stage=best loop=r0 factor=5 outer=ro inner=ri", "reorder stage=best loops=ro,i0,ri",
            "cache_inplace stage=best loop=i0"}}}};
  return def;
}

}  // namespace tensmith
