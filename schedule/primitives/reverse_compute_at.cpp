#include <algorithm>
#include <functional>
#include <set>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

using Kind = LoopRelation::Kind;

/// The relations of the producer that the loops down to `position` come from, oldest first.
std::vector<const LoopRelation*> needed_relations(const StageState& producer, int position) {
  std::set<int> needed(producer.order.begin(), producer.order.begin() + position + 1);
  std::vector<const LoopRelation*> used;
  for (auto r = producer.relations.rbegin(); r != producer.relations.rend(); ++r) {
    const bool wanted =
        r->kind == Kind::kSplit ? needed.count(r->outer) || needed.count(r->inner) : needed.count(r->whole) != 0;
    if (!wanted) continue;
    used.push_back(&*r);
    if (r->kind == Kind::kSplit) needed.insert(r->whole);
    else needed.insert({r->outer, r->inner});
  }
  std::reverse(used.begin(), used.end());
  return used;
}

std::string free_name(const StageState& stage, const std::string& base) {
  for (int k = 0;; ++k) {
    const std::string name = k == 0 ? base : base + "_" + std::to_string(k);
    if (check_new_loop(stage, name)) return name;
  }
}

/// The reader with the producer's loops down to `position` outermost; `*place` is the loop that corresponds to that
/// one.
StageState with_loops_of(const StageState& reader, const StageState& producer, int position,
                         const std::vector<int>& axes, std::string* place) {
  StageState s = reader;
  std::vector<int> image(producer.loops.size(), -1);
  for (size_t d = 0; d < axes.size(); ++d) image[producer.axis_loops[d]] = s.axis_loops[axes[d]];
  const auto add_loop = [&](int loop) {
    image[loop] = static_cast<int>(s.loops.size());
    s.loops.push_back({free_name(s, producer.loops[loop].name)});
  };
  // Loops that come from no axis are unit loops, whose like the reader gets when one is met.
  const auto image_of = [&](int loop) {
    if (image[loop] < 0) {
      add_loop(loop);
      s.loops.back().is_unit = true;
    }
    return image[loop];
  };
  for (const LoopRelation* r : needed_relations(producer, position)) {
    if (r->kind == Kind::kSplit) {
      image_of(r->whole);
      add_loop(r->outer);
      add_loop(r->inner);
    } else {
      image_of(r->outer);
      image_of(r->inner);
      add_loop(r->whole);
    }
    s.relations.push_back({r->kind, image[r->whole], image[r->outer], image[r->inner], r->factor, r->tail});
  }
  std::vector<int> order;
  for (int k = 0; k <= position; ++k) {
    const int loop = image_of(producer.order[k]);
    s.loops[loop].kind = producer.loops[producer.order[k]].kind;
    s.loops[loop].attrs = producer.loops[producer.order[k]].attrs;
    order.push_back(loop);
  }
  *place = s.loops[order.back()].name;
  // The rest of the reader's loops in their order, in place of those that were split or fused what they became.
  const std::function<void(int)> add_rest = [&](int loop) {
    const LoopRelation* used = s.consumer_of(loop);
    if (used && used->kind == Kind::kSplit) {
      add_rest(used->outer);
      add_rest(used->inner);
    } else if (used) {
      add_rest(used->whole);
    } else if (std::find(order.begin(), order.end(), loop) == order.end()) {
      order.push_back(loop);
    }
  };
  for (int loop : reader.order) add_rest(loop);
  s.order = order;
  return s;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const StageState& producer = *state.find(step.text("producer"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (Result<void> ok = check_has_loops(producer); !ok) return ok;
  if (Result<void> ok = check_unscheduled(stage); !ok) return ok;
  if (Result<void> ok = check_no_attached(state, stage); !ok) return ok;
  const int at = producer.find_loop(step.text("at"));
  if (at < 0) return Failure{"unknown-loop", "stage " + producer.name + " has no loop '" + step.text("at") + "'"};
  if (stage.attach != producer.attach || stage.attach_stage != producer.attach_stage ||
      stage.attach_loop != producer.attach_loop)
    return Failure{"attach-illegal", "stages " + stage.name + " and " + producer.name +
                                         " are computed at different places; expected the same"};
  const int index = static_cast<int>(&producer - state.stages.data());
  const Result<std::vector<int>> axes = matching_axes(state, stage, index);
  if (!axes) return axes.failure();
  const int position = producer.order_position(at);
  for (int k = 0; k <= position; ++k) {
    const LoopVar& loop = producer.loops[producer.order[k]];
    if (loop.is_reduce)
      return Failure{"attach-illegal", "loop " + loop.name + " of " + producer.name +
                                           " is a reduction: its results are not there before its end"};
    if (loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled || !loop.cuts.empty())
      return Failure{"attach-illegal", "loop " + loop.name + " of " + producer.name +
                                           " is vectorized, unrolled or cut; choose a loop outside it"};
  }
  for (const LoopRelation* r : needed_relations(producer, position))
    if (r->kind == Kind::kSplit && r->tail == Tail::kPad)
      return Failure{"pad-of-output", "loop " + producer.loops[r->whole].name + " of " + producer.name +
                                          " is padded, for which the storage of " + stage.name +
                                          " need not have room; use tail=guard or tail=peel"};
  std::string place;
  const StageState moved = with_loops_of(stage, producer, position, *axes, &place);
  return check_shift_order(moved, moved.order, moved.init_loop);
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  StageState& producer = *state.find(step.text("producer"));
  const int index = static_cast<int>(&producer - state.stages.data());
  const std::vector<int> axes = matching_axes(state, stage, index).value();
  const int position = producer.order_position(producer.find_loop(step.text("at")));
  std::string place;
  stage = with_loops_of(stage, producer, position, axes, &place);
  for (int k = 0; k <= position; ++k) {
    producer.loops[producer.order[k]].kind = ForKind::kSerial;
    producer.loops[producer.order[k]].attrs.clear();
  }
  producer.attach = AttachKind::kAt;
  producer.attach_stage = stage.name;
  producer.attach_loop = place;
}

}  // namespace

const PrimitiveDef& reverse_compute_at_primitive() {
  static const PrimitiveDef def{
      .name = "reverse_compute_at",
      .doc =
          "Computes a stage inside a loop of the stage that it reads element by element, as soon as what it reads\n"
          "is there. The reader takes over the producer's loops down to that one (with their tails and kinds), and\n"
          "the producer is computed at it.\n"
          "Rewrite: for io: for ii: P(io, ii); for i: C(i) reads P(i)  --at io-->  for io: { for ii: P; for ii: C }",
      .halide = "compute_with",
      .tvm = "reverse_compute_at",
      .args = {{"stage", ArgKind::kStage, "the reader, not scheduled yet"},
               {"producer", ArgKind::kStage, "the stage that it reads"},
               {"at", ArgKind::kNewName, "a loop of the producer"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense",
                   {"split stage=C loop=i0 factor=3 outer=io inner=ii", "parallel stage=C loop=io",
                    "reverse_compute_at stage=R producer=C at=io"}},
                  {"dense",
                   {"split stage=C loop=i1 factor=8 outer=jo inner=ji tail=guard", "fuse stage=C loops=i0,jo fused=f",
                    "reverse_compute_at stage=R producer=C at=f"}}}};
  return def;
}

}  // namespace tensmith
