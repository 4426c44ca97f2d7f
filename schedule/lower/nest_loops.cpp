#include <algorithm>

#include "schedule/lower/nest_builder.h"
#include "schedule/lower/reduce_in_pieces.h"
#include "tensor/equal_hash.h"

namespace tensmith {

using Kind = LoopRelation::Kind;

namespace {

void split_conjunction(const Expr& e, std::vector<Expr>* parts) {
  if (const auto* both = e.as<Binary>(); both && both->op == BinaryOp::kAnd && both->dtype.is_bool()) {
    split_conjunction(both->a, parts);
    split_conjunction(both->b, parts);
  } else {
    parts->push_back(e);
  }
}

}  // namespace

std::vector<NestBuilder::Condition> NestBuilder::conditions_of(int index) const {
  const StageState& s = stage(index);
  std::vector<Condition> conditions;
  for (const LoopRelation& r : s.relations)
    if (r.kind == Kind::kSplit && r.tail != Tail::kPad)
      conditions.push_back({{r.whole}, s.loops[r.whole].is_reduce, &r});
  if (s.stage->where.get() == nullptr) return conditions;
  std::vector<Expr> parts;
  split_conjunction(s.stage->where, &parts);
  for (const Expr& part : parts) {
    Condition c{{}, /*main_only=*/true, nullptr, part};
    const auto vars = collect_vars(part);
    for (size_t a = 0; a < s.axis_loops.size(); ++a)
      if (vars.count(s.stage->axes[a].var.get())) c.loops.push_back(s.axis_loops[a]);
    for (size_t a = 0; a < s.reduce_loops.size(); ++a)
      if (vars.count(s.stage->reduce_axes[a].var.get())) c.loops.push_back(s.reduce_loops[a]);
    conditions.push_back(c);
  }
  return conditions;
}

Expr NestBuilder::condition_expr(NestInstance& in, const Condition& c) {
  if (c.guard) {
    const Expr whole = extent_of(in, c.guard->whole);
    // A shifted piece lies inside, unless the loop is shorter than one piece.
    if (c.guard->tail == Tail::kShiftInwards && can_prove(whole >= Expr(c.guard->factor), facts_))
      return make_bool(true);
    return short_form(value_of(in, c.guard->whole, nullptr) < whole);
  }
  const StageState& s = stage(in.stage);
  VarMap map;
  for (size_t a = 0; a < s.axis_loops.size(); ++a)
    if (std::count(c.loops.begin(), c.loops.end(), s.axis_loops[a]))
      map[s.stage->axes[a].var.get()] = short_form(in.domain.min[a] + value_of(in, s.axis_loops[a], nullptr));
  for (size_t a = 0; a < s.reduce_loops.size(); ++a)
    if (std::count(c.loops.begin(), c.loops.end(), s.reduce_loops[a]))
      map[s.stage->reduce_axes[a].var.get()] = value_of(in, s.reduce_loops[a], nullptr);
  return short_form(remap(substitute(c.where, map)));
}

bool NestBuilder::can_peel(const NestInstance& in, const LoopRelation& r) const {
  const StageState& s = stage(in.stage);
  for (size_t l = 0; l < s.loops.size(); ++l)
    if (in.value[l].get() && s.comes_from(static_cast<int>(l), r.inner)) return false;
  return true;
}

bool NestBuilder::needs_constant_extent(const StageState& s, int loop, int64_t factor) const {
  if (factor > 32) return false;
  for (size_t k = 0; k < s.loops.size(); ++k) {
    if (s.loops[k].kind != ForKind::kVectorized && s.loops[k].kind != ForKind::kUnrolled) continue;
    for (int l = static_cast<int>(k); l >= 0;) {
      if (l == loop) return true;
      const LoopRelation* made = s.maker_of(l);
      l = made && made->kind == Kind::kSplit ? made->whole : -1;
    }
  }
  for (const StageState& other : state_.stages)
    if (other.attach == AttachKind::kAt && other.attach_stage == s.name && other.scope == Scope::kRegister &&
        !s.loops[loop].is_reduce)
      return true;
  return false;
}

Stmt NestBuilder::emit_stage(int index, const Region& domain) {
  const StageState& s = stage(index);
  if (s.stage->stage_kind == StageKind::kImperative) return remap(s.stage->imperative);
  NestInstance in;
  in.stage = index;
  in.domain = domain;
  in.value.resize(s.loops.size());
  return rest(std::move(in), 0, /*init=*/false);
}

Stmt NestBuilder::decide_peel(NestInstance in, const LoopRelation& r, size_t k, bool init) {
  const StageState& s = stage(in.stage);
  in.decided.insert(&r);
  const Expr whole = extent_of(in, r.whole);
  const Expr factor(r.factor);
  if (can_prove(floor_mod(whole, factor) == 0, facts_)) {
    in.inner_extent[r.inner] = factor;
    return rest(std::move(in), k, init);
  }
  const Expr full = short_form(floor_div(whole, factor)), left = short_form(floor_mod(whole, factor));
  if (is_const_int(full, 0)) {
    in.inner_extent[r.inner] = left;
    return rest(std::move(in), k, init);
  }
  const Expr outer = value_of(in, r.outer, nullptr);
  const auto piece = [&](const Expr& extent, const Expr& condition) {
    NestInstance copy = in;
    copy.inner_extent[r.inner] = extent;
    // Behind the full pieces there is only one.
    if (!extent.same_as(factor)) copy.value[r.outer] = full;
    const Facts saved = facts_;
    facts_.assume(condition);
    Stmt body = rest(std::move(copy), k, init);
    facts_ = saved;
    return body;
  };
  const Expr is_full = short_form(outer < full);
  if (is_const_int(is_full, 1)) return piece(factor, is_full);
  int64_t known;
  Stmt tail;
  if (as_const_int(left, &known) || !needs_constant_extent(s, r.inner, r.factor)) {
    tail = piece(left, outer >= full);
  } else {
    // The extent is symbolic, but the body wants a constant: one body for each length that the tail can have.
    for (int64_t length = r.factor - 1; length >= 1; --length)
      tail = If::make(left == length, piece(Expr(length), outer >= full && left == length), tail);
  }
  if (is_const_int(is_full, 0)) return tail;
  return If::make(is_full, piece(factor, is_full), tail);
}

Stmt NestBuilder::rest(NestInstance in, size_t k, bool init) {
  const StageState& s = stage(in.stage);
  for (const LoopRelation& r : s.relations) {
    if (r.kind != Kind::kSplit || r.tail != Tail::kPeel || in.decided.count(&r) || can_peel(in, r)) continue;
    in.decided.insert(&r);
    in.guarded.insert(&r);
  }

  const std::vector<Condition> conditions = conditions_of(in.stage);
  for (size_t c = 0; c < conditions.size(); ++c) {
    if (in.conditions_done.count(static_cast<int>(c)) || (init && conditions[c].main_only)) continue;
    if (const LoopRelation* guard = conditions[c].guard;
        guard && guard->tail == Tail::kPeel && !in.guarded.count(guard))
      continue;
    if (!std::all_of(conditions[c].loops.begin(), conditions[c].loops.end(),
                     [&](int loop) { return determined(in, loop); }))
      continue;
    // The condition of a reduction must not keep its start value from being stored.
    if (!init && conditions[c].main_only && s.stage->reducer.has_value() && !in.init_done &&
        static_cast<int>(k) <= s.init_position())
      continue;
    in.conditions_done.insert(static_cast<int>(c));
    const Expr condition = condition_expr(in, conditions[c]);
    if (is_const_int(condition, 1)) continue;
    const Facts saved = facts_;
    facts_.assume(condition);
    Stmt body = rest(std::move(in), k, init);
    facts_ = saved;
    // Lanes of a vector loop take part or not: scalar here, made a mask by the vectorizer.
    return If::make(condition, body);
  }

  // Behind the conditions: an outer loop that was split again may reach beyond its last piece.
  for (const LoopRelation& r : s.relations)
    if (r.kind == Kind::kSplit && r.tail == Tail::kPeel && !in.decided.count(&r) && determined(in, r.outer))
      return decide_peel(std::move(in), r, k, init);

  if (in.pending_attach >= 0) {
    const int loop = in.pending_attach;
    if (init) in.pending_attach = -1;
    else return emit_attached(std::move(in), loop, k);
  }
  if (!init && s.cache_loop >= 0 && !in.cached && static_cast<int>(k) > s.order_position(s.cache_loop))
    return emit_cached(std::move(in), k);
  if (!init && s.stage->reducer && !in.init_done && static_cast<int>(k) == s.init_position()) {
    NestInstance start = in;
    in.init_done = true;
    Stmt first = rest(std::move(start), k, /*init=*/true);
    const Stmt main = rest(std::move(in), k, /*init=*/false);
    const Attrs attrs = k < s.order.size() ? s.loops[s.order[k]].attrs : Attrs();
    if (const auto piece = attrs.find(kPieceKey); piece != attrs.end() && s.attach == AttachKind::kAt) {
      const Buffer& target = storage_.at(s.stage->outputs[0].get()).buffer;
      if (Stmt pieces = reduce_in_pieces(first, main, target, *s.stage->reducer, piece->second)) return pieces;
    }
    return Block::make({first, main});
  }
  if (k == s.order.size()) return leaf(in, init);
  if (init && s.loops[s.order[k]].is_reduce) return rest(std::move(in), k + 1, init);
  if (!init && s.order[k] == s.intrinsic_loop)
    if (Stmt whole = emit_intrinsic(in, k)) return whole;
  return open_loop(std::move(in), k, init);
}

Stmt NestBuilder::open_loop(NestInstance in, size_t k, bool init) {
  const StageState& s = stage(in.stage);
  const int loop = s.order[k];
  const LoopVar& l = s.loops[loop];

  const auto body_for = [&](NestInstance piece, const Expr& value, const Expr& min, const Expr& extent) {
    // By which a fused loop is taken apart: as it was put together, before it is known that an iteration runs.
    std::map<const LoopRelation*, Expr> inner_extents;
    for (const LoopRelation& r : s.relations)
      if (r.kind == Kind::kFuse && s.comes_from(loop, r.inner)) inner_extents[&r] = extent_of(piece, r.inner);
    const Facts saved = facts_;
    if (const auto* var = value.as<VarNode>()) facts_.set_range(Var(var), min, extent);
    piece.value[loop] = value;
    piece.pending_attach = loop;
    // The loops that were fused get variables of their own: bounds and indices then speak of the same thing and cancel.
    std::vector<std::pair<Var, Expr>> components;
    std::vector<int> open{loop};
    while (!open.empty()) {
      const int whole = open.back();
      open.pop_back();
      const LoopRelation* made = s.maker_of(whole);
      if (!made || made->kind != Kind::kFuse) continue;
      const Expr inner = inner_extents.at(made);
      for (const int part : {made->outer, made->inner}) {
        const Expr part_value = short_form(part == made->outer ? floor_div(piece.value[whole], inner)
                                                               : floor_mod(piece.value[whole], inner));
        if (part_value.kind() == NodeKind::kIntImm || part_value.kind() == NodeKind::kVar) {
          piece.value[part] = part_value;
        } else {
          const Var var(s.loops[part].name);
          facts_.set_range(var, Expr(0), extent_of(piece, part));
          components.emplace_back(var, part_value);
          piece.value[part] = var;
        }
        open.push_back(part);
      }
    }
    std::vector<Stmt> parts;
    if (!init) parts = prefetches(piece, loop);
    parts.push_back(rest(std::move(piece), k + 1, init));
    facts_ = saved;
    Stmt body = Block::make(parts);
    for (auto component = components.rbegin(); component != components.rend(); ++component)
      body = LetStmt::make(component->first, component->second, body);
    return body;
  };

  // The iterations up to `end`, in the pieces that loop_partition wants.
  const auto loops_to = [&](const NestInstance& piece, const Expr& end) {
    std::vector<Stmt> pieces;
    Expr from(0);
    std::vector<int64_t> cuts = l.cuts;
    cuts.push_back(INT64_MAX);  // the end
    for (int64_t cut : cuts) {
      Expr to = cut == INT64_MAX ? end : cut > 0 ? min(Expr(cut), end) : extent_of(in, loop) + cut;
      if (cut < 0) to = max(min(to, end), from);
      to = short_form(to);
      const Expr count = short_form(to - from);
      if (int64_t known; as_const_int(count, &known) && known <= 0) continue;
      const Var var(l.name);
      pieces.push_back(is_const_int(count, 1) && !l.cuts.empty()
                           ? body_for(piece, from, from, count)
                           : For::make(var, from, count, l.kind, body_for(piece, var, from, count), l.attrs));
      from = to;
    }
    return Block::make(pieces);
  };

  const Expr extent = extent_of(in, loop);
  // A serial or unrolled loop whose last iteration is shorter inside: two pieces, so that the long one has no branch.
  const LoopRelation* made = s.maker_of(loop);
  const bool is_outer = made && made->kind == Kind::kSplit && made->outer == loop && made->tail == Tail::kPeel &&
                        !in.decided.count(made) && can_peel(in, *made);
  if (is_outer && (l.kind == ForKind::kSerial || l.kind == ForKind::kUnrolled)) {
    const Expr whole = extent_of(in, made->whole), factor(made->factor);
    if (!can_prove(floor_mod(whole, factor) == 0, facts_)) {
      const Expr full = short_form(floor_div(whole, factor)), left = short_form(floor_mod(whole, factor));
      NestInstance main = in;
      main.decided.insert(made);
      const NestInstance last = main;
      main.inner_extent[made->inner] = factor;
      const auto tail_of = [&](const Expr& length) {
        NestInstance piece = last;
        piece.inner_extent[made->inner] = length;
        return body_for(std::move(piece), full, full, Expr(1));
      };
      const auto tail = [&]() -> Stmt {
        int64_t known;
        if (as_const_int(left, &known)) return tail_of(left);
        if (!needs_constant_extent(s, made->inner, made->factor)) return If::make(left > 0, tail_of(left));
        Stmt chain;
        for (int64_t length = made->factor - 1; length >= 1; --length) {
          const Facts saved = facts_;
          facts_.assume(left == length);
          chain = If::make(left == length, tail_of(Expr(length)), chain);
          facts_ = saved;
        }
        return chain;
      };
      if (is_const_int(full, 0)) return tail();
      const auto both = [&] {
        const Stmt first = loops_to(main, full);
        return Block::make({first, tail()});
      };
      return init ? both() : with_frame(in, loop, both);
    }
  }
  if (is_const_int(extent, 1)) return body_for(std::move(in), Expr(0), Expr(0), extent);
  const auto all = [&] { return loops_to(in, extent); };
  return init ? all() : with_frame(in, loop, all);
}

std::vector<int> NestBuilder::attached_at(int index, int loop) const {
  const StageState& s = stage(index);
  std::vector<int> attached;
  for (size_t k = 0; k < state_.stages.size(); ++k) {
    const StageState& other = stage(static_cast<int>(k));
    if (other.attach == AttachKind::kAt && other.attach_stage == s.name && other.attach_loop == s.loops[loop].name)
      attached.push_back(static_cast<int>(k));
  }
  return attached;
}

Stmt NestBuilder::emit_attached(NestInstance in, int loop, size_t k) {
  const std::vector<int> attached = attached_at(in.stage, loop);
  if (attached.empty()) {
    in.pending_attach = -1;
    return rest(std::move(in), k, /*init=*/false);
  }
  std::map<int, Region> known, regions;
  for (int index : attached) regions[index] = region_of(index, in, known);
  const auto saved = storage_;
  std::vector<Buffer> buffers;
  allocate_attached(in, loop, regions, &buffers);
  std::vector<Stmt> stmts;
  around_.push_back(&in);
  if (frame_of(in.stage, loop)) {
    stmts.push_back(emit_windows(in, loop, regions));
  } else {
    for (int index : attached) stmts.push_back(emit_stage(index, regions[index]));
  }
  around_.pop_back();
  in.pending_attach = -1;
  stmts.push_back(rest(std::move(in), k, /*init=*/false));
  storage_ = saved;
  Stmt body = Block::make(stmts);
  for (auto buffer = buffers.rbegin(); buffer != buffers.rend(); ++buffer) body = Allocate::make(*buffer, body);
  return body;
}

Stmt NestBuilder::leaf(const NestInstance& instance, bool init) {
  if (instance.move) return move_leaf(instance);
  NestInstance in = instance;
  const StageState& s = stage(in.stage);
  const StageNode& node = *s.stage;
  const VarMap map = axis_values(in, /*with_reduce=*/!init);
  std::vector<Expr> index;
  for (const Axis& axis : node.axes) index.push_back(map.at(axis.var.get()));
  const size_t count = node.outputs.size();
  std::vector<Storage> targets;
  std::vector<std::vector<Expr>> places;
  for (const Buffer& output : node.outputs) {
    targets.push_back(storage_.at(output.get()));
    places.push_back(physical(targets.back(), index));
  }
  std::vector<Expr> values;
  if (init) {
    for (size_t o = 0; o < count; ++o)
      values.push_back(node.initial.empty() ? node.reducer->identity[o] : remap(substitute(node.initial[o], map)));
  } else {
    for (const Expr& body : node.bodies) values.push_back(remap(substitute(body, map)));
  }
  // What a padded tail computes is never read, or adds the neutral element; it must only not read outside of its
  // inputs.
  for (const LoopRelation& r : s.relations) {
    if (r.kind != Kind::kSplit || r.tail != Tail::kPad ||
        (init && (s.loops[r.whole].is_reduce || node.initial.empty())))
      continue;
    const Expr inside = short_form(value_of(in, r.whole, nullptr) < extent_of(in, r.whole));
    if (is_const_int(inside, 1)) continue;
    for (size_t o = 0; o < count; ++o)
      values[o] = select(inside, values[o], node.reducer ? node.reducer->identity[o] : make_zero(values[o].dtype()));
  }
  if (!init) {
    if (node.reducer) {
      VarMap operands;
      for (size_t o = 0; o < count; ++o)
        operands[node.reducer->lhs[o].get()] = Load::make(targets[o].buffer, places[o]);
      std::vector<Var> temporaries;
      const std::vector<Expr> parts = values;
      for (size_t o = 0; o < count; ++o) {
        // A value that the reducer uses several times is computed once.
        if (count > 1) temporaries.push_back(Var(node.reducer->rhs[o].name(), values[o].dtype()));
        operands[node.reducer->rhs[o].get()] = count > 1 ? Expr(temporaries[o]) : parts[o];
      }
      for (size_t o = 0; o < count; ++o) values[o] = substitute(node.reducer->combined[o], operands);
      if (count > 1) {
        std::vector<Var> results;
        std::vector<Stmt> stores;
        for (size_t o = 0; o < count; ++o) {
          results.push_back(Var(targets[o].buffer->name + "_next", values[o].dtype()));
          stores.push_back(Store::make(targets[o].buffer, places[o], results[o]));
        }
        Stmt body = Block::make(stores);
        for (size_t o = count; o-- > 0;) body = LetStmt::make(results[o], values[o], body);
        for (size_t o = count; o-- > 0;) body = LetStmt::make(temporaries[o], parts[o], body);
        return body;
      }
    }
  }
  std::vector<Stmt> stores;
  for (size_t o = 0; o < count; ++o) stores.push_back(Store::make(targets[o].buffer, places[o], values[o]));
  return Block::make(stores);
}

}  // namespace tensmith
