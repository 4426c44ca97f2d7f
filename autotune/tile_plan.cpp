#include "autotune/tile_plan.h"

#include <algorithm>

#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

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

/// How many values an index takes while the reduction runs and the row axis takes `rows` values.
int64_t values_of(const Expr& index, const StageNode& body, int row_dim, int64_t rows) {
  RangeMap ranges;
  for (size_t d = 0; d < body.axes.size(); ++d)
    ranges[body.axes[d].var.get()] = {Expr(0), Expr(static_cast<int>(d) == row_dim ? rows - 1 : 0)};
  for (const Axis& axis : body.reduce_axes)
    ranges[axis.var.get()] = {Expr(0), Expr(ScheduleDraft::size_of(axis.extent) - 1)};
  const Interval range = bounds_of(index, ranges);
  int64_t low, high;
  const bool known = range.lo.get() && range.hi.get() && as_const_int(simplify(range.lo), &low) &&
                     as_const_int(simplify(range.hi), &high);
  return known ? std::max<int64_t>(1, high - low + 1) : 1;
}

/// What rows and vectors both index: the elements of a column that all rows reach, and what neighbouring rows share.
void look_at_window(const StageNode& body, const TensorAccess& access, const Var& v, TilePlan* plan) {
  int64_t elements = 1;
  for (const Expr& index : access.indices) {
    if (uses_var(index, v)) {
      elements *= values_of(index, body, -1, 1);  // vectors that start apart are loads apart
      continue;
    }
    elements *= values_of(index, body, plan->row_dim, plan->rows);
    if (plan->row_dim >= 0 && uses_var(index, body.axes[plan->row_dim].var))
      plan->problem.shared_rows = std::max(
          plan->problem.shared_rows, 2 * values_of(index, body, -1, 1) - values_of(index, body, plan->row_dim, 2));
  }
  plan->window_elements += elements;
}

/// Whether the steps of the reduction walk over more pages than a core keeps translations for: then each tile of rows
/// would look all of them up anew (attention over 1,024 places, values among 2,304 columns: 34 ms, as a copy 22 ms).
bool walks_many_pages(const ScheduleState& state, const TensorAccess& access, const StageNode& body) {
  constexpr double kPage = 4096, kPages = 1024;
  double pages = 1;
  for (const Axis& axis : body.reduce_axes) {
    const auto stride = stride_of(state, access, body, axis.var);
    const auto extent = static_cast<double>(ScheduleDraft::size_of(axis.extent));
    const double step = stride ? static_cast<double>(std::abs(*stride) * access.buffer->dtype.bytes()) : kPage;
    pages *= std::max(1.0, extent * std::min(1.0, step / kPage));
  }
  return pages >= kPages;
}

/// The block in which the dimension that `var` walks is stored (channels in blocks of 16), 1 when it is not.
int64_t block_of(const ScheduleState& state, const TensorAccess& access, const Var& var) {
  const StageState& producer = state.stages[access.producer];
  for (const LayoutDim& dim : producer.layouts.empty() ? std::vector<LayoutDim>() : producer.layouts[0].dims())
    if (dim.mod > 1 && is_var(access.indices[dim.dim], var)) return dim.mod;
  return 1;
}

/// A reduction over channels that lie in blocks: one block after the other, all taps of it, keeps divisions out of the
/// innermost loop and what a tile reads in L1. (Cutting the channels of a channels-last convolution alike gained
/// nothing: 512 channels of 7x7 pixels 0.70 of peak against 0.73.)
std::optional<ReducePiece> choose_piece(const ScheduleState& state, const StageNode& body, const TilePlan& plan) {
  if (plan.problem.row_loads == 0) return {};
  for (size_t a = 0; a < body.reduce_axes.size(); ++a) {
    const int64_t extent = ScheduleDraft::size_of(body.reduce_axes[a].extent);
    for (const TensorAccess& access : accesses_of(state, body)) {
      const int64_t block = block_of(state, access, body.reduce_axes[a].var);
      if (block > 1 && extent % block == 0 && extent > block) return ReducePiece{static_cast<int>(a), block};
    }
  }
  return {};
}

/// Only what the reduction reads itself can be copied for it, not what an inlined stage hands through.
bool reads_directly(const StageState& reduction, const Buffer& buffer) {
  const std::vector<Buffer> direct = read_buffers(*reduction.stage);
  return std::any_of(direct.begin(), direct.end(), [&](const Buffer& b) { return b.same_as(buffer); });
}

/// Whether each step along the vector axis is one step along a dimension on which the reduction stays (a channel, no
/// place in a window): then a copy with that dimension innermost is contiguous.
bool moves_alone(const StageNode& body, const TensorAccess& access, int vector_dim) {
  return std::all_of(access.indices.begin(), access.indices.end(), [&](const Expr& index) {
    return !uses_var(index, body.axes[vector_dim].var) || values_of(index, body, vector_dim, 2) == 2;
  });
}

/// Whether each of so many elements is read for several of the results, so that turning them all first is worth it.
bool is_read_often(int64_t points, int64_t steps, int64_t elements) {
  constexpr int64_t kOften = 2;
  return points * steps >= kOften * elements;
}

// Vectors that start anywhere mostly lie in two lines, and such a load takes as long as four (2.26 cycles in a tile of
// 12x16 pixels of planes, whose fraction of peak is 0.22 for that).
constexpr double kSplitLoads = 3;

/// The size of the groups of `var`'s values by which the body reads its operands (index `var // size`), 0 without such
/// an index, -1 when there are several sizes.
int64_t group_size_of(const StageNode& body, const Var& var) {
  int64_t size = 0;
  for (const Expr& value : body.bodies)
    visit(value, [&](const Expr& e) {
      const auto* division = e.as<Binary>();
      int64_t by = 0;
      if (!division || division->op != BinaryOp::kFloorDiv || !is_var(division->a, var) ||
          !as_const_int(division->b, &by))
        return true;
      size = size == 0 || size == by ? by : -1;
      return true;
    });
  return size;
}

/// The accesses as they are within the first group.
std::vector<TensorAccess> within_group(std::vector<TensorAccess> accesses, const Var& var, int64_t size) {
  for (TensorAccess& access : accesses)
    for (Expr& index : access.indices)
      index = rewrite(index, [&](const Expr& e) {
        const auto* division = e.as<Binary>();
        const bool group = division && division->op == BinaryOp::kFloorDiv && is_var(division->a, var) &&
                           is_const_int(division->b, size);
        return group ? Expr(0) : e;
      });
  return accesses;
}

/// Whether the reduction moves the access along the axis that becomes vectors (taps along a row of pixels).
bool shifts_along(const StageNode& body, const TensorAccess& access, const Var& v) {
  return std::any_of(access.indices.begin(), access.indices.end(),
                     [&](const Expr& index) { return uses_var(index, v) && values_of(index, body, -1, 1) > 1; });
}

/// Whether some points of the reduction take no part.
bool has_border(const StageNode& body) {
  if (body.where.get() == nullptr) return false;
  Facts facts;
  for (const auto* axes : {&body.axes, &body.reduce_axes})
    for (const Axis& axis : *axes) facts.set_range(axis.var, Expr(0), axis.extent);
  return !can_prove(body.where, facts);
}

/// Whether values of `line` only bring vectors of their own to the rows of a tile: what rows read stays as it is, and
/// nothing is copied or packed for the vectors (lines of pixels of planes, few filters as rows).
bool are_lines(const StageNode& body, const std::vector<TensorAccess>& accesses, const TilePlan& plan,
               const Var& line) {
  if (plan.row_dim < 0 || !plan.constants.empty() || !plan.to_copy.empty() || plan.window_elements > 0) return false;
  // A border asks for a mask of each line, beside all its accumulators (39 spills for 20 FMAs).
  if (has_border(body)) return false;
  const Var& row = body.axes[static_cast<size_t>(plan.row_dim)].var;
  return std::none_of(accesses.begin(), accesses.end(), [&](const TensorAccess& access) {
    const auto uses = [&](const Var& var) {
      return std::any_of(access.indices.begin(), access.indices.end(),
                         [&](const Expr& index) { return uses_var(index, var); });
    };
    return uses(row) && uses(line);
  });
}

// Tiles within smaller groups are mostly empty (two filters a channel: 0.26 ms in them, 0.16 in plain loops).
constexpr int64_t kFewestOfGroup = 4;
// So many rows share a vector at least where rows that share none are the worse choice.
constexpr int64_t kFewestSharing = 4;
// Elements that lie so far apart are picked out of whole vectors.
constexpr int64_t kMostPicked = 4;

/// Fills in the plan with the axis at `row_place` of the reader's storage order as rows (-1: none, and nothing when
/// that axis suits no rows).
bool make_plan(const ScheduleDraft& draft, const std::string& reader_name, const std::string& reduction_name,
               int row_place, TilePlan* plan) {
  const ScheduleState& state = draft.schedule.state();
  const StageState& reader = draft.stage(reader_name);
  const Stage reader_stage = draft.effective(reader_name), body = draft.effective(reduction_name);
  const StageState& reduction = draft.stage(reduction_name);
  const int reduction_index = draft.index_of(reduction_name);
  const std::vector<int> order = draft.storage_order(reader);
  if (order.empty() || body->outputs.size() != 1 || body->reduce_axes.empty()) return false;
  const auto size = [&](int axis) { return draft.extent_of(reader, axis); };
  plan->vector_axis = order.back();
  if (size(plan->vector_axis) == 1 && order.size() > 1) return false;
  plan->vector_dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[plan->vector_axis].var);
  if (plan->vector_dim < 0) return false;
  plan->columns = size(plan->vector_axis);
  if (row_place >= 0) {
    const int axis = order[static_cast<size_t>(row_place)];
    plan->row_axis = axis;
    plan->row_dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[axis].var);
    plan->rows = size(axis);
    if (plan->rows == 1 || plan->row_dim < 0) return false;
  }
  std::vector<TensorAccess> accesses = accesses_of(state, *body);
  for (const auto& [axis, dim, extent] : {std::tuple{plan->vector_axis, plan->vector_dim, &plan->columns},
                                          std::tuple{plan->row_axis, plan->row_dim, &plan->rows}}) {
    if (axis < 0) continue;
    const Var var = body->axes[static_cast<size_t>(dim)].var;
    const int64_t group = group_size_of(*body, var);
    if (group == 0) continue;
    // Of both axes at once nobody has groups.
    if (group < 0 || plan->group_axis >= 0 || *extent % group != 0) return false;
    if (group == *extent) continue;
    if (group < kFewestOfGroup) return false;
    plan->group_axis = axis;
    plan->group_size = group;
    *extent = group;
    accesses = within_group(std::move(accesses), var, group);
  }
  int64_t free_steps = 1;              // of the loops that no condition on rows depends on
  std::vector<bool> conditioned_axes;  // by reduce axis
  for (const Axis& axis : body->reduce_axes) {
    plan->steps *= ScheduleDraft::size_of(axis.extent);
    bool conditioned = false;
    if (body->where.get() && plan->row_dim >= 0)
      visit(body->where, [&](const Expr& e) {
        if (const auto* b = e.as<Binary>(); b && is_compare(b->op))
          conditioned |= uses_var(e, axis.var) && uses_var(e, body->axes[plan->row_dim].var);
        return true;
      });
    if (!conditioned) free_steps *= ScheduleDraft::size_of(axis.extent);
    conditioned_axes.push_back(conditioned);
  }

  const Var v = body->axes[plan->vector_dim].var;
  int64_t points = 1;
  for (const Axis& axis : body->axes) points *= ScheduleDraft::size_of(axis.extent);
  TileProblem& problem = plan->problem;
  problem.rows = plan->rows;
  problem.columns = plan->columns;
  problem.lanes = draft.lanes_for(body->outputs[0]->dtype);
  // A group that fills no vector gets a shorter one.
  if (plan->group_axis == plan->vector_axis)
    while (problem.lanes > 4 && problem.lanes / 2 >= plan->columns) problem.lanes /= 2;
  problem.steps = plan->steps;
  problem.row_loads = problem.column_loads = problem.element_loads = 0;
  // Of an operand's bytes, those that a piece of the reader needs.
  const auto bytes_of = [&](const TensorAccess& access) {
    auto bytes = static_cast<double>(access.buffer->dtype.bytes());
    for (const Expr& extent : access.buffer->shape) bytes *= static_cast<double>(ScheduleDraft::size_of(extent));
    for (const int axis : order) {
      const int dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[axis].var);
      const bool moves = dim >= 0 && std::any_of(access.indices.begin(), access.indices.end(), [&](const Expr& index) {
                           return uses_var(index, body->axes[dim].var);
                         });
      if (moves)
        bytes *= static_cast<double>(size(axis)) /
                 static_cast<double>(ScheduleDraft::size_of(reader.stage->axes[axis].extent));
    }
    return static_cast<int64_t>(bytes);
  };
  bool shifts = false, picks = false;
  for (const TensorAccess& access : accesses) {
    const auto v_stride = stride_of(state, access, *body, v);
    const auto r_stride =
        plan->row_dim < 0 ? std::optional<int64_t>(0) : stride_of(state, access, *body, body->axes[plan->row_dim].var);
    const StageState& source = state.stages[access.producer];
    const bool constant = source.stage->is_constant;
    const bool by_vector = !v_stride || *v_stride != 0, by_row = !r_stride || *r_stride != 0;
    if (by_vector && by_row) {
      problem.element_loads += 1;
      if (shifts_along(*body, access, v)) {
        problem.element_loads += kSplitLoads;
        shifts = true;
      }
      look_at_window(*body, access, v, plan);
      // Read again for each value of another axis: rows of that one would share the vectors (1x1 from 256 to 35
      // channels over planes: 0.12 of peak with rows of pixels, 0.61 with rows of channels).
      for (const int axis : order) {
        const int dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[axis].var);
        const bool stays =
            dim >= 0 && std::none_of(access.indices.begin(), access.indices.end(),
                                     [&](const Expr& index) { return uses_var(index, body->axes[dim].var); });
        if (stays && size(axis) >= kFewestSharing) problem.element_loads += kSplitLoads;
      }
      const int64_t element_bytes = bytes_of(access);
      if (v_stride && *v_stride > 1 && *v_stride <= kMostPicked && shifts) {
        // Places of planes in strides, as below.
        problem.element_loads += static_cast<double>(2 * *v_stride - 2);
      } else if (!v_stride || *v_stride != 1) {
        if (!v_stride || !is_read_often(points, plan->steps, element_bytes / access.buffer->dtype.bytes()))
          return false;
        if (!moves_alone(*body, access, plan->vector_dim) || !reads_directly(reduction, access.buffer)) return false;
        plan->to_turn.push_back(source.name);
      }
      plan->element_operand_bytes += element_bytes;
      continue;
    }
    const int64_t bytes = bytes_of(access);
    if (by_row) {
      problem.row_loads += 1;
      plan->row_operand_bytes += bytes;
      if (r_stride && *r_stride * access.buffer->dtype.bytes() % 4096 == 0 && source.align_elements == 0)
        problem.rows_conflict = true;
    }
    if (!by_vector) continue;
    problem.column_loads += shifts_along(*body, access, v) ? 1 + kSplitLoads : 1;
    plan->vector_operand_bytes += bytes;
    if (constant) plan->constant_bytes += bytes;
    // Narrow weights beside wide operands are widened for each tile of rows: an extension and a conversion.
    const DType stored = access.buffer->dtype, wide = body->outputs[0]->dtype;
    const bool beside_wide = std::any_of(accesses.begin(), accesses.end(),
                                         [&](const TensorAccess& other) { return other.buffer->dtype == wide; });
    if (constant && wide == kFloat32 && stored.bytes() < wide.bytes() && beside_wide) {
      problem.column_ops += 2;
      plan->narrow = stored;
      problem.column_share = static_cast<double>(stored.bytes()) / static_cast<double>(wide.bytes());
    }
    if (constant && source.layouts[0].dims().empty()) {
      // It can be packed when the vector axis indexes one dimension by itself.
      int dims = 0;
      for (const Expr& index : access.indices) dims += is_var(index, v) ? 1 : uses_var(index, v) ? 2 : 0;
      if (dims == 1) plan->constants.push_back(source.name);
      else if (!v_stride || *v_stride != 1) return false;
    } else if (v_stride && *v_stride > 1 && *v_stride <= kMostPicked) {
      // So many whole vectors are read and one less are made of them.
      problem.column_loads += static_cast<double>(2 * *v_stride - 2);
      picks = true;
    } else if (!v_stride || *v_stride != 1 || walks_many_pages(state, access, *body)) {
      const bool across = !v_stride || *v_stride != 1;
      if (plan->rows >= 4 && v_stride && reads_directly(reduction, access.buffer)) plan->to_copy.push_back(source.name);
      else if (across) return false;
    }
  }
  if (picks && problem.row_loads == 0) return false;  // no rows share what was picked
  // Steps that stand behind each other share what neighbouring rows read, and the scheduler keeps it in registers.
  constexpr int64_t kShortLoop = 9;
  const std::vector<std::pair<double, int>> walk = reduction_order(state, *body, plan->constants);
  problem.written_out = free_steps < plan->steps &&
                        (free_steps <= kShortLoop || conditioned_axes[static_cast<size_t>(walk.back().second)]);
  // Neighbouring rows share what their windows have in common.
  if (plan->window_elements > 0 && !shifts && problem.element_loads < 1 + kSplitLoads)
    problem.element_loads = std::min(problem.element_loads, static_cast<double>(plan->window_elements) /
                                                                static_cast<double>(plan->rows * plan->steps));
  for (int axis : order) {
    if (axis == plan->vector_axis || axis == plan->row_axis) continue;
    const int dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[axis].var);
    bool changes = false;
    for (const TensorAccess& access : accesses) {
      bool by_vector = false, by_axis = false;
      for (const Expr& index : access.indices) {
        by_vector |= uses_var(index, v);
        by_axis |= dim >= 0 && uses_var(index, body->axes[dim].var);
      }
      changes |= by_vector && by_axis && plan->window_elements == 0;
    }
    if (changes) plan->batch_axes.push_back(axis);
  }
  if (const auto stride = store_stride_of(reader, 0, reader.stage->axes[plan->vector_axis].var, problem.lanes))
    plan->columns_adjacent = *stride == problem.lanes;
  plan->tile = choose_register_tile(problem, draft.target());
  // Rows that are short by themselves: tiles over several of them use each vector more often.
  if (plan->row_axis < 0 || plan->rows >= draft.target().vector_registers / 2) return true;
  for (size_t k = order.size() - 1; k-- > 0;) {
    if (order[k] == plan->row_axis || size(order[k]) == 1) continue;
    const int dim = dim_read_with(state, *reader_stage, reduction_index, reader.stage->axes[order[k]].var);
    if (dim < 0) break;
    const bool lines = std::count(plan->batch_axes.begin(), plan->batch_axes.end(), order[k]) > 0;
    if (lines && !are_lines(*body, accesses, *plan, body->axes[static_cast<size_t>(dim)].var)) break;
    TileProblem both = problem;
    both.rows = plan->rows * size(order[k]);
    both.row_multiple = plan->rows;
    both.line_rows = lines ? plan->rows : 0;
    // Short rows lie apart by whole rows; their conflict is that of the outer stride.
    const RegisterTile tile = choose_register_tile(both, draft.target());
    if (tile.cycles == 0) break;
    // Vectors come from L2 or further once a tile: more rows a tile are worth a little issue efficiency.
    const double alone = plan->tile.cycles * static_cast<double>(size(order[k]));
    if (tile.rows > plan->tile.rows && tile.cycles < alone * (lines ? 0.95 : 1.1)) {
      plan->tile = tile;
      problem.line_rows = both.line_rows;
      plan->outer_row_axis = order[k];
      plan->outer_row_dim = dim;
      plan->outer_rows = tile.rows / plan->rows;
    }
    break;
  }
  return true;
}

}  // namespace

int64_t block_of_columns(const TilePlan& plan) {
  const int64_t lanes = plan.problem.lanes, most = plan.tile.vectors * lanes;
  if (plan.group_axis < 0 || plan.group_axis != plan.vector_axis)
    return std::min(most, (plan.columns + lanes - 1) / lanes * lanes);
  int64_t block = std::min(most, plan.columns);
  while (plan.columns % block != 0) --block;
  return block;
}

std::optional<TilePlan> plan_tile(const ScheduleDraft& draft, const std::string& reader, const std::string& reduction) {
  // The nearest axis that suits; one further out only where it serves much better, since neighbours share lines.
  constexpr double kMuchBetter = 1.25;
  std::optional<TilePlan> best;
  for (int place = static_cast<int>(draft.storage_order(draft.stage(reader)).size()) - 2; place >= -1; --place) {
    if (place < 0 && best) break;
    TilePlan plan;
    if (!make_plan(draft, reader, reduction, place, &plan)) continue;
    // A group that no piece near a vector's length divides.
    if (2 * block_of_columns(plan) < std::min<int64_t>(plan.columns, plan.problem.lanes)) continue;
    if (!best || plan.tile.efficiency > best->tile.efficiency * kMuchBetter) best = std::move(plan);
  }
  if (best) best->piece = choose_piece(draft.schedule.state(), *draft.effective(reduction), *best);
  return best;
}

std::vector<std::pair<double, int>> reduction_order(const ScheduleState& state, const StageNode& body,
                                                    const std::vector<std::string>& packed) {
  std::vector<std::pair<double, int>> order;
  for (size_t a = 0; a < body.reduce_axes.size(); ++a) {
    double distance = 0;
    for (const TensorAccess& access : accesses_of(state, body)) {
      const auto stride = stride_of(state, access, body, body.reduce_axes[a].var);
      if (std::count(packed.begin(), packed.end(), state.stages[static_cast<size_t>(access.producer)].name)) continue;
      distance += stride ? static_cast<double>(std::abs(*stride)) : 1e9;
    }
    order.push_back({-distance, static_cast<int>(a)});
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return order;
}

/// Packs a constant: blocks of the vector dimension outermost, then the other dims as the reduction walks them, lanes
/// innermost.
void pack_constant(ScheduleDraft& draft, const std::string& name, const std::string& reduction, const TilePlan& plan,
                   int64_t block) {
  const Stage body = draft.effective(reduction);
  const StageState& r = draft.stage(reduction);
  const Var& v = body->axes[plan.vector_dim].var;
  // Position in the loop order of the innermost loop that comes from one of the reduce axes that `index` uses.
  const auto depth = [&](const Expr& index, bool of_pieces) {
    int deepest = -1;
    for (size_t k = 0; k < r.order.size(); ++k)
      for (size_t a = 0; a < r.reduce_loops.size(); ++a)
        if (uses_var(index, body->reduce_axes[a].var) && r.comes_from(r.order[k], r.reduce_loops[a]) &&
            !(of_pieces && deepest >= 0))
          deepest = static_cast<int>(k);
    return deepest;
  };
  // Dims that no reduction moves along (groups, batches) stay outside the blocks.
  std::vector<std::pair<int, std::string>> dims;
  int vector_dim = -1;
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body)) {
    if (draft.schedule.state().stages[access.producer].name != name) continue;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const Expr& index = access.indices[d];
      if (is_var(index, v)) {
        vector_dim = static_cast<int>(d);
      } else if (plan.piece && is_var(index, body->reduce_axes[plan.piece->axis].var)) {
        const std::string length = std::to_string(plan.piece->length);
        dims.emplace_back(depth(index, true), std::to_string(d) + "/" + length);
        dims.emplace_back(depth(index, false), std::to_string(d) + "%" + length);
      } else {
        dims.emplace_back(depth(index, false), std::to_string(d));
      }
    }
    break;
  }
  std::stable_sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string layout = std::to_string(vector_dim) + (block > 1 ? "/" + std::to_string(block) : "");
  for (const auto& [position, dim] : dims) layout += "," + dim;
  if (block > 1) layout += "," + std::to_string(vector_dim) + "%" + std::to_string(block);
  draft.schedule.transform_layout(name, layout);
}

}  // namespace tensmith
