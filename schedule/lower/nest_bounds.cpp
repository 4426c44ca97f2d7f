#include <algorithm>

#include "schedule/lower/nest_builder.h"

namespace tensmith {

using Kind = LoopRelation::Kind;

Expr NestBuilder::extent_of(const NestInstance& in, int loop) {
  const StageState& s = stage(in.stage);
  if (const auto fixed = in.inner_extent.find(loop); fixed != in.inner_extent.end()) return fixed->second;
  const LoopRelation* made = s.maker_of(loop);
  if (!made) {
    for (size_t a = 0; a < s.axis_loops.size(); ++a)
      if (s.axis_loops[a] == loop) return in.domain.extent[a];
    for (size_t a = 0; a < s.reduce_loops.size(); ++a)
      if (s.reduce_loops[a] == loop) return s.stage->reduce_axes[a].extent;
    TS_CHECK(s.loops[static_cast<size_t>(loop)].is_unit) << s.name << " loop " << loop;
    return Expr(1);
  }
  if (made->kind == Kind::kFuse) return short_form(extent_of(in, made->outer) * extent_of(in, made->inner));
  const Expr whole = extent_of(in, made->whole);
  int64_t known;
  if (loop == made->outer) return short_form(ceil_div(whole, Expr(made->factor)));
  return as_const_int(whole, &known) && known < made->factor ? whole : Expr(made->factor);
}

Expr NestBuilder::value_of(NestInstance& in, int loop, RangeMap* free) {
  if (in.value[loop]) return in.value[loop];
  const StageState& s = stage(in.stage);
  const LoopRelation* used = s.consumer_of(loop);
  // The tail of a loop that is split further inside does not reach beyond it.
  const bool whole = used && free && used->kind == Kind::kSplit && is_open(in, loop) &&
                     (used->tail == Tail::kPeel || used->tail == Tail::kGuard) && s.maker_of(loop) != nullptr &&
                     !can_prove(floor_mod(extent_of(in, loop), Expr(used->factor)) == 0, facts_);
  if (!used || whole) {
    TS_CHECK(free) << s.name << "." << s.loops[loop].name << " is not open";
    auto [it, fresh] = in.free_vars.try_emplace(loop);
    if (fresh) it->second = Var(s.loops[loop].name);
    const Expr extent = extent_of(in, loop);
    (*free)[it->second.get()] = {Expr(0), short_form(extent - 1), !is_positive(extent)};
    return it->second;
  }
  if (used->kind == Kind::kFuse) {
    const Expr fused = value_of(in, used->whole, free);
    const Expr extent = extent_of(in, used->inner);
    return short_form(loop == used->outer ? floor_div(fused, extent) : floor_mod(fused, extent));
  }
  Expr base = value_of(in, used->outer, free) * Expr(used->factor);
  if (used->tail == Tail::kShiftInwards) {
    const Expr whole = extent_of(in, loop);
    if (!can_prove(floor_mod(whole, Expr(used->factor)) == 0, facts_))
      base = min(base, max(whole - Expr(used->factor), Expr(0)));
  }
  return short_form(base + value_of(in, used->inner, free));
}

bool NestBuilder::is_open(const NestInstance& in, int loop) const {
  if (in.value[loop]) return false;
  const LoopRelation* used = stage(in.stage).consumer_of(loop);
  return !used || (used->kind == Kind::kSplit && is_open(in, used->outer) && is_open(in, used->inner));
}

bool NestBuilder::is_positive(const Expr& extent) const {
  int64_t known;
  return as_const_int(extent, &known) ? known > 0 : can_prove(extent >= 1, facts_);
}

bool NestBuilder::determined(const NestInstance& in, int loop) const {
  if (in.value[loop]) return true;
  const LoopRelation* used = stage(in.stage).consumer_of(loop);
  if (!used) return false;
  if (used->kind == Kind::kFuse) return determined(in, used->whole);
  return determined(in, used->outer) && determined(in, used->inner);
}

VarMap NestBuilder::axis_values(NestInstance& in, bool with_reduce) {
  const StageState& s = stage(in.stage);
  VarMap map;
  for (size_t a = 0; a < s.axis_loops.size(); ++a)
    map[s.stage->axes[a].var.get()] = short_form(in.domain.min[a] + value_of(in, s.axis_loops[a], nullptr));
  if (with_reduce)
    for (size_t a = 0; a < s.reduce_loops.size(); ++a)
      map[s.stage->reduce_axes[a].var.get()] = value_of(in, s.reduce_loops[a], nullptr);
  return map;
}

bool NestBuilder::is_inside(int index, const NestInstance& in) const {
  const StageState& owner = stage(in.stage);
  const int position = owner.order_position(in.pending_attach);
  for (const StageState* s = &stage(index); s->attach == AttachKind::kAt; s = state_.find(s->attach_stage))
    if (s->attach_stage == owner.name && owner.order_position(owner.find_loop(s->attach_loop)) >= position) return true;
  return false;
}

bool NestBuilder::stays_inside(const NestInstance& in, int loop) {
  const LoopRelation* used = stage(in.stage).consumer_of(loop);
  if (!used) return true;
  if (used->kind == Kind::kFuse) return stays_inside(in, used->whole);
  // A loop shorter than one shifted piece reaches beyond it, under a condition.
  const bool shifted =
      used->tail == Tail::kShiftInwards && can_prove(extent_of(in, used->whole) >= Expr(used->factor), facts_);
  const bool exact = (in.decided.count(used) && !in.guarded.count(used)) || shifted ||
                     can_prove(floor_mod(extent_of(in, used->whole), Expr(used->factor)) == 0, facts_);
  return exact && stays_inside(in, used->outer) && stays_inside(in, used->inner);
}

Region NestBuilder::clamp(const Region& region, const std::vector<Expr>& shape, const std::vector<bool>& inside) {
  Region clamped;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (inside[d]) {
      clamped.min.push_back(region.min[d]);
      clamped.extent.push_back(region.extent[d]);
      continue;
    }
    Expr lo = region.min[d], hi = region.min[d] + region.extent[d] - 1;
    if (!can_prove(lo >= 0, facts_)) lo = max(lo, Expr(0));
    if (!can_prove(hi <= shape[d] - 1, facts_)) hi = min(hi, shape[d] - 1);
    clamped.min.push_back(short_form(lo));
    // Beyond an edge nothing is left; a negative extent would divide into pieces and multiply to a positive one.
    Expr extent = short_form(hi - lo + 1);
    if (!can_prove(extent >= 0, facts_)) extent = short_form(max(extent, Expr(0)));
    clamped.extent.push_back(extent);
  }
  return clamped;
}

Interval NestBuilder::without_stages(Interval range) const {
  for (Expr* bound : {&range.lo, &range.hi}) {
    bool computed = false;
    if (bound->get() != nullptr)
      visit(*bound, [&](const Expr& e) {
        const auto* read = e.as<Load>();
        const int from = read ? state_.producer_of(read->buffer.get()) : -1;
        computed = computed || (from >= 0 && stage(from).stage->stage_kind != StageKind::kPlaceholder);
        return !computed;
      });
    if (computed) *bound = Expr();
  }
  return range;
}

Region NestBuilder::region_of(int producer, NestInstance& in, std::map<int, Region>& known) {
  if (const auto it = known.find(producer); it != known.end()) return it->second;
  const StageState& p = stage(producer);
  const std::vector<Expr>& shape = p.stage->outputs[0]->shape;
  std::vector<Interval> box(shape.size()), wide_box(shape.size());
  // Read only at axes of readers that are no longer than the dimension, in ranges that are not empty.
  std::vector<bool> inside(shape.size(), true);
  bool first = true;
  for (int user : state_.consumers_of(producer)) {
    if (stage(user).attach == AttachKind::kInlined) continue;
    const StageState& c = stage(user);
    RangeMap ranges, wide_ranges;
    if (user == in.stage) {
      RangeMap free;
      // The values that an axis takes in this iteration; a tail under a condition reaches beyond the extent, and what
      // lies there is not computed (perhaps all of it).
      const auto range_of = [&](int loop, const Expr& e, const Expr& last) {
        Interval range = bounds_of(e, free, facts_);
        for (const VarNode* var : collect_vars(e))
          if (const auto it = free.find(var); it != free.end()) range.maybe_empty |= it->second.maybe_empty;
        if (range.hi.get() && !stays_inside(in, loop) && !can_prove(range.hi <= last, facts_)) {
          range.hi = min(range.hi, last);
          range.maybe_empty |= range.lo.get() == nullptr || !can_prove(range.lo <= range.hi, facts_);
        }
        return range;
      };
      for (size_t a = 0; a < c.axis_loops.size(); ++a) {
        const Expr e = in.domain.min[a] + value_of(in, c.axis_loops[a], &free);
        const VarNode* axis = c.stage->axes[a].var.get();
        const bool whole = !c.consumer_of(c.axis_loops[a]) && in.value[c.axis_loops[a]].get() == nullptr;
        wide_ranges[axis] = whole ? in.domain.wide(a) : bounds_of(e, free, facts_);
        ranges[axis] = range_of(c.axis_loops[a], e, in.domain.min[a] + in.domain.extent[a] - 1);
      }
      for (size_t a = 0; a < c.reduce_loops.size(); ++a) {
        const Axis& axis = c.stage->reduce_axes[a];
        const Expr e = value_of(in, c.reduce_loops[a], &free);
        wide_ranges[axis.var.get()] = ranges[axis.var.get()] = range_of(c.reduce_loops[a], e, axis.extent - 1);
        wide_ranges[axis.var.get()].maybe_empty = false;
      }
    } else if (is_inside(user, in)) {
      const Region domain = region_of(user, in, known);
      for (size_t a = 0; a < c.axis_loops.size(); ++a) {
        ranges[c.stage->axes[a].var.get()] = {domain.min[a], short_form(domain.min[a] + domain.extent[a] - 1),
                                              !is_positive(domain.extent[a])};
        wide_ranges[c.stage->axes[a].var.get()] = domain.wide(a);
      }
      for (const Axis& axis : c.stage->reduce_axes) {
        wide_ranges[axis.var.get()] = ranges[axis.var.get()] = {Expr(0), short_form(axis.extent - 1)};
        ranges[axis.var.get()].maybe_empty = !is_positive(axis.extent);
      }
    } else {
      TS_UNREACHABLE() << p.name << " is read by " << c.name << " outside of its place";
    }
    const auto widen = [&](const Expr& body) {
      if (body.get() == nullptr) return;
      visit(body, [&](const Expr& e) {
        const auto* read = e.as<Load>();
        if (!read || state_.producer_of(read->buffer.get()) != producer) return true;
        for (size_t d = 0; d < shape.size(); ++d) {
          Interval range = without_stages(bounds_of(read->indices[d], ranges, facts_));
          const auto is_short_axis = [&](const Axis& axis) {
            return axis.var.get() == read->indices[d].get() && !ranges.at(axis.var.get()).maybe_empty &&
                   can_prove(axis.extent <= shape[d], facts_);
          };
          inside[d] =
              inside[d] && (std::any_of(c.stage->axes.begin(), c.stage->axes.end(), is_short_axis) ||
                            std::any_of(c.stage->reduce_axes.begin(), c.stage->reduce_axes.end(), is_short_axis));
          if (range.lo.get() == nullptr) range.lo = Expr(0);
          if (range.hi.get() == nullptr) range.hi = shape[d] - 1;
          Interval wide = without_stages(bounds_of(read->indices[d], wide_ranges, facts_));
          if (wide.lo.get() == nullptr) wide.lo = Expr(0);
          if (wide.hi.get() == nullptr) wide.hi = shape[d] - 1;
          wide_box[d] =
              first ? wide
                    : Interval{short_form(min(wide_box[d].lo, wide.lo)), short_form(max(wide_box[d].hi, wide.hi))};
          box[d] = first ? range : Interval{short_form(min(box[d].lo, range.lo)), short_form(max(box[d].hi, range.hi))};
        }
        first = false;
        return true;
      });
    };
    for (const Expr& body : c.stage->bodies) widen(body);
    for (const Expr& initial : c.stage->initial) widen(initial);
    widen(c.stage->where);
  }
  Region region;
  for (size_t d = 0; d < shape.size(); ++d) {
    region.min.push_back(first ? Expr(0) : short_form(box[d].lo));
    region.extent.push_back(first ? shape[d] : short_form(box[d].hi - box[d].lo + 1));
  }
  region = clamp(region, shape, inside);
  for (size_t d = 0; d < shape.size() && !first; ++d) {
    region.wide_min.push_back(short_form(wide_box[d].lo));
    region.wide_extent.push_back(short_form(wide_box[d].hi - wide_box[d].lo + 1));
  }
  known[producer] = region;
  return region;
}

}  // namespace tensmith
