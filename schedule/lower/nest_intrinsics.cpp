// The innermost loops of a tensorized stage.
#include "schedule/intrinsics.h"
#include "schedule/lower/nest_builder.h"

namespace tensmith {

Stmt NestBuilder::emit_intrinsic(NestInstance in, size_t k) {
  const StageState& s = stage(in.stage);
  const TensorIntrinsic& intrinsic = *find_tensor_intrinsic(s.intrinsic);
  if (k + 2 != s.order.size()) return {};
  const int first = s.order[k], second = s.order[k + 1];
  if (s.loops[first].is_reduce == s.loops[second].is_reduce) return {};
  const int lanes_loop = s.loops[first].is_reduce ? second : first, reduced_loop = lanes_loop == first ? second : first;
  int64_t lanes = 0, reduced = 0;
  if (!as_const_int(extent_of(in, lanes_loop), &lanes) || !as_const_int(extent_of(in, reduced_loop), &reduced) ||
      reduced != intrinsic.reduced || lanes < 1 || lanes > intrinsic.max_lanes)
    return {};
  // Stages are changed by steps after the intrinsic was chosen; inlining, too.
  const Result<IntrinsicMatch> match = match_intrinsic(intrinsic, *s.stage);
  if (!match || s.stage->outputs.size() != 1) return {};

  const Var j(s.loops[lanes_loop].name), r(s.loops[reduced_loop].name);
  const Facts saved = facts_;
  struct Restore {
    Facts& facts;
    const Facts& saved;
    ~Restore() { facts = saved; }
  } restore{facts_, saved};
  facts_.set_range(j, Expr(0), Expr(lanes));
  facts_.set_range(r, Expr(0), Expr(reduced));
  in.value[lanes_loop] = j;
  in.value[reduced_loop] = r;
  // All points take part, or it stays loops.
  const std::vector<Condition> conditions = conditions_of(in.stage);
  for (size_t c = 0; c < conditions.size(); ++c) {
    const LoopRelation* guard = conditions[c].guard;
    if (in.conditions_done.count(static_cast<int>(c)) ||
        (guard && guard->tail == Tail::kPeel && !in.guarded.count(guard)))
      continue;
    if (!is_const_int(condition_expr(in, conditions[c]), 1)) return {};
  }
  for (const LoopRelation& relation : s.relations)
    if (relation.kind == LoopRelation::Kind::kSplit && relation.tail == Tail::kPad &&
        !can_prove(value_of(in, relation.whole, nullptr) < extent_of(in, relation.whole), facts_))
      return {};

  const VarMap map = axis_values(in, /*with_reduce=*/true);
  // By element of the operand vectors: the lane and the part of the reduction.
  const int elements = static_cast<int>(lanes * reduced);
  const Expr count = Ramp::make(Expr(0), Expr(1), elements), step = Broadcast::make(Expr(reduced), elements);
  const VarMap each{{j.get(), elements > 1 ? floor_div(count, step) : Expr(0)}, {r.get(), floor_mod(count, step)}};
  const VarMap one_lane{{r.get(), Ramp::make(Expr(0), Expr(1), static_cast<int>(reduced))}};
  std::vector<Expr> arguments;
  std::vector<Expr> operands = match->operands;
  // Of two of one type the second one differs from lane to lane (weights), the first one is the same for all: where the
  // first has to be adjusted for the machine, its rows share that work.
  const auto differs = [&](const Expr& operand) { return uses_var(short_form(remap(substitute(operand, map))), j); };
  if (operands.size() == 2 && operands[0].dtype() == operands[1].dtype() && differs(operands[0]) &&
      !differs(operands[1]))
    std::swap(operands[0], operands[1]);
  for (const Expr& operand : operands) {
    const Expr place = short_form(remap(substitute(operand, map)));
    if (place.kind() != NodeKind::kLoad) return {};
    if (uses_var(place, j)) {
      Expr vector = substitute(place, each);
      if (vector.dtype().lanes == 1) return {};
      arguments.push_back(vector);
      continue;
    }
    Expr part = substitute(place, one_lane);
    if (part.dtype().lanes == 1) part = Broadcast::make(part, static_cast<int>(reduced));
    if (lanes == 1) {
      arguments.push_back(part);
      continue;
    }
    std::vector<Expr> shuffle{part};
    for (int e = 0; e < elements; ++e) shuffle.push_back(Expr(e % reduced));
    arguments.push_back(Call::make(part.dtype().with_lanes(elements), Intrinsic::kShuffle, shuffle));
  }
  std::vector<Expr> index;
  for (const Axis& axis : s.stage->axes) index.push_back(map.at(axis.var.get()));
  const Storage& target = storage_.at(s.stage->outputs[0].get());
  std::vector<Expr> places;
  const VarMap all_lanes{{j.get(), lanes > 1 ? Ramp::make(Expr(0), Expr(1), static_cast<int>(lanes)) : Expr(0)}};
  bool vector = false;
  for (const Expr& place : physical(target, index)) {
    places.push_back(substitute(short_form(place), all_lanes));
    vector |= places.back().dtype().lanes > 1;
  }
  if (vector != (lanes > 1)) return {};
  const Expr accumulated = Load::make(target.buffer, places);
  arguments.insert(arguments.begin(), accumulated);
  return Store::make(target.buffer, places, Call::make(accumulated.dtype(), intrinsic.id, arguments));
}

}  // namespace tensmith
