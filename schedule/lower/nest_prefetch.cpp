#include <algorithm>
#include <bit>

#include "schedule/lower/nest_builder.h"
#include "tensor/equal_hash.h"

namespace tensmith {

namespace {

// Into the first cache what is used next; into the second what a whole block later is.
constexpr int kFirstCache = 3, kSecondCache = 2;

Stmt prefetch_of(const Expr& place, int locality) {
  return Evaluate::make(Call::make(kInt32, Intrinsic::kPrefetch, {place, IntImm::make(kInt32, locality)}));
}

/// The place as one index into the buffer.
Expr linear_index(const Load& place) {
  Expr index(0);
  for (size_t d = 0; d < place.indices.size(); ++d) index = index * place.buffer->shape[d] + place.indices[d];
  return index;
}

}  // namespace

Expr NestBuilder::first_read(const NestInstance& at, int producer) {
  NestInstance in = at;
  const VarMap map = axis_values(in, /*with_reduce=*/true);
  Expr place;
  const auto look = [&](const Expr& body) {
    if (body.get() == nullptr) return;
    visit(body, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (read && place.get() == nullptr && state_.producer_of(read->buffer.get()) == producer)
        place = short_form(remap(substitute(e, map)));
      return place.get() == nullptr;
    });
  };
  for (const Expr& body : stage(in.stage).stage->bodies) look(body);
  look(stage(in.stage).stage->where);
  if (place.get() != nullptr)
    visit(place, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (read && state_.producer_of(read->buffer.get()) >= 0)
        throw ScheduleError("prefetch-no-memory",
                            "schedule " + state_.name + ": stage " + stage(in.stage).name + " asks for " +
                                stage(producer).name + " ahead at places that " + read->buffer->name +
                                " gives, which is computed further inside; compute it at a loop outside\n" +
                                loop_nest_text(state_));
      return true;
    });
  return place;
}

void NestBuilder::refuse_prefetch(int index, int loop, const std::string& why) const {
  const StageState& s = stage(index);
  throw ScheduleError("prefetch-no-sweep", "schedule " + state_.name + ": stage " + s.name + ": loop " +
                                               s.loops[loop].name + " asks for data ahead, but " + why + "\n" +
                                               loop_nest_text(state_, s.name + "." + s.loops[loop].name));
}

std::vector<Stmt> NestBuilder::prefetches(const NestInstance& in, int loop) {
  std::vector<Stmt> stmts;
  for (const Prefetch& prefetch : stage(in.stage).loops[loop].prefetches) {
    const StageState& producer = *state_.find(prefetch.producer);  // check_prefetches
    const int index = static_cast<int>(&producer - state_.stages.data());
    const std::vector<Stmt> made = prefetch.distance > 0 ? prefetches_ahead(in, loop, index, prefetch.distance)
                                                         : prefetches_of_next(in, loop, index, prefetch);
    stmts.insert(stmts.end(), made.begin(), made.end());
  }
  return stmts;
}

std::vector<Stmt> NestBuilder::prefetches_ahead(const NestInstance& in, int loop, int producer, int64_t distance) {
  const StageState& s = stage(in.stage);
  // The address that this loop reaches `distance` iterations later, with the loops inside it at their start; unrolled
  // ones in each of their iterations, as long as that gives another address: the whole block of vectors is asked for.
  NestInstance ahead = in;
  ahead.value[loop] = ahead.value[loop] + Expr(distance);
  std::vector<int> copies;
  for (size_t l = 0; l < s.loops.size(); ++l) {
    if (ahead.value[l].get() != nullptr || s.consumer_of(static_cast<int>(l))) continue;
    ahead.value[l] = Expr(0);
    if (s.loops[l].kind == ForKind::kUnrolled) copies.push_back(static_cast<int>(l));
  }
  std::vector<Expr> places;
  const auto add = [&] {
    const Expr place = first_read(ahead, producer);
    if (place.get() && std::none_of(places.begin(), places.end(), [&](const Expr& p) { return equal(p, place); }))
      places.push_back(place);
  };
  add();
  for (int copy : copies) {
    int64_t extent;
    if (!as_const_int(extent_of(ahead, copy), &extent)) continue;
    for (int64_t turn = 1; turn < std::min<int64_t>(extent, 8) && places.size() < 8; ++turn) {
      const size_t before = places.size();
      ahead.value[copy] = Expr(turn);
      add();
      if (places.size() == before) break;  // the address does not depend on it
    }
    ahead.value[copy] = Expr(0);
  }
  std::vector<Stmt> stmts;
  for (const Expr& place : places) stmts.push_back(prefetch_of(place, kFirstCache));
  return stmts;
}

std::vector<Stmt> NestBuilder::prefetches_of_next(const NestInstance& in, int loop, int producer,
                                                  const Prefetch& prefetch) {
  const StageState& s = stage(in.stage);
  // The iteration of the loop over which the shares are spread.
  Expr share;
  int64_t shares = 0;
  for (const NestInstance* outer : around_) {
    if (stage(outer->stage).name != prefetch.spread_stage || !determined(*outer, prefetch.spread)) continue;
    NestInstance copy = *outer;
    share = value_of(copy, prefetch.spread, nullptr);
    if (as_const_int(short_form(extent_of(copy, prefetch.spread)), &shares)) continue;
    // Of a number that is known only when it runs the first few ask, so that no division is left in the loop.
    constexpr int64_t kShares = 4;
    shares = kShares;
    share = short_form(min(share, Expr(kShares - 1)));
  }
  if (share.get() == nullptr || shares < 1) refuse_prefetch(in.stage, loop, "not inside " + prefetch.spread_stage);

  // Where the sweep begins, how far a step of the loop goes on, in elements, and the number of the step.
  NestInstance first = in;
  for (size_t l = 0; l < s.loops.size(); ++l) {
    if (first.value[l].get() != nullptr && !(s.loops[l].is_reduce || !s.stage->reducer)) continue;
    first.value[l] = s.consumer_of(static_cast<int>(l)) ? Expr() : Expr(0);
  }
  NestInstance second = first;
  second.value[loop] = Expr(1);
  Expr step(0), total(1);
  for (int l : s.order) {
    if (s.stage->reducer && !s.loops[l].is_reduce) continue;
    const Expr extent = short_form(extent_of(in, l));
    step = step * extent + in.value[l];
    total = short_form(total * extent);
    if (l == loop) break;  // what lies inside is done within a step
  }
  const Expr from = first_read(first, producer), to = first_read(second, producer);
  if (from.get() == nullptr || to.get() == nullptr)
    refuse_prefetch(in.stage, loop, "does not read " + prefetch.producer);
  const Load& place = *from.as<Load>();
  int64_t stride;
  if (!as_const_int(short_form(linear_index(*to.as<Load>()) - linear_index(place)), &stride) || stride == 0)
    refuse_prefetch(
        in.stage, loop,
        "does not move in " + prefetch.producer + " by steps of a constant size; use prefetch in its place");

  const int64_t line = line_elements(place.dtype), width = std::abs(stride);
  int64_t steps = 0, per_step = 0;
  Expr number;  // of the first line that this step asks for
  if (as_const_int(total, &steps) && steps >= 1) {
    // A line after another; a power of two of steps for each, so that no division stays in the loop.
    const int64_t lines = (steps * width + line - 1) / line, each = (lines + shares - 1) / shares;
    per_step = (each + steps - 1) / steps;
    const int64_t pause = per_step > 1 ? 1 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(steps / each)));
    number = share * Expr(each) + floor_div(step, Expr(pause)) * Expr(per_step);
  } else {
    // Each step asks for its share of what the same step of the next sweep will read.
    const int64_t lines = (width + line - 1) / line;
    per_step = (lines + shares - 1) / shares;
    number = share * Expr(per_step);
  }
  std::vector<Stmt> stmts;
  for (int64_t k = 0; k < per_step; ++k) {
    std::vector<Expr> indices(place.indices.begin(), place.indices.end());
    Expr ahead = total * Expr(stride) + (number + Expr(k)) * Expr(stride > 0 ? line : -line);
    if (steps == 0) ahead = ahead + step * Expr(stride);
    indices.back() = short_form(indices.back() + ahead);
    stmts.push_back(prefetch_of(Load::make(place.buffer, indices), kSecondCache));
  }
  return stmts;
}

}  // namespace tensmith
