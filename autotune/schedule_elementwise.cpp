#include <algorithm>

#include "autotune/schedule_rules.h"

namespace tensmith {

void schedule_elementwise(ScheduleDraft& draft, const std::string& name) {
  const StageState& s = draft.stage(name);
  const std::vector<int> order = draft.storage_order(s);
  if (order.empty()) return;
  std::vector<std::string> loops;
  double points = 1;
  for (int axis : order) {
    loops.push_back(s.loops[s.axis_loops[axis]].name);
    points *= static_cast<double>(ScheduleDraft::size_of(s.stage->axes[axis].extent));
  }
  const int64_t inner_extent = ScheduleDraft::size_of(s.stage->axes[order.back()].extent);
  const int lanes = draft.lanes_for(s.stage->outputs[0]->dtype);
  Schedule& schedule = draft.schedule;
  schedule.reorder(name, loops);
  std::string inner = loops.back();
  loops.pop_back();
  // A long vector alone: pieces for the threads.
  constexpr int64_t kPiece = 4096;
  if (loops.empty() && inner_extent >= 4 * kPiece) {
    schedule.split(name, inner, kPiece, "piece", "in_piece");
    loops.push_back("piece");
    inner = "in_piece";
  }
  const Expr extent = inner == "in_piece" ? Expr(kPiece) : draft.stage(name).stage->axes[order.back()].extent;
  draft.vectorize_loop(name, inner, extent, lanes);
  // Elementwise work is bound by memory: some cycles per vector.
  draft.parallelize(name, loops, points / lanes * 4);
  draft.explain(name, "elementwise, vectors of " + std::to_string(lanes) + " along " + inner);
}

}  // namespace tensmith
