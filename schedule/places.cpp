#include "schedule/places.h"

#include <algorithm>

#include "tensor/equal_hash.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

class PlaceChecker {
 public:
  explicit PlaceChecker(const ScheduleState& state) : state_(state), readers_(state.stages.size()) {
    for (size_t k = 0; k < state.stages.size(); ++k)
      for (const Buffer& read : read_buffers(*state.stages[k].stage))
        if (const int from = state.producer_of(read.get()); from >= 0 && from != static_cast<int>(k))
          readers_[from].push_back(static_cast<int>(k));
  }

  Result<void> check() const {
    for (size_t k = 0; k < state_.stages.size(); ++k) {
      if (state_.stages[k].attach != AttachKind::kAt) continue;
      if (Result<void> ok = check_stage(static_cast<int>(k)); !ok) return ok;
    }
    return {};
  }

 private:
  static std::string place(const StageState& s) { return s.attach_stage + "." + s.attach_loop; }

  Result<void> check_stage(int index) const {
    const StageState& s = state_.stages[index];
    size_t steps = 0;
    for (const StageState* at = &s; at->attach == AttachKind::kAt; at = state_.find(at->attach_stage)) {
      const StageState* owner = state_.find(at->attach_stage);
      if (!owner || owner->attach == AttachKind::kInlined || owner->find_loop(at->attach_loop) < 0)
        return Failure{"attach-illegal", "stage " + at->name + " is computed at " + place(*at) +
                                             ", which is not there any more; move " + at->name + " first"};
      if (++steps > state_.stages.size())
        return Failure{"attach-cycle", "stage " + s.name + " would be computed inside itself"};
    }
    const StageState& owner = *state_.find(s.attach_stage);
    const int position = owner.order_position(owner.find_loop(s.attach_loop));
    std::vector<int> readers;
    collect_readers(index, &readers);
    for (int reader : readers)
      if (!inside(reader, owner, position))
        return Failure{"attach-illegal", "stage " + s.name + " is computed at " + place(s) + ", but stage " +
                                             state_.stages[reader].name +
                                             " outside of it also reads it; choose a loop that surrounds both"};
    if (position >= owner.init_position() && starts_from(owner, index))
      return Failure{"attach-illegal", "stage " + s.name + " is computed at " + place(s) + ", but start values of " +
                                           owner.name +
                                           ", which are stored before that loop, also read it; choose a loop outside "
                                           "the reduction"};
    if (owner.intrinsic_loop >= 0 && position >= owner.order_position(owner.intrinsic_loop))
      return Failure{"attach-illegal", "stage " + s.name + " is computed at " + place(s) +
                                           ", which is a part of intrinsic " + owner.intrinsic +
                                           "; compute it at a loop outside it"};
    if (Result<void> ok = check_window(index, owner, position); !ok) return ok;
    if (state_.is_output(index) && !computes_all(index, owner, position))
      return Failure{"compute-at-output",
                     "stage " + s.name + " is an output of the workload, but at " + place(s) +
                         " not all of it would be computed; leave it at root, or use cache_write and move the cache"};
    return {};
  }

  Result<void> check_window(int index, const StageState& owner, int position) const {
    const StageState& s = state_.stages[index];
    if (s.window == Window::kNone) return {};
    const auto refuse = [&](const std::string& why) {
      return Failure{"window-illegal", "stage " + s.name + " keeps its storage from one iteration of " + place(s) +
                                           " to the next, but " + why};
    };
    const int loop = owner.order[position];
    if (owner.loops[loop].kind != ForKind::kSerial)
      return refuse("its iterations do not run one after the other; choose a serial loop");
    if (const LoopRelation* made = owner.maker_of(loop); made && made->kind == LoopRelation::Kind::kFuse)
      return refuse("that loop is fused, so what is needed jumps; compute it at a loop that is not");
    if (owner.stage->where.get() != nullptr && position >= owner.init_position())
      return refuse("the condition of " + owner.name + " leaves iterations out; compute it outside the reduction");
    if (s.scope == Scope::kRegister) return refuse("it lives in registers; use set_scope");
    for (const LoopRelation& r : s.relations)
      if (r.kind == LoopRelation::Kind::kSplit && r.tail == Tail::kPad && !s.loops[r.whole].is_reduce)
        return refuse("a padded tail would overwrite what is needed; use tail=guard or tail=peel");
    if (s.window != Window::kPipelined) return {};
    for (size_t k = 0; k < state_.stages.size(); ++k) {
      const StageState& other = state_.stages[k];
      if (other.attach != AttachKind::kAt || other.attach_stage != s.attach_stage || other.attach_loop != s.attach_loop)
        continue;
      std::vector<int> readers;
      collect_readers(static_cast<int>(k), &readers);
      for (int reader : readers)
        if (reader == index || computed_in(reader, index))
          return refuse("runs ahead of stage " + other.name + ", which it reads; compute that one inside it");
    }
    return {};
  }

  /// Those that read the stage when inlined stages are put in their places.
  void collect_readers(int index, std::vector<int>* readers) const {
    for (int reader : readers_[index]) {
      if (state_.stages[reader].attach == AttachKind::kInlined) collect_readers(reader, readers);
      else readers->push_back(reader);
    }
  }

  /// Whether start values of the stage read stage `index`, perhaps through stages that are inlined.
  bool starts_from(const StageState& s, int index) const {
    return std::any_of(s.stage->initial.begin(), s.stage->initial.end(),
                       [&](const Expr& initial) { return reads(initial, index); });
  }
  bool reads(const Expr& expression, int index) const {
    bool found = false;
    visit(expression, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      const int from = read && !found ? state_.producer_of(read->buffer.get()) : -1;
      if (from == index) found = true;
      else if (from >= 0 && state_.stages[from].attach == AttachKind::kInlined)
        for (const Expr& body : state_.stages[from].stage->bodies) found = found || reads(body, index);
      return !found;
    });
    return found;
  }

  /// Whether the stage is computed at a loop of stage `owner`, or of one that is.
  bool computed_in(int index, int owner) const {
    for (const StageState* s = &state_.stages[index]; s->attach == AttachKind::kAt; s = state_.find(s->attach_stage))
      if (s->attach_stage == state_.stages[owner].name) return true;
    return false;
  }

  bool inside(int index, const StageState& owner, int position) const {
    if (state_.stages[index].name == owner.name) return true;
    for (const StageState* s = &state_.stages[index]; s->attach == AttachKind::kAt; s = state_.find(s->attach_stage))
      if (s->attach_stage == owner.name && owner.order_position(owner.find_loop(s->attach_loop)) >= position)
        return true;
    return false;
  }

  /// Whether the stage reads all of the other one, each element where it computes the same element.
  bool reads_each_element(const StageState& reader, int index) const {
    const StageNode& producer = *state_.stages[index].stage;
    if (reader.stage->axes.size() != producer.axes.size()) return false;
    bool found = false;
    const auto look = [&](const Expr& body) {
      if (body.get() == nullptr) return;
      visit(body, [&](const Expr& e) {
        const auto* read = e.as<Load>();
        if (!read || state_.producer_of(read->buffer.get()) != index) return true;
        std::vector<const ExprNode*> seen;
        bool matches = true;
        for (size_t d = 0; d < read->indices.size(); ++d) {
          const auto axis = std::find_if(reader.stage->axes.begin(), reader.stage->axes.end(),
                                         [&](const Axis& a) { return a.var.same_as(read->indices[d]); });
          matches = matches && axis != reader.stage->axes.end() && equal(axis->extent, producer.axes[d].extent) &&
                    std::find(seen.begin(), seen.end(), read->indices[d].get()) == seen.end();
          seen.push_back(read->indices[d].get());
        }
        found |= matches;
        return true;
      });
    };
    for (const Expr& body : reader.stage->bodies) look(body);
    for (const Expr& initial : reader.stage->initial) look(initial);
    return found;
  }

  bool reduces_everywhere(const StageState& s) const {
    Facts facts;
    for (const Var& dim : state_.dims) facts.assume(dim >= 1);
    return s.stage->where.get() == nullptr &&
           std::all_of(s.stage->reduce_axes.begin(), s.stage->reduce_axes.end(),
                       [&](const Axis& axis) { return can_prove(axis.extent >= 1, facts); });
  }

  /// Whether all elements of the stage are computed when it is computed at that loop of a stage that is computed whole:
  /// some reader there needs element for element, and no condition keeps the place from being reached.
  bool computes_all(int index, const StageState& owner, int position) const {
    if (owner.attach != AttachKind::kRoot) return false;
    if (position >= owner.init_position() && !reduces_everywhere(owner)) return false;
    const StageState& s = state_.stages[index];
    for (int reader : readers_[index]) {
      const StageState& r = state_.stages[reader];
      if (!reads_each_element(r, index)) continue;
      if (r.name == owner.name) return true;
      if (r.attach == AttachKind::kAt && r.attach_stage == s.attach_stage && r.attach_loop == s.attach_loop &&
          computes_all(reader, owner, position))
        return true;
    }
    return false;
  }

  const ScheduleState& state_;
  std::vector<std::vector<int>> readers_;
};

}  // namespace

Result<void> check_places(const ScheduleState& state) {
  const bool any = std::any_of(state.stages.begin(), state.stages.end(),
                               [](const StageState& s) { return s.attach == AttachKind::kAt; });
  return any ? PlaceChecker(state).check() : Result<void>();
}

}  // namespace tensmith
