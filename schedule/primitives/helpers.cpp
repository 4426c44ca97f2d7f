#include "schedule/primitives/helpers.h"

#include <algorithm>

#include "schedule/prefetches.h"
#include "tensor/equal_hash.h"
#include "tensor/walk.h"

namespace tensmith {

Result<void> check_has_loops(const StageState& stage) {
  if (stage.stage->stage_kind == StageKind::kPlaceholder)
    return Failure{"no-loops", "stage " + stage.name +
                                   " is an input and has no loops; use cache_read to get a stage that copies it"};
  if (stage.stage->stage_kind == StageKind::kImperative)
    return Failure{"no-loops", "stage " + stage.name + " is written out as statements and has no loops to schedule"};
  if (stage.attach == AttachKind::kInlined)
    return Failure{"no-loops", "stage " + stage.name + " is inlined; use compute_root first"};
  return {};
}

void add_prefetch(LoopVar& loop, const Prefetch& prefetch) {
  std::erase_if(loop.prefetches, [&](const Prefetch& p) { return prefetch_key(p) == prefetch_key(prefetch); });
  loop.prefetches.push_back(prefetch);
}

void move_prefetches(StageState& stage, int whole, int inner) {
  stage.loops[inner].prefetches = std::move(stage.loops[whole].prefetches);
  stage.loops[whole].prefetches.clear();
}

Result<void> check_new_loop(const StageState& stage, const std::string& name) {
  for (const LoopVar& loop : stage.loops)
    if (loop.name == name)
      return Failure{"duplicate-loop",
                     "stage " + stage.name + " already has a loop '" + name + "'; choose another name"};
  return {};
}

Result<void> check_not_attach_point(const ScheduleState& state, const StageState& stage, const std::string& loop) {
  for (const StageState& other : state.stages)
    if (other.attach == AttachKind::kAt && other.attach_stage == stage.name && other.attach_loop == loop)
      return Failure{"attach-point", "stage " + other.name + " is computed at " + stage.name + "." + loop +
                                         "; schedule this loop before that step"};
  if (stage.cache_loop >= 0 && stage.loops[stage.cache_loop].name == loop && stage.find_loop(loop) == stage.cache_loop)
    return Failure{"attach-point", "results of " + stage.name + " are cached at loop " + loop +
                                       " (cache_inplace); schedule this loop before that step"};
  return {};
}

bool is_repeatable(const StageState& stage) {
  if (!stage.stage->reducer) return true;
  const Reducer& reducer = *stage.stage->reducer;
  // What only replaces (decompose_padding) stores the same again.
  return reducer.name == "max" || reducer.name == "min" ||
         (reducer.combined.size() == 1 && reducer.rhs[0].same_as(reducer.combined[0]));
}

Result<void> check_separators(const StageState& stage, const std::vector<int64_t>& separators) {
  for (size_t o = 0; o < stage.stage->outputs.size(); ++o) {
    const auto rank = static_cast<int64_t>(stage.layout_of(static_cast<int>(o)).dims().size());
    if (!separators.empty() && separators.back() >= rank)
      return Failure{"bad-separators", "separators of " + stage.name + ": its layout has " + std::to_string(rank) +
                                           " dimensions; expected 1 to " + std::to_string(rank - 1) + ", got " +
                                           std::to_string(separators.back())};
  }
  return {};
}

Result<void> check_shift_order(const StageState& stage, const std::vector<int>& order, int init_loop, int shifted) {
  if (is_repeatable(stage)) return {};
  bool inside = false;
  for (int loop : order) {
    inside = inside || loop == init_loop || stage.loops[loop].is_reduce;
    if (!inside) continue;
    bool overlaps = loop == shifted;
    for (const LoopRelation& r : stage.relations)
      overlaps |= r.kind == LoopRelation::Kind::kSplit && r.tail == Tail::kShiftInwards &&
                  !stage.loops[r.whole].is_reduce && stage.comes_from(loop, r.outer);
    if (overlaps)
      return Failure{"shift-inside-reduction", "loop " + stage.loops[loop].name + " of " + stage.name +
                                                   " is shifted (tail=shift) inside the reduction, which would add "
                                                   "elements twice; use tail=guard or tail=peel"};
  }
  return {};
}

Result<void> check_no_overlap(const StageState& stage, int loop) {
  for (const LoopRelation& r : stage.relations)
    if (r.kind == LoopRelation::Kind::kSplit && r.tail == Tail::kShiftInwards && stage.comes_from(loop, r.outer))
      return Failure{"shift-overlap",
                     "loop " + stage.loops[loop].name +
                         " is shifted (tail=shift): two of its iterations write the same elements; use tail=peel"};
  return {};
}

Result<void> check_no_attached(const ScheduleState& state, const StageState& stage) {
  for (const StageState& other : state.stages)
    if (other.attach == AttachKind::kAt && other.attach_stage == stage.name)
      return Failure{"attach-point", "stage " + other.name + " is computed inside " + stage.name +
                                         "; move it with compute_root before this step"};
  if (stage.cache_loop >= 0)
    return Failure{"attach-point", "results of " + stage.name + " are cached at its loop " +
                                       stage.loops[stage.cache_loop].name +
                                       " (cache_inplace); use this step before that one"};
  return {};
}

Result<void> check_unscheduled(const StageState& stage) {
  bool fresh = stage.relations.empty();
  for (size_t k = 0; k < stage.order.size(); ++k) {
    const LoopVar& loop = stage.loops[stage.order[k]];
    fresh &= stage.order[k] == static_cast<int>(k) && loop.kind == ForKind::kSerial && loop.attrs.empty() &&
             loop.cuts.empty() && loop.prefetches.empty();
  }
  if (fresh && stage.init_loop < 0 && stage.cache_loop < 0) return {};
  return Failure{"already-scheduled", "loops of stage " + stage.name +
                                          " are already split, fused, reordered or marked; use this step first"};
}

Result<void> check_window(const ScheduleState& state, const StageState& stage) {
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const auto refuse = [&](const char* why) { return Failure{"window-illegal", "stage " + stage.name + " " + why}; };
  if (stage.attach != AttachKind::kAt) return refuse("is computed at root; compute it at a serial loop first");
  if (state.is_output(static_cast<int>(&stage - state.stages.data())))
    return refuse("is an output of the workload, whose memory belongs to the caller; use cache_write");
  if (stage.window != Window::kNone) return refuse("has a window already");
  return {};
}

Result<std::vector<int>> matching_axes(const ScheduleState& state, const StageState& stage, int producer) {
  const StageState& from = state.stages[producer];
  const auto refuse = [&](const std::string& why) {
    return Failure{"not-elementwise", "stage " + stage.name + " " + why + "; expected each element of " + from.name +
                                          " to be read at the axes of " + stage.name + " alone"};
  };
  std::vector<int> axes;
  std::string wrong;
  const auto look = [&](const Expr& body) {
    if (body.get() == nullptr) return;
    visit(body, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (!read || state.producer_of(read->buffer.get()) != producer) return true;
      std::vector<int> found;
      for (size_t d = 0; d < read->indices.size(); ++d) {
        const auto& own = stage.stage->axes;
        const auto axis =
            std::find_if(own.begin(), own.end(), [&](const Axis& a) { return a.var.same_as(read->indices[d]); });
        const int a = axis == own.end() ? -1 : static_cast<int>(axis - own.begin());
        if (a < 0 || std::count(found.begin(), found.end(), a)) wrong = "reads it at other places";
        else if (!equal(axis->extent, from.stage->axes[d].extent)) wrong = "has an axis of another extent";
        found.push_back(a);
      }
      if (axes.empty()) axes = found;
      else if (axes != found) wrong = "reads several of its elements";
      return true;
    });
  };
  for (const Expr& body : stage.stage->bodies) look(body);
  for (const Expr& initial : stage.stage->initial) look(initial);
  look(stage.stage->where);
  if (!wrong.empty()) return refuse(wrong);
  if (axes.empty()) return refuse("does not read it");
  return axes;
}

void rename_places(ScheduleState& state, const std::string& from, const std::string& to) {
  for (StageState& other : state.stages) {
    if (other.attach == AttachKind::kAt && other.attach_stage == from) other.attach_stage = to;
    for (LoopVar& loop : other.loops)
      for (Prefetch& prefetch : loop.prefetches)
        if (prefetch.spread_stage == from) prefetch.spread_stage = to;
  }
}

void redirect_reads(ScheduleState& state, const BufferNode* from, const Buffer& to, const std::string& except) {
  const BufferMap map{{from, to}};
  for (StageState& s : state.stages) {
    if (s.name == except) continue;
    const std::vector<Buffer> reads = read_buffers(*s.stage);
    if (std::none_of(reads.begin(), reads.end(), [&](const Buffer& b) { return b.get() == from; })) continue;
    s.stage = rebuild_stage(s.stage, [&](StageNode& node) {
      for (Expr& body : node.bodies) body = substitute_buffers(body, map);
      for (Expr& initial : node.initial) initial = substitute_buffers(initial, map);
      node.where = substitute_buffers(node.where, map);
      node.imperative = substitute_buffers(node.imperative, map);
      for (Buffer& buffer : node.reads)
        if (buffer.get() == from) buffer = to;
    });
  }
}

}  // namespace tensmith
