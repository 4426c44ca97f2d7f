#include "schedule/prefetches.h"

#include <algorithm>

#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

using Kind = LoopRelation::Kind;

/// The first read of the producer in what the loops of the stage compute (not in start values), perhaps through stages
/// that are inlined; null when there is none.
Expr first_read(const ScheduleState& state, const StageState& stage, int producer, bool* through_inlined) {
  Expr found;
  const auto look = [&](const Expr& body) {
    if (body.get() == nullptr) return;
    visit(body, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (!read || found.get() != nullptr) return found.get() == nullptr;
      const int from = state.producer_of(read->buffer.get());
      if (from == producer) {
        found = e;
      } else if (from >= 0 && state.stages[from].attach == AttachKind::kInlined) {
        found = first_read(state, state.stages[from], producer, through_inlined);
        *through_inlined = *through_inlined || found.get() != nullptr;
      }
      return true;
    });
  };
  for (const Expr& body : stage.stage->bodies) look(body);
  look(stage.stage->where);
  return found;
}

/// The axis that a step of the loop moves and by how much; null when it comes to lie in another one.
const Axis* axis_of_step(const StageState& stage, int loop, int64_t* step) {
  *step = 1;
  for (const LoopRelation* made = stage.maker_of(loop); made; made = stage.maker_of(loop)) {
    if (made->kind == Kind::kSplit) {
      if (loop == made->outer) *step *= made->factor;
      loop = made->whole;
    } else {
      loop = made->inner;
    }
  }
  for (size_t a = 0; a < stage.axis_loops.size(); ++a)
    if (stage.axis_loops[a] == loop) return &stage.stage->axes[a];
  for (size_t a = 0; a < stage.reduce_loops.size(); ++a)
    if (stage.reduce_loops[a] == loop) return &stage.stage->reduce_axes[a];
  return nullptr;
}

/// The distance in memory between two steps of the loop from the first place on, in elements.
Expr sweep_stride(const ScheduleState& state, const StageState& stage, int loop, int producer, const Load& read) {
  int64_t step = 1;
  const Axis* axis = axis_of_step(stage, loop, &step);
  if (!axis) return {};
  const StageState& from = state.stages[producer];
  int output = 0;
  while (from.stage->outputs[output].get() != read.buffer.get()) ++output;
  const Layout layout = from.layout_of(output);
  const std::vector<Expr> shape = layout.physical_shape(read.buffer->shape);
  const auto place = [&](int64_t value) {
    VarMap at;
    for (const std::vector<Axis>* axes : {&stage.stage->axes, &stage.stage->reduce_axes})
      for (const Axis& a : *axes) at[a.var.get()] = Expr(&a == axis ? value : 0);
    std::vector<Expr> index;
    for (const Expr& i : read.indices) index.push_back(substitute(i, at));
    index = layout.physical_index(index);
    Expr linear(0);
    for (size_t d = 0; d < index.size(); ++d) linear = linear * shape[d] + index[d];
    return linear;
  };
  return simplify(place(step) - place(0));
}

/// Whether all loops that `loop` was split or fused into stand at `position` or outside of it.
bool stands_outside(const StageState& stage, int loop, int position) {
  const LoopRelation* used = stage.consumer_of(loop);
  if (!used) return stage.order_position(loop) >= 0 && stage.order_position(loop) <= position;
  if (used->kind == Kind::kFuse) return stands_outside(stage, used->whole, position);
  return stands_outside(stage, used->outer, position) && stands_outside(stage, used->inner, position);
}

/// Whether the storage of the producer is there at the start of an iteration of the loop.
Result<void> check_memory(const StageState& stage, int loop, const StageState& producer) {
  const auto refuse = [&](const std::string& why) {
    return Failure{"prefetch-no-memory", "stage " + producer.name + " " + why + ", so that loop " +
                                             stage.loops[loop].name + " of " + stage.name +
                                             " has nothing to ask for; prefetch what that stage reads"};
  };
  if (producer.attach == AttachKind::kInlined) return refuse("is inlined");
  if (producer.scope == Scope::kRegister) return refuse("lives in registers");
  if (producer.attach == AttachKind::kAt && producer.attach_stage == stage.name &&
      stage.order_position(stage.find_loop(producer.attach_loop)) >= stage.order_position(loop))
    return refuse("is computed inside that loop");
  return {};
}

Result<void> check_spread(const ScheduleState& state, const StageState& stage, const Prefetch& prefetch) {
  const std::string back =
      "; compute the stage inside that loop, or take the prefetch back with unannotate key=" + prefetch_key(prefetch) +
      " first";
  const StageState* around = state.find(prefetch.spread_stage);
  if (stage.attach != AttachKind::kAt || stage.attach_stage != prefetch.spread_stage || !around)
    return Failure{"spread-loop", "stage " + stage.name + " asks ahead in shares spread over a loop of " +
                                      prefetch.spread_stage + ", at which it is not computed" + back};
  if (!stands_outside(*around, prefetch.spread, around->order_position(around->find_loop(stage.attach_loop))))
    return Failure{"spread-loop", "loop " + around->loops[prefetch.spread].name + " of " + around->name +
                                      " does not surround " + stage.attach_loop + ", where " + stage.name +
                                      " is computed" + back};
  return {};
}

}  // namespace

std::string prefetch_key(const Prefetch& prefetch) {
  return (prefetch.distance > 0 ? "prefetch:" : "prefetch_next:") + prefetch.producer;
}

Result<void> check_prefetch(const ScheduleState& state, const StageState& stage, int loop, const Prefetch& prefetch) {
  const StageState* producer = state.find(prefetch.producer);
  const int index = producer ? static_cast<int>(producer - state.stages.data()) : -1;
  bool through_inlined = false;
  const Expr read = producer ? first_read(state, stage, index, &through_inlined) : Expr();
  if (read.get() == nullptr)
    return Failure{"prefetch-not-read", "loops of stage " + stage.name + " do not read " + prefetch.producer +
                                            "; name a stage or input that they read"};
  if (Result<void> ok = check_memory(stage, loop, *producer); !ok) return ok;
  // The place may itself be read from memory.
  Result<void> indices;
  for (const Expr& i : read.as<Load>()->indices)
    visit(i, [&](const Expr& e) {
      const auto* inner = e.as<Load>();
      const int from = inner && indices ? state.producer_of(inner->buffer.get()) : -1;
      if (from >= 0) indices = check_memory(stage, loop, state.stages[from]);
      return true;
    });
  if (!indices) return indices;
  if (prefetch.distance > 0) return {};
  if (Result<void> ok = check_spread(state, stage, prefetch); !ok) return ok;
  const std::string where = "loop " + stage.loops[loop].name + " of " + stage.name;
  if (stage.stage->reducer && !stage.loops[loop].is_reduce)
    return Failure{"prefetch-no-sweep",
                   where + " is not a reduction loop, which sweep over blocks here; choose one, or use prefetch"};
  if (through_inlined) return {};
  int64_t stride = 0;
  const Expr distance = sweep_stride(state, stage, loop, index, *read.as<Load>());
  if (distance.get() == nullptr || !as_const_int(distance, &stride))
    return Failure{"prefetch-no-sweep", where + " moves in " + producer->name +
                                            " by steps of no constant size, so that no block lies behind; use "
                                            "prefetch, or a layout in which they are constant"};
  if (stride == 0)
    return Failure{"prefetch-no-sweep", where + " reads the same place of " + producer->name +
                                            " again and again; choose a loop that moves in it"};
  return {};
}

Result<void> check_prefetches(const ScheduleState& state) {
  for (const StageState& stage : state.stages) {
    if (stage.attach == AttachKind::kInlined) continue;
    for (int loop : stage.order)
      for (const Prefetch& prefetch : stage.loops[loop].prefetches)
        if (Result<void> ok = check_prefetch(state, stage, loop, prefetch); !ok) return ok;
  }
  return {};
}

bool has_prefetches(const ScheduleState& state) {
  return std::any_of(state.stages.begin(), state.stages.end(), [](const StageState& s) {
    return std::any_of(s.loops.begin(), s.loops.end(), [](const LoopVar& l) { return !l.prefetches.empty(); });
  });
}

}  // namespace tensmith
