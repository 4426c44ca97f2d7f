#include "autotune/default_schedule.h"

#include <algorithm>

#include "autotune/schedule_rules.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// Whether the reader uses the reduction at its own innermost axis (so that vectors can run along it).
bool varies_along_vector(const ScheduleDraft& draft, const std::string& reader, const std::string& reduction) {
  const StageState& r = draft.stage(reader);
  const std::vector<int> order = draft.storage_order(r);
  if (order.empty()) return false;
  const Var v = r.stage->axes[order.back()].var;
  const Stage body = draft.effective(reader);
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body))
    if (access.producer == draft.index_of(reduction))
      for (const Expr& index : access.indices)
        if (uses_var(index, v)) return true;
  return false;
}

/// A reduction that nothing fits: serial loops; at least the storage's innermost axis in vectors where that is legal.
void schedule_plain_reduction(ScheduleDraft& draft, const std::string& name) {
  const StageState& s = draft.stage(name);
  std::vector<std::string> loops;
  double points = 1;
  for (int axis : draft.storage_order(s)) {
    loops.push_back(s.loops[s.axis_loops[axis]].name);
    points *= static_cast<double>(ScheduleDraft::size_of(s.stage->axes[axis].extent));
  }
  for (const Axis& axis : s.stage->reduce_axes) points *= static_cast<double>(ScheduleDraft::size_of(axis.extent));
  draft.explain(name, "serial reduction");
  if (loops.empty()) return;
  draft.schedule.reorder(name, loops);
  draft.parallelize(name, loops, points * 2);
}

/// A reduction by itself: computed into registers and copied out.
void schedule_reduction(ScheduleDraft& draft, const std::string& name) {
  Schedule& schedule = draft.schedule;
  if (draft.stage(name).stage->outputs.size() > 1) return schedule_plain_reduction(draft, name);
  const Schedule saved = schedule;
  const std::string inner = draft.fresh(name + "_acc");
  schedule.cache_write(name, inner);
  if (schedule_tile(draft, name, inner)) return;
  if (schedule_rows(draft, name, {inner})) return;
  schedule = saved;
  schedule_plain_reduction(draft, name);
}

}  // namespace

Schedule plain_schedule(const Workload& workload, const ScheduleRequest& request) {
  ScheduleDraft draft(workload, request);
  return std::move(draft.schedule);
}

Schedule default_schedule(const Workload& workload, const ScheduleRequest& request, std::string* explanation) {
  ScheduleDraft draft(workload, request);
  inline_cheap_stages(draft);

  // Roots: outputs, and whatever does not fit into the loops of one of its readers.
  std::vector<std::string> roots;
  for (const Tensor& output : workload.outputs) {
    const int index = draft.schedule.state().producer_of(output.buffer().get());
    const std::string& name = draft.schedule.state().stages[index].name;
    if (std::find(roots.begin(), roots.end(), name) == roots.end()) roots.push_back(name);
  }
  std::vector<std::string> open = roots;
  while (!open.empty()) {
    const std::string root = open.back();
    open.pop_back();
    const StageState& s = draft.stage(root);
    const auto make_root = [&](const std::string& name) {
      roots.push_back(name);
      open.push_back(name);
    };
    const std::vector<std::string> cone = cone_of(draft, root, roots);
    std::vector<std::string> reductions;
    bool multi_output = false;
    for (const std::string& name : cone)
      if (draft.stage(name).stage->reducer) {
        reductions.push_back(name);
        multi_output |= draft.stage(name).stage->outputs.size() > 1;
      }
    if (s.stage->stage_kind == StageKind::kCompute && !s.stage->reducer && !reductions.empty()) {
      // Register tile with the rest as its epilogue.
      if (reductions.size() == 1 && cone.size() == 1 && varies_along_vector(draft, root, reductions[0]) &&
          schedule_tile(draft, root, reductions[0]))
        continue;
      if (reductions.size() == 1 && schedule_tile_chain(draft, root, cone, reductions[0])) continue;
      // Row by row.
      bool row_like = true;
      for (const std::string& name : reductions) row_like = row_like && !varies_along_vector(draft, root, name);
      if (row_like && !multi_output && schedule_rows(draft, root, cone)) continue;
    }
    // Every stage of the cone on its own.
    for (const std::string& name : cone) make_root(name);
    if (s.stage->stage_kind != StageKind::kCompute) continue;
    if (s.stage->reducer) schedule_reduction(draft, root);
    else schedule_elementwise(draft, root);
  }
  // Stages that only imperative stages or several roots read.
  for (size_t k = draft.schedule.state().stages.size(); k-- > 0;) {
    const StageState s = draft.schedule.state().stages[k];
    if (s.stage->stage_kind != StageKind::kCompute || s.attach != AttachKind::kRoot) continue;
    const bool known = std::find(roots.begin(), roots.end(), s.name) != roots.end();
    if (known || !s.relations.empty() || draft.schedule.state().consumers_of(static_cast<int>(k)).empty()) continue;
    if (s.stage->reducer) schedule_reduction(draft, s.name);
    else schedule_elementwise(draft, s.name);
  }
  if (explanation) *explanation = draft.explanation;
  return std::move(draft.schedule);
}

}  // namespace tensmith
