#include "schedule/lower/inline_stages.h"

#include "tensor/walk.h"

namespace tensmith {

namespace {

/// Replaces reads of a stage's outputs by its expressions.
class Inliner : public Mutator {
 public:
  explicit Inliner(const StageNode& stage) : stage_(stage) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    Expr rebuilt = mutate_children(e);
    const auto* read = rebuilt.as<Load>();
    if (!read) return rebuilt;
    for (size_t o = 0; o < stage_.outputs.size(); ++o) {
      if (!stage_.outputs[o].same_as(read->buffer)) continue;
      VarMap map;
      for (size_t d = 0; d < stage_.axes.size(); ++d) map[stage_.axes[d].var.get()] = read->indices[d];
      return substitute(stage_.bodies[o], map);
    }
    return rebuilt;
  }

 private:
  const StageNode& stage_;
};

}  // namespace

ScheduleState with_inlined_stages(ScheduleState state) {
  for (size_t k = 0; k < state.stages.size(); ++k) {
    if (state.stages[k].attach != AttachKind::kInlined) continue;
    const Stage inlined = state.stages[k].stage;
    Inliner inliner(*inlined);
    for (int user : state.consumers_of(static_cast<int>(k)))
      state.stages[user].stage = rebuild_stage(state.stages[user].stage, [&](StageNode& node) {
        for (Expr& body : node.bodies) body = inliner.mutate(body);
        for (Expr& initial : node.initial) initial = inliner.mutate(initial);
        if (node.where.get()) node.where = inliner.mutate(node.where);
      });
  }
  return state;
}

}  // namespace tensmith
