#include <algorithm>

#include "autotune/schedule_rules.h"

namespace tensmith {

namespace {

/// An outer axis along which some operand is contiguous while the stored one is not: a transposition, or -1.
int crosswise_axis(const ScheduleDraft& draft, const std::string& name, const std::vector<int>& order) {
  const Stage body = draft.effective(name);
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body))
    for (size_t k = 0; k + 1 < order.size(); ++k) {
      const Axis& axis = body->axes[order[k]];
      if (ScheduleDraft::size_of(axis.extent) > 1 &&
          stride_of(draft.schedule.state(), access, *body, axis.var) == std::optional<int64_t>(1))
        return order[k];
    }
  return -1;
}

}  // namespace

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
  // A transposition in blocks uses each cache line of its operand while it is there.
  int64_t block = 0;
  const int crosswise = crosswise_axis(draft, name, order);
  if (crosswise >= 0) {
    Question question(name, "block");
    question.offer(int64_t{0});
    for (int64_t size : {4, 8, 16, 32})
      if (size < ScheduleDraft::size_of(s.stage->axes[crosswise].extent)) question.offer(size, 1.1);
    block = draft.decide_number(std::move(question.prefer(int64_t{0})));
  }
  const std::string crossed = crosswise >= 0 ? s.loops[s.axis_loops[crosswise]].name : std::string();
  std::string inner = loops.back();
  if (block > 0) {
    // The columns of a block go outside its rows: one vector of columns, all rows of the block.
    schedule.split(name, crossed, block, crossed + ".b", crossed + ".r");
    std::replace(loops.begin(), loops.end(), crossed, crossed + ".b");
    const int64_t width = std::max<int64_t>(lanes, block);
    if (inner_extent > width) {
      schedule.split(name, inner, width, inner + ".b", inner + ".c");
      loops.back() = inner + ".b";
      loops.push_back(crossed + ".r");
      inner += ".c";
      loops.push_back(inner);
      schedule.reorder(name, loops);
      loops.resize(loops.size() - 2);
      draft.vectorize_loop(name, inner, Expr(width), lanes);
      draft.parallelize(name, loops, points / lanes * 4);
      draft.explain(name, "elementwise in blocks of " + std::to_string(block) + " x " + std::to_string(width));
      return;
    }
    loops.insert(loops.end() - 1, crossed + ".r");
  }
  schedule.reorder(name, loops);
  loops.pop_back();
  if (block > 0) loops.pop_back();
  // A long vector alone: pieces for the threads.
  constexpr int64_t kPiece = 4096;
  int64_t piece = 0;
  if (loops.empty() && inner_extent >= 4 * kPiece) {
    Question question(name, "piece");
    for (int64_t length = kPiece / 4; length <= 16 * kPiece && 2 * length <= inner_extent; length *= 2)
      question.offer(length, 1.1);
    piece = draft.decide_number(std::move(question.prefer(kPiece)));
    schedule.split(name, inner, piece, "piece", "in_piece");
    loops.push_back("piece");
    inner = "in_piece";
  }
  const Expr extent = piece > 0 ? Expr(piece) : draft.stage(name).stage->axes[order.back()].extent;
  draft.vectorize_loop(name, inner, extent, lanes);
  // Elementwise work is bound by memory: some cycles per vector.
  draft.parallelize(name, loops, points / lanes * 4);
  draft.explain(name, "elementwise, vectors of " + std::to_string(lanes) + " along " + inner);
}

}  // namespace tensmith
