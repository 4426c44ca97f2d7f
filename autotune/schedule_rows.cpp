#include <algorithm>
#include <map>
#include <optional>

#include "autotune/schedule_rules.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// The dimension of a constant operand that alone is indexed by `var`, where the constant may be laid out anew so that
/// it is contiguous; -1 otherwise.
int dim_to_move(const ScheduleState& state, const TensorAccess& access, const Var& var) {
  const StageState& source = state.stages[access.producer];
  if (!source.stage->is_constant || !source.layouts[0].dims().empty() ||
      state.consumers_of(access.producer).size() != 1)
    return -1;
  int dim = -1;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (!uses_var(access.indices[d], var)) continue;
    if (dim >= 0 || !is_var(access.indices[d], var)) return -1;
    dim = static_cast<int>(d);
  }
  return dim;
}

/// The reduce axis along which the stage's operands are contiguous, or can be made so, or -1.
int contiguous_reduce_axis(const ScheduleDraft& draft, const StageNode& body) {
  int best = -1;
  int64_t best_extent = 0;
  for (size_t a = 0; a < body.reduce_axes.size(); ++a) {
    bool contiguous = true;
    for (const TensorAccess& access : accesses_of(draft.schedule.state(), body)) {
      const auto stride = stride_of(draft.schedule.state(), access, body, body.reduce_axes[a].var);
      contiguous = contiguous && ((stride && (*stride == 0 || *stride == 1)) ||
                                  dim_to_move(draft.schedule.state(), access, body.reduce_axes[a].var) >= 0);
    }
    const int64_t extent = ScheduleDraft::size_of(body.reduce_axes[a].extent);
    if (contiguous && extent > best_extent) {
      best = static_cast<int>(a);
      best_extent = extent;
    }
  }
  return best;
}

/// For each dimension of the stages in `cone`: the axis of `reader` that indexes it, directly or through other stages;
/// -1 for constants and for dimensions that somebody reduces over. False when an index is more than a variable.
bool follow_axes(const ScheduleDraft& draft, const std::string& reader, const std::vector<std::string>& cone,
                 std::map<std::string, std::vector<int>>* axes_of) {
  const ScheduleState& state = draft.schedule.state();
  std::vector<int> own(draft.stage(reader).stage->axes.size());
  for (size_t a = 0; a < own.size(); ++a) own[a] = static_cast<int>(a);
  (*axes_of)[reader] = own;
  // Consumers first.
  std::vector<std::string> stages(cone.rbegin(), cone.rend());
  for (const std::string& stage : stages) (*axes_of)[stage].assign(draft.stage(stage).stage->axes.size(), -1);
  stages.insert(stages.begin(), reader);
  for (const std::string& user : stages) {
    const Stage body = draft.effective(user);
    for (const TensorAccess& access : accesses_of(state, *body)) {
      const auto found = axes_of->find(state.stages[access.producer].name);
      if (found == axes_of->end()) continue;
      for (size_t d = 0; d < access.indices.size(); ++d) {
        int axis = -1;
        bool simple = collect_vars(access.indices[d]).empty();
        for (size_t a = 0; a < body->axes.size(); ++a)
          if (is_var(access.indices[d], body->axes[a].var)) {
            axis = (*axes_of)[user][a];
            simple = true;
          }
        for (const Axis& reduced : body->reduce_axes) simple = simple || is_var(access.indices[d], reduced.var);
        if (!simple) return false;
        if (axis >= 0) found->second[d] = axis;
      }
    }
  }
  return true;
}

/// Lays constant operands out so that they are contiguous along the reduce axis.
void turn_constants(ScheduleDraft& draft, const StageNode& body, const Var& axis) {
  std::map<std::string, std::string> layouts;
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), body)) {
    const int dim = dim_to_move(draft.schedule.state(), access, axis);
    const int last = static_cast<int>(access.indices.size()) - 1;
    if (dim < 0 || dim == last) continue;
    std::string& layout = layouts[draft.schedule.state().stages[access.producer].name];
    layout.clear();
    for (int d = 0; d <= last; ++d)
      if (d != dim) layout += std::to_string(d) + ",";
    layout += std::to_string(dim);
  }
  for (const auto& [constant, layout] : layouts) draft.schedule.transform_layout(constant, layout);
}

/// Lanes for a loop that is too short for a whole vector: as few as hold it.
int lanes_within(int lanes, int64_t extent) {
  while (lanes / 2 >= extent && lanes > 4) lanes /= 2;
  return lanes;
}

/// Vector lanes for a reduction that is computed at a few rows, whose loop is `row` (empty: at one row): partial
/// results per lane in registers, then over the lanes. Decides `lanes` (0: none) and `lane_vectors`.
void reduce_in_lanes(ScheduleDraft& draft, const std::string& name, const std::string& reader, const std::string& at,
                     const std::string& row, int64_t rows) {
  Schedule& schedule = draft.schedule;
  const Stage body = draft.effective(name);
  const int axis = contiguous_reduce_axis(draft, *body);
  if (body->outputs.size() > 1 || axis < 0) return;
  const int64_t extent = ScheduleDraft::size_of(body->reduce_axes[axis].extent);
  constexpr int64_t kShortest = 3;
  if (extent < kShortest) return;
  const int usual = lanes_within(draft.lanes_for(body->outputs[0]->dtype), extent);
  if (usual < kShortest) return;
  Question width(name, "lanes");
  width.offer(int64_t{0}, 4);
  for (int64_t count = usual; count >= 4; count /= 2)
    width.offer(count, static_cast<double>(usual) / static_cast<double>(count));
  const auto lanes = static_cast<int>(draft.decide_number(std::move(width.prefer(int64_t{usual}))));
  if (lanes == 0) return;
  turn_constants(draft, *body, body->reduce_axes[axis].var);
  const std::string loop = draft.stage(name).loops[draft.stage(name).reduce_loops[axis]].name;
  // Four vectors hide the latency of the accumulation, also those of several rows.
  const int64_t wanted = std::max<int64_t>(1, 4 / rows);
  Question turn(name, "lane_vectors");
  for (int64_t count = 1; count == 1 || (count <= 8 && count * lanes <= extent); count *= 2)
    if (count == 1 || count * rows <= draft.target().vector_registers / 2) turn.offer(count, 1.1);
  const int64_t vectors =
      draft.decide_number(std::move(turn.prefer(std::min(wanted, extent >= 4 * lanes   ? 4
                                                                 : extent >= 2 * lanes ? 2
                                                                                       : int64_t{1}))));
  schedule.split(name, loop, vectors * lanes, loop + ".o", loop + ".p", Tail::kGuard);
  const std::string partial = draft.fresh(name + "_partial");
  schedule.rfactor(name, loop + ".p", partial);
  std::vector<std::string> row_loops;
  if (!row.empty()) row_loops.push_back(row);
  if (vectors > 1) {
    // First over the vectors, then over the lanes of the one that is left.
    schedule.split(name, loop + ".p", lanes, loop + ".v", loop + ".l");
    const std::string folded = draft.fresh(name + "_lanes");
    schedule.rfactor(name, loop + ".l", folded);
    schedule.compute_at(folded, reader, at);
    schedule.compute_at(partial, reader, at);
    schedule.set_scope(folded, "register");
    schedule.unroll(folded, loop + ".v");
    if (!row.empty()) schedule.unroll(folded, row);
    schedule.vectorize(folded, loop + ".l");
    schedule.vectorize(name, loop + ".l");
  } else {
    schedule.compute_at(partial, reader, at);
    schedule.vectorize(name, loop + ".p");
  }
  schedule.tile(partial, row_loops, loop + ".p", lanes);
  // The rows' results lie on the stack, so that the loops that read them need not be unrolled.
  if (row.empty()) schedule.set_scope(name, "register");
  else schedule.unroll(name, row);
  draft.explain(name, "row reduction in " + std::to_string(vectors) + " x " + std::to_string(lanes) + " lanes");
}

constexpr int64_t kMostTogether = 8;

/// How many rows go together: between the end of one row's reduction and the start of what needs it the core waits,
/// unless it has other rows to work on. What they read again has to stay in half of L1. Units: rows; bytes of a row.
int64_t rows_together(const Target& target, int64_t extent, double row_bytes) {
  const double room = static_cast<double>(target.l1_bytes) / 2;
  const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(room / std::max(1.0, row_bytes)), 1, kMostTogether);
  // Rows that are left over go by themselves, so fewer that divide are better unless they are much fewer.
  for (int64_t rows = most; rows > most / 2; --rows)
    if (extent % rows == 0) return rows;
  return std::min(most, extent);
}

}  // namespace

namespace {

/// What is known of rows before anything is changed.
struct RowPlan {
  std::map<std::string, std::vector<int>> axes_of;  ///< see follow_axes
  std::vector<bool> is_row;                         ///< by axis of the reader
  std::vector<std::string> rows, inner;             ///< loops of the reader
  double row_count = 1, row_points = 1;
  int row_axis = -1;  ///< of the last row loop
  int64_t row_extent = 1;
  int vector_axis = -1;
};

std::optional<RowPlan> plan_rows(const ScheduleDraft& draft, const std::string& name,
                                 const std::vector<std::string>& cone) {
  const StageState& reader = draft.stage(name);
  const std::vector<int> order = draft.storage_order(reader);
  RowPlan plan;
  // Row axes: those that the reductions' results depend on; they must be the outer ones of the storage.
  plan.is_row.resize(order.size());
  if (!follow_axes(draft, name, cone, &plan.axes_of)) return {};
  for (const std::string& stage : cone) {
    const Stage body = draft.effective(stage);
    if (!body->reducer) continue;
    for (size_t d = 0; d < body->axes.size(); ++d) {
      const int axis = plan.axes_of[stage][d];
      if (axis >= 0) plan.is_row[axis] = true;
      else if (ScheduleDraft::size_of(body->axes[d].extent) > 1) return {};
    }
  }
  int64_t known;
  for (int axis : order) {
    const std::string loop = reader.loops[reader.axis_loops[axis]].name;
    const int64_t extent = draft.extent_of(reader, axis);
    if (plan.is_row[axis]) {
      if (!plan.inner.empty() && extent > 1) return {};
      if (extent > 1 || plan.inner.empty()) {
        plan.rows.push_back(loop);
        plan.row_count *= static_cast<double>(extent);
        plan.row_axis = axis;
        plan.row_extent = as_const_int(reader.stage->axes[axis].extent, &known) ? extent : 1;
      } else {
        plan.inner.push_back(loop);
      }
    } else if (extent == 1 && plan.inner.empty()) {
      plan.rows.push_back(loop);
    } else {
      plan.inner.push_back(loop);
      plan.row_points *= static_cast<double>(extent);
    }
  }
  for (const std::string& stage : cone) {
    const Stage body = draft.effective(stage);
    double points = 1;
    for (const Axis& axis : body->reduce_axes) points *= static_cast<double>(ScheduleDraft::size_of(axis.extent));
    if (body->reducer) plan.row_points = std::max(plan.row_points, points);
  }
  // One row: everything at root, each stage on its own.
  if (plan.rows.empty()) return {};
  plan.vector_axis = order.back();
  return plan;
}

}  // namespace

bool rows_suit(const ScheduleDraft& draft, const std::string& name, const std::vector<std::string>& cone) {
  return plan_rows(draft, name, cone).has_value();
}

bool schedule_rows(ScheduleDraft& draft, const std::string& name, const std::vector<std::string>& cone) {
  const std::optional<RowPlan> plan = plan_rows(draft, name, cone);
  if (!plan) return false;
  const auto& [axes_of, is_row, planned_rows, inner, row_count, row_points, row_axis, row_extent, vector_axis] = *plan;
  std::vector<std::string> rows = planned_rows;
  Schedule& schedule = draft.schedule;
  std::vector<std::string> all = rows;
  all.insert(all.end(), inner.begin(), inner.end());
  schedule.reorder(name, all);
  const int lanes = draft.lanes_for(draft.stage(name).stage->outputs[0]->dtype);
  if (!inner.empty())
    draft.vectorize_loop(name, inner.back(), draft.stage(name).stage->axes[vector_axis].extent, lanes);
  // What a row keeps between its stages lies on the thread's stack; rows too long for that run on one thread, in a
  // workspace.
  constexpr double kMaxRowBytes = 96 * 1024;
  bool long_row = false;
  double row_bytes = row_points * static_cast<double>(draft.stage(name).stage->outputs[0]->dtype.bytes());
  for (const std::string& stage : cone) {
    const Stage body = draft.effective(stage);
    double bytes = static_cast<double>(body->outputs[0]->dtype.bytes());
    for (size_t d = 0; d < body->axes.size(); ++d)
      if (axes_of.at(stage)[d] < 0 || !is_row[axes_of.at(stage)[d]])
        bytes *= static_cast<double>(ScheduleDraft::size_of(body->axes[d].extent));
    long_row = long_row || bytes > kMaxRowBytes;
    row_bytes += bytes;
  }
  const double cycles = row_count * row_points / lanes * 8 * static_cast<double>(cone.size() + 1);
  Question group(name, "rows_together");
  group.offer(int64_t{1}, 1.2);
  for (int64_t count = 2; count <= std::min(kMostTogether, row_extent) && !long_row; ++count)
    group.offer(count, row_extent % count == 0 ? 1.1 : 1.3);
  const int64_t together = draft.decide_number(
      std::move(group.prefer(long_row ? int64_t{1} : rows_together(draft.target(), row_extent, row_bytes))));
  if (together > 1) {
    const std::string loop = rows.back();
    schedule.split(name, loop, together, loop + ".o", loop + ".i", Tail::kPeel);
    rows.back() = loop + ".o";
  }
  const std::string at = long_row ? rows.back() : draft.parallelize(name, rows, cycles);
  for (auto stage = cone.rbegin(); stage != cone.rend(); ++stage) schedule.compute_at(*stage, name, at);
  for (const std::string& stage : cone) {
    const Stage body = draft.effective(stage);
    if (body->reducer) {
      // The loop over its rows, if it has one.
      std::string row;
      for (size_t d = 0; d < body->axes.size(); ++d)
        if (together > 1 && axes_of.at(stage)[d] == row_axis)
          row = draft.stage(stage).loops[draft.stage(stage).axis_loops[d]].name;
      reduce_in_lanes(draft, stage, name, at, row, row.empty() ? 1 : together);
      continue;
    }
    const std::vector<int> storage = draft.storage_order(draft.stage(stage));
    if (storage.empty()) continue;
    const StageState& s = draft.stage(stage);
    const std::string loop = s.loops[s.axis_loops[storage.back()]].name;
    draft.vectorize_loop(stage, loop, s.stage->axes[storage.back()].extent, lanes);
  }
  draft.explain(name, "row by row");
  return true;
}

}  // namespace tensmith
