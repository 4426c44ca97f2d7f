#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  std::vector<std::string> names = step.texts("rows");
  names.push_back(step.text("columns"));
  for (const std::string& name : names) {
    const LoopVar& loop = stage.loops[stage.find_loop(name)];
    if (loop.is_reduce)
      return Failure{"tile-of-reduction",
                     "loop " + name + " is a reduction; rows and columns must be loops over output elements"};
    if (loop.kind != ForKind::kSerial || !loop.cuts.empty())
      return Failure{"loop-already-marked", "loop " + name + " is already parallel, vectorized, unrolled or cut"};
    if (Result<void> ok = check_not_attach_point(state, stage, name); !ok) return ok;
    if (std::count(names.begin(), names.end(), name) > 1)
      return Failure{"duplicate-loop", "loop " + name + " is named twice"};
  }
  if (stage.window != Window::kNone)
    return Failure{"window-illegal", "stage " + stage.name +
                                         " keeps its storage between iterations, which registers cannot; tile a cache"};
  const int64_t lanes = step.number("lanes");
  if (lanes < 1 || lanes > 64 || (lanes & (lanes - 1)))
    return Failure{"bad-lanes", "lanes: expected a power of two from 1 to 64, got " + std::to_string(lanes)};
  if (state.is_output(static_cast<int>(&stage - state.stages.data())) && stage.stage->reducer)
    return Failure{
        "tile-of-output",
        "stage " + stage.name +
            " is an output of the workload and so lives in memory; use cache_write and tile the cache stage"};
  for (const char* suffix : {".v", ".l"})
    if (Result<void> ok = check_new_loop(stage, step.text("columns") + suffix); !ok) return ok;
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int columns = stage.find_loop(step.text("columns"));
  std::vector<int> rows;
  for (const std::string& name : step.texts("rows")) rows.push_back(stage.find_loop(name));
  const int vectors = static_cast<int>(stage.loops.size()), lanes = vectors + 1;
  stage.loops.push_back({stage.loops[columns].name + ".v", false, ForKind::kUnrolled});
  stage.loops.push_back({stage.loops[columns].name + ".l", false, ForKind::kVectorized});
  stage.relations.push_back({LoopRelation::Kind::kSplit, columns, vectors, lanes, step.number("lanes"), Tail::kPeel});
  split_marks(stage, columns, vectors, lanes, step.number("lanes"));
  move_prefetches(stage, columns, vectors);
  std::vector<int> order;
  for (int loop : stage.order)
    if (loop != columns && std::find(rows.begin(), rows.end(), loop) == rows.end()) order.push_back(loop);
  for (int row : rows) {
    stage.loops[row].kind = ForKind::kUnrolled;
    order.push_back(row);
  }
  order.push_back(vectors);
  order.push_back(lanes);
  stage.order = order;
  stage.scope = Scope::kRegister;
  // Vectors are read and written whole: their dimension lies innermost.
  int axis = columns;
  for (const LoopRelation* made = stage.maker_of(axis); made; made = stage.maker_of(axis))
    axis = made->kind == LoopRelation::Kind::kSplit ? made->whole : made->inner;
  const auto dim = std::find(stage.axis_loops.begin(), stage.axis_loops.end(), axis) - stage.axis_loops.begin();
  std::vector<int> dims;
  for (int d = 0; d < static_cast<int>(stage.axis_loops.size()); ++d)
    if (d != dim) dims.push_back(d);
  dims.push_back(static_cast<int>(dim));
  for (Layout& layout : stage.layouts)
    if (layout.dims().empty()) layout = Layout::permuted(dims);
}

}  // namespace

const PrimitiveDef& tile_primitive() {
  static const PrimitiveDef def{
      .name = "tile",
      .doc =
          "The register tile: rows times vectors of accumulators that are values, never memory. All other loops of\n"
          "the stage (the reduction above all) go outside; rows are unrolled, columns become vectors of `lanes`.\n"
          "Use it on a stage that is computed at a consumer's loop inside which rows and columns have small\n"
          "constant extents.\n"
          "Rewrite: for i in 6: for j in 32: for k: C[i, j] += ...\n"
          "    -->  for k: (unrolled i, j.v) C'[i][j.v] (a register) += vector",
      .halide = "none (unroll + vectorize + store_in(Register))",
      .tvm = "none (unroll + vectorize + cache_write)",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"rows", ArgKind::kLoops, "loops that become rows"},
               {"columns", ArgKind::kLoop, "the loop that becomes vectors"},
               {"lanes", ArgKind::kInt, "lanes of a vector"}},
      .check = check,
      .apply = apply,
      .samples = {
          {"dense",
           {"split stage=R loop=i0 factor=6 outer=io inner=ii", "split stage=R loop=i1 factor=16 outer=jo inner=ji",
            "reorder stage=R loops=jo,io,ii,ji", "unroll stage=R loop=ii", "unroll stage=R loop=ji",
            "compute_at stage=C consumer=R at=io", "tile stage=C rows=i0 columns=i1 lanes=8"}}}};
  return def;
}

}  // namespace tensmith
