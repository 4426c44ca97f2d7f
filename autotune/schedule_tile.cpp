#include <algorithm>
#include <sstream>

#include "autotune/register_tile.h"
#include "autotune/schedule_rules.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// What is known of a reduction before anything is changed.
struct TilePlan {
  int vector_axis = -1, row_axis = -1;          // of the reading stage
  int vector_dim = -1, row_dim = -1;            // of the reduction
  int outer_row_axis = -1, outer_row_dim = -1;  // a second row axis: tiles of `outer_rows` whole rows of the first
  int64_t outer_rows = 1;
  int64_t rows = 1, columns = 1, steps = 1;
  TileProblem problem;
  RegisterTile tile;
  std::vector<std::string> constants;  // inputs to pack, indexed by the vector axis
  std::vector<std::string> to_copy;    // other operands that lie across the vector axis
  int64_t vector_operand_bytes = 0, row_operand_bytes = 0;
};

/// The dimension of the reduction's output that the reader indexes with `var`, when all its reads agree; else -1.
int dim_read_with(const ScheduleState& state, const StageNode& reader, int reduction, const Var& var) {
  int dim = -1;
  for (const TensorAccess& access : accesses_of(state, reader)) {
    if (access.producer != reduction) continue;
    int found = -1;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      if (is_var(access.indices[d], var)) found = static_cast<int>(d);
      else if (uses_var(access.indices[d], var)) return -1;
    }
    if (found < 0 || (dim >= 0 && dim != found)) return -1;
    dim = found;
  }
  return dim;
}

bool make_plan(const ScheduleDraft& draft, const std::string& reader_name, const std::string& reduction_name,
               TilePlan* plan) {
  const ScheduleState& state = draft.schedule.state();
  const StageState& reader = draft.stage(reader_name);
  const Stage reader_stage = draft.effective(reader_name), body = draft.effective(reduction_name);
  const StageState& reduction = draft.stage(reduction_name);
  const int reduction_index = draft.index_of(reduction_name);
  const std::vector<int> order = draft.storage_order(reader);
  if (order.empty() || body->outputs.size() != 1 || body->reduce_axes.empty()) return false;
  const auto size = [&](int axis) { return ScheduleDraft::size_of(reader.stage->axes[axis].extent); };
  plan->vector_axis = order.back();
  if (size(plan->vector_axis) == 1 && order.size() > 1) return false;
  plan->vector_dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[plan->vector_axis].var);
  if (plan->vector_dim < 0) return false;
  plan->columns = size(plan->vector_axis);
  // The next axis whose rows can share the vectors.
  for (size_t k = order.size() - 1; k-- > 0;) {
    if (size(order[k]) == 1) break;
    const int dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[order[k]].var);
    if (dim < 0) continue;
    plan->row_axis = order[k];
    plan->row_dim = dim;
    plan->rows = size(order[k]);
    break;
  }
  for (const Axis& axis : body->reduce_axes) plan->steps *= ScheduleDraft::size_of(axis.extent);

  const Var v = body->axes[plan->vector_dim].var;
  TileProblem& problem = plan->problem;
  problem.rows = plan->rows;
  problem.columns = plan->columns;
  problem.lanes = draft.lanes_for(body->outputs[0]->dtype);
  problem.row_loads = problem.column_loads = problem.element_loads = 0;
  for (const TensorAccess& access : accesses_of(state, *body)) {
    const auto v_stride = stride_of(state, access, *body, v);
    const auto r_stride =
        plan->row_dim < 0 ? std::optional<int64_t>(0) : stride_of(state, access, *body, body->axes[plan->row_dim].var);
    const StageState& source = state.stages[access.producer];
    const bool constant = source.stage->is_constant;
    const bool by_vector = !v_stride || *v_stride != 0, by_row = !r_stride || *r_stride != 0;
    if (by_vector && by_row) {
      problem.element_loads += 1;
      if (!v_stride || *v_stride != 1)
        return false;  // neither packing nor copying would help: each element is used once
      continue;
    }
    int64_t bytes = access.buffer->dtype.bytes();
    for (const Expr& extent : access.buffer->shape) bytes *= ScheduleDraft::size_of(extent);
    if (by_row) {
      problem.row_loads += 1;
      plan->row_operand_bytes += bytes;
      if (r_stride && *r_stride * access.buffer->dtype.bytes() % 4096 == 0) problem.rows_conflict = true;
    }
    if (!by_vector) continue;
    problem.column_loads += 1;
    plan->vector_operand_bytes += bytes;
    if (constant && source.layouts[0].dims().empty()) {
      // It can be packed when the vector axis indexes one dimension by itself.
      int dims = 0;
      for (const Expr& index : access.indices) dims += is_var(index, v) ? 1 : uses_var(index, v) ? 2 : 0;
      if (dims == 1) plan->constants.push_back(source.name);
      else if (!v_stride || *v_stride != 1) return false;
    } else if (!v_stride || *v_stride != 1) {
      if (plan->rows < 4 || !v_stride) return false;
      // Only what the reduction reads itself can be copied for it, not what an inlined stage hands through.
      const std::vector<Buffer> direct = read_buffers(*reduction.stage);
      if (std::none_of(direct.begin(), direct.end(), [&](const Buffer& b) { return b.same_as(access.buffer); }))
        return false;
      plan->to_copy.push_back(source.name);
    }
  }
  plan->tile = choose_register_tile(problem, draft.target());
  // Rows that are short by themselves: tiles over several of them use each vector more often.
  if (plan->row_axis < 0 || plan->rows >= draft.target().vector_registers / 2) return true;
  for (size_t k = order.size() - 1; k-- > 0;) {
    if (order[k] == plan->row_axis || size(order[k]) == 1) continue;
    const int dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[order[k]].var);
    if (dim < 0) break;
    TileProblem both = problem;
    both.rows = plan->rows * size(order[k]);
    both.row_multiple = plan->rows;
    // Short rows lie apart by whole rows; their conflict is that of the outer stride.
    const RegisterTile tile = choose_register_tile(both, draft.target());
    if (tile.cycles == 0) break;
    // Vectors come from L2 or further once a tile: more rows a tile are worth a little issue efficiency.
    const double alone = plan->tile.cycles * static_cast<double>(size(order[k]));
    if (tile.rows > plan->tile.rows && tile.cycles < alone * 1.1) {
      plan->tile = tile;
      plan->outer_row_axis = order[k];
      plan->outer_row_dim = dim;
      plan->outer_rows = tile.rows / plan->rows;
    }
    break;
  }
  return true;
}

/// Packs a constant: blocks of the vector dimension outermost, then the other dims as the reduction walks them, lanes
/// innermost.
void pack_constant(ScheduleDraft& draft, const std::string& name, const std::string& reduction, const Var& v,
                   int64_t block) {
  const Stage body = draft.effective(reduction);
  const StageState& r = draft.stage(reduction);
  std::vector<int> order;
  int vector_dim = -1;
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body)) {
    if (draft.schedule.state().stages[access.producer].name != name) continue;
    std::vector<int> rest;
    for (size_t d = 0; d < access.indices.size(); ++d)
      (is_var(access.indices[d], v) ? vector_dim = static_cast<int>(d) : (rest.push_back(static_cast<int>(d)), 0));
    // Position in the loop order of the innermost loop that moves along this dimension.
    const auto depth = [&](int d) {
      int deepest = -1;
      for (size_t k = 0; k < r.order.size(); ++k)
        for (size_t a = 0; a < r.reduce_loops.size(); ++a)
          if (r.reduce_loops[a] == r.order[k] && uses_var(access.indices[d], body->reduce_axes[a].var))
            deepest = static_cast<int>(k);
      return deepest;
    };
    std::stable_sort(rest.begin(), rest.end(), [&](int a, int b) { return depth(a) < depth(b); });
    order = rest;
    break;
  }
  // Dims that no reduction moves along (groups, batches) stay outside the blocks.
  std::string layout;
  const auto add = [&](const std::string& text) { layout += (layout.empty() ? "" : ",") + text; };
  add(std::to_string(vector_dim) + (block > 1 ? "/" + std::to_string(block) : ""));
  for (int d : order) add(std::to_string(d));
  if (block > 1) add(std::to_string(vector_dim) + "%" + std::to_string(block));
  draft.schedule.transform_layout(name, layout);
}

}  // namespace

bool schedule_tile(ScheduleDraft& draft, const std::string& reader_name, const std::string& reduction_name) {
  TilePlan plan;
  if (!make_plan(draft, reader_name, reduction_name, &plan)) return false;
  Schedule& schedule = draft.schedule;
  const Target& target = draft.target();
  const int lanes = plan.problem.lanes;
  const auto axis_name = [&](const std::string& stage, int axis) {
    return draft.stage(stage).loops[draft.stage(stage).axis_loops[axis]].name;
  };
  const Stage body = draft.effective(reduction_name);
  const Var v = body->axes[plan.vector_dim].var;

  // The reduction's own loops: the one along which operands are contiguous goes innermost.
  std::vector<std::pair<double, int>> reduce_order;
  for (size_t a = 0; a < body->reduce_axes.size(); ++a) {
    double distance = 0;
    for (const TensorAccess& access : accesses_of(schedule.state(), *body)) {
      const auto stride = stride_of(schedule.state(), access, *body, body->reduce_axes[a].var);
      // Operands that are packed follow whatever order is chosen.
      if (std::find(plan.constants.begin(), plan.constants.end(), schedule.state().stages[access.producer].name) !=
          plan.constants.end())
        continue;
      distance += stride ? static_cast<double>(std::abs(*stride)) : 1e9;
    }
    reduce_order.push_back({-distance, static_cast<int>(a)});
  }
  std::stable_sort(reduce_order.begin(), reduce_order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> reduce_loops;
  for (const auto& [distance, a] : reduce_order)
    reduce_loops.push_back(draft.stage(reduction_name).loops[draft.stage(reduction_name).reduce_loops[a]].name);
  if (reduce_loops.size() > 1) schedule.reorder(reduction_name, reduce_loops);

  // The reader: tiles of rows x (vectors * lanes), everything else outside.
  const std::string vec = axis_name(reader_name, plan.vector_axis);
  const int64_t block =
      std::min<int64_t>(int64_t{plan.tile.vectors} * lanes, (plan.columns + lanes - 1) / lanes * lanes);
  std::vector<std::string> outer;
  double tiles = 1;
  for (int axis : draft.storage_order(draft.stage(reader_name))) {
    if (axis == plan.vector_axis || axis == plan.row_axis || axis == plan.outer_row_axis) continue;
    outer.push_back(axis_name(reader_name, axis));
    tiles *= static_cast<double>(ScheduleDraft::size_of(draft.stage(reader_name).stage->axes[axis].extent));
  }
  schedule.split(reader_name, vec, block, vec + ".o", vec + ".i");
  std::string row_outer, row_inner;
  std::vector<std::string> rows_inner;
  if (plan.row_axis >= 0) {
    const std::string row = axis_name(reader_name, plan.row_axis);
    if (plan.outer_row_axis >= 0) {
      const std::string several = axis_name(reader_name, plan.outer_row_axis);
      row_outer = several + ".o";
      schedule.split(reader_name, several, plan.outer_rows, row_outer, several + ".i");
      row_inner = row;
      rows_inner = {several + ".i", row};
    } else {
      row_outer = row + ".o";
      row_inner = row + ".i";
      schedule.split(reader_name, row, plan.tile.rows, row_outer, row_inner);
      rows_inner = {row_inner};
    }
  }
  schedule.split(reader_name, vec + ".i", lanes, vec + ".v", vec + ".l");

  // Which operand stays in cache between tiles: vectors from L2 while all of them fit, else one block of them for all
  // rows.
  const bool vectors_fit = plan.vector_operand_bytes <= target.l2_bytes / 2;
  std::vector<std::string> loops;
  // Neither fits: blocks of rows that do, each of which passes over all vectors.
  const int64_t row_tile_bytes =
      plan.row_operand_bytes / std::max<int64_t>(1, (plan.rows + plan.tile.rows - 1) / plan.tile.rows);
  const int64_t tiles_that_fit = std::max<int64_t>(1, target.l2_bytes / 2 / std::max<int64_t>(1, row_tile_bytes));
  if (!vectors_fit && outer.empty() && plan.outer_row_axis < 0 && plan.row_axis >= 0 &&
      plan.row_operand_bytes > target.l2_bytes / 2 && tiles_that_fit < plan.rows / plan.tile.rows) {
    const std::string block_loop = row_outer + ".b";
    schedule.split(reader_name, row_outer, tiles_that_fit, block_loop, row_outer + ".t");
    row_outer += ".t";
    loops.push_back(block_loop);
  }
  if (!vectors_fit) loops.push_back(vec + ".o");
  loops.insert(loops.end(), outer.begin(), outer.end());
  if (!row_outer.empty()) loops.push_back(row_outer);
  if (vectors_fit) loops.push_back(vec + ".o");
  std::vector<std::string> all = loops;
  all.insert(all.end(), rows_inner.begin(), rows_inner.end());
  all.push_back(vec + ".v");
  all.push_back(vec + ".l");
  schedule.reorder(reader_name, all);
  schedule.vectorize(reader_name, vec + ".l");
  schedule.unroll(reader_name, vec + ".v");
  for (const std::string& row : rows_inner) schedule.unroll(reader_name, row);

  // Threads take the outer loops; enough pieces that they come out even.
  const double cycles = plan.tile.cycles * tiles * static_cast<double>(plan.steps);
  std::vector<std::string> parallel(loops.begin(), loops.end());
  const int64_t all_rows =
      plan.outer_row_axis < 0
          ? plan.rows
          : plan.rows * ScheduleDraft::size_of(draft.stage(reader_name).stage->axes[plan.outer_row_axis].extent);
  const int64_t row_tiles = (all_rows + plan.tile.rows - 1) / plan.tile.rows,
                vector_tiles = (plan.columns + block - 1) / block;
  const double last = loops.size() < 2             ? 1
                      : loops.back() == vec + ".o" ? static_cast<double>(vector_tiles)
                                                   : static_cast<double>(row_tiles);
  const double pieces = tiles * row_tiles * vector_tiles;
  if (parallel.size() > 1 && pieces / last >= 8 * draft.request.threads) parallel.pop_back();
  const std::string innermost = draft.parallelize(reader_name, parallel, cycles);
  const std::string at = parallel.size() == loops.size() ? innermost : loops.back();
  const std::string parallel_loop = innermost;

  // Operands that lie across the vectors are turned once per piece.
  std::sort(plan.to_copy.begin(), plan.to_copy.end());
  plan.to_copy.erase(std::unique(plan.to_copy.begin(), plan.to_copy.end()), plan.to_copy.end());
  std::vector<std::string> copies;
  for (const std::string& source : plan.to_copy) {
    copies.push_back(draft.fresh(source + "_turned"));
    schedule.cache_read(source, reduction_name, copies.back());
  }
  schedule.compute_at(reduction_name, reader_name, at);
  for (const std::string& copy : copies) {
    const Stage turned = draft.effective(reduction_name);
    // The vector dimension innermost.
    for (const TensorAccess& access : accesses_of(schedule.state(), *turned)) {
      if (schedule.state().stages[access.producer].name != copy) continue;
      std::string layout;
      int last_dim = -1;
      for (size_t d = 0; d < access.indices.size(); ++d) {
        if (uses_var(access.indices[d], turned->axes[plan.vector_dim].var)) last_dim = static_cast<int>(d);
        else layout += std::to_string(d) + ",";
      }
      if (last_dim < 0) continue;
      schedule.transform_layout(copy, layout + std::to_string(last_dim));
      break;
    }
    schedule.compute_at(copy, reader_name, parallel_loop);
  }
  const std::string tile_vec = axis_name(reduction_name, plan.vector_dim);
  std::vector<std::string> tile_rows;
  if (plan.outer_row_dim >= 0) tile_rows.push_back(axis_name(reduction_name, plan.outer_row_dim));
  if (plan.row_dim >= 0) tile_rows.push_back(axis_name(reduction_name, plan.row_dim));
  schedule.tile(reduction_name, tile_rows, tile_vec, lanes);
  for (const std::string& constant : plan.constants) pack_constant(draft, constant, reduction_name, v, block);

  // Short reductions are unrolled whole; of others the loops that conditions on rows depend on, so that each copy
  // decides them.
  const StageState& r = draft.stage(reduction_name);
  constexpr int64_t kUnrollAll = 25, kUnrollConditioned = 11, kUnrollInner = 4;
  for (size_t a = 0; a < body->reduce_axes.size(); ++a) {
    const int64_t extent = ScheduleDraft::size_of(body->reduce_axes[a].extent);
    int64_t known;
    if (!as_const_int(body->reduce_axes[a].extent, &known) || extent == 1) continue;
    bool conditioned = false;
    if (body->where.get() && plan.row_dim >= 0)
      visit(body->where, [&](const Expr& e) {
        if (const auto* b = e.as<Binary>(); b && is_compare(b->op))
          conditioned |= uses_var(e, body->reduce_axes[a].var) && uses_var(e, body->axes[plan.row_dim].var);
        return true;
      });
    const std::string loop = r.loops[r.reduce_loops[a]].name;
    const bool innermost_loop = loop == reduce_loops.back();
    if (plan.steps <= kUnrollAll || (conditioned && extent <= kUnrollConditioned) ||
        (innermost_loop && extent <= kUnrollInner))
      schedule.unroll(reduction_name, loop);
  }
  // Weights are used once a run and come from far: ask for them some steps ahead. The blocks lie in the order of their
  // use, so that running past the end of one loop reaches what the next one wants.
  constexpr int64_t kPrefetchSteps = 24, kPrefetchDistance = 24;
  const LoopVar& walked = r.loops[r.find_loop(reduce_loops.back())];
  if (walked.kind == ForKind::kSerial &&
      ScheduleDraft::size_of(body->reduce_axes[reduce_order.back().second].extent) >= kPrefetchSteps)
    for (const std::string& constant : plan.constants)
      if (plan.problem.row_loads > 0)
        schedule.prefetch(reduction_name, constant, reduce_loops.back(), kPrefetchDistance);
  std::ostringstream text;
  text << "tile " << plan.tile.rows << "x" << plan.tile.vectors * lanes << " (" << plan.tile.rows * plan.tile.vectors
       << " accumulators), " << plan.rows << "x" << plan.columns << " over " << plan.steps << " steps, predicted "
       << static_cast<int>(plan.tile.efficiency * 100) << " % of peak, "
       << (vectors_fit ? "vectors from L2" : "one block of vectors for all rows");
  draft.explain(reduction_name, text.str());
  return true;
}

}  // namespace tensmith
