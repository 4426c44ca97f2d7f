#include <algorithm>
#include <numeric>

#include "autotune/schedule_rules.h"

namespace tensmith {

namespace {

/// An operand that is contiguous along an outer axis, not along the stored one: a transposition.
struct Crosswise {
  int axis = -1;       ///< -1: there is none
  int64_t stride = 0;  ///< Units: bytes from one element to the next along the stored axis; 0: not known
  int64_t apart = 1;   ///< elements that are written between two neighbours along that axis
};

Crosswise crosswise_axis(const ScheduleDraft& draft, const std::string& name, const std::vector<int>& order) {
  const ScheduleState& state = draft.schedule.state();
  const Stage body = draft.effective(name);
  for (const TensorAccess& access : accesses_of(state, *body))
    for (size_t k = 0; k + 1 < order.size(); ++k) {
      const Axis& axis = body->axes[order[k]];
      if (ScheduleDraft::size_of(axis.extent) <= 1 ||
          stride_of(state, access, *body, axis.var) != std::optional<int64_t>(1))
        continue;
      const int64_t elements = stride_of(state, access, *body, body->axes[order.back()].var).value_or(0);
      const int64_t bytes = state.stages[access.producer].stage->outputs[0]->dtype.bytes();
      int64_t apart = 1;
      for (size_t inner = k + 1; inner < order.size(); ++inner)
        apart *= ScheduleDraft::size_of(body->axes[order[inner]].extent);
      return {order[k], std::abs(elements) * bytes, apart};
    }
  return {};
}

/// Whether lines that are touched once for each of `count` steps of `stride` bytes are gone from L1 when the walk comes
/// by them again: too many, or, at strides near multiples of a page, too many for the few sets they fall into.
bool loses_lines(const Target& target, int64_t count, int64_t stride) {
  constexpr int64_t kWayBytes = 4096;  // a page, of nearly all first caches
  constexpr double kFull = 0.7;        // other data needs room too
  if (stride < target.line_bytes) return false;
  const int64_t ways = std::max<int64_t>(1, target.l1_bytes / kWayBytes);
  const int64_t sets = kWayBytes / std::max<int64_t>(target.line_bytes, std::gcd(stride, kWayBytes));
  return static_cast<double>(count) > kFull * static_cast<double>(sets * ways);
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
  const auto [crosswise, stride, apart] = crosswise_axis(draft, name, order);
  if (crosswise >= 0) {
    Question question(name, "block");
    question.offer(int64_t{0});
    for (int64_t size : {4, 8, 16, 32})
      if (size < ScheduleDraft::size_of(s.stage->axes[crosswise].extent)) question.offer(size, 1.1);
    // As many rows as a line holds elements of the result's size: then each line of the operand is used up at once.
    const int64_t line = draft.target().line_bytes / std::max<int64_t>(1, s.stage->outputs[0]->dtype.bytes());
    const bool is_worth =
        loses_lines(draft.target(), apart, stride) && line < ScheduleDraft::size_of(s.stage->axes[crosswise].extent);
    block = draft.decide_number(std::move(question.prefer(is_worth ? line : int64_t{0})));
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
