#include <algorithm>
#include <bit>

#include "schedule/lower/nest_builder.h"
#include "tensor/equal_hash.h"

namespace tensmith {

namespace {

constexpr std::string_view kAhead = "prefetch:", kNext = "prefetch_next:";
// Into the first cache what is used next; into the second what a whole block later is.
constexpr int kFirstCache = 3, kSecondCache = 2;

Stmt prefetch_of(const Expr& place, int locality) {
  return Evaluate::make(Call::make(kInt32, Intrinsic::kPrefetch, {place, IntImm::make(kInt32, locality)}));
}

/// The place as one index into the buffer, where its shape is constant; else null.
Expr linear_index(const Load& place) {
  Expr index(0);
  for (size_t d = 0; d < place.indices.size(); ++d) {
    int64_t extent;
    if (!as_const_int(place.buffer->shape[d], &extent)) return {};
    index = index * Expr(extent) + place.indices[d];
  }
  return index;
}

}  // namespace

bool NestBuilder::is_prefetch(const std::string& key) { return key.starts_with(kAhead) || key.starts_with(kNext); }

Expr NestBuilder::first_read(const NestInstance& at, int producer) {
  NestInstance in = at;
  const VarMap map = axis_values(in, /*with_reduce=*/true);
  Expr place;
  for (const Expr& body : stage(in.stage).stage->bodies)
    visit(body, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (read && place.get() == nullptr && state_.producer_of(read->buffer.get()) == producer)
        place = short_form(remap(substitute(e, map)));
      return place.get() == nullptr;
    });
  return place;
}

std::vector<Stmt> NestBuilder::prefetches(const NestInstance& in, int loop) {
  std::vector<Stmt> stmts;
  for (const auto& [key, distance] : stage(in.stage).loops[loop].attrs) {
    if (!is_prefetch(key)) continue;
    const bool next = key.starts_with(kNext);
    const std::string rest = key.substr(next ? kNext.size() : kAhead.size());
    const size_t at = next ? rest.rfind('@') : rest.size();
    const StageState* producer = state_.find(rest.substr(0, at));
    if (!producer) continue;
    // What is computed further inside, or inlined, is in no memory yet.
    const auto in_memory = [&](const Buffer& b) {
      return storage_.count(b.get()) && storage_.at(b.get()).buffer->scope != Scope::kRegister;
    };
    if (!std::all_of(producer->stage->outputs.begin(), producer->stage->outputs.end(), in_memory)) continue;
    const int index = static_cast<int>(producer - state_.stages.data());
    const std::vector<Stmt> made =
        next ? prefetches_of_next(in, loop, index, rest.substr(at + 1)) : prefetches_ahead(in, loop, index, distance);
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
                                                  const std::string& spread) {
  const StageState& s = stage(in.stage);
  // The iteration of the loop over which the shares are spread.
  Expr share;
  int64_t shares = 0;
  for (const NestInstance* outer : around_) {
    const StageState& reader = stage(outer->stage);
    const int l = reader.name == s.attach_stage ? reader.find_loop(spread) : -1;
    if (l < 0 || outer->value[l].get() == nullptr) continue;
    NestInstance copy = *outer;
    share = outer->value[l];
    if (!as_const_int(short_form(extent_of(copy, l)), &shares)) return {};
  }
  if (share.get() == nullptr || shares < 1) return {};

  // Where the sweep over all reduce loops begins, how far a step of the innermost one goes on, in elements, and the
  // number of the step.
  NestInstance first = in;
  for (size_t l = 0; l < s.loops.size(); ++l)
    if (!s.consumer_of(static_cast<int>(l)) && (first.value[l].get() == nullptr || s.loops[l].is_reduce))
      first.value[l] = Expr(0);
  NestInstance second = first;
  second.value[loop] = Expr(1);
  Expr step(0);
  int64_t steps = 1;
  for (int l : s.order) {
    if (!s.loops[l].is_reduce) continue;
    int64_t extent;
    if (!as_const_int(short_form(extent_of(in, l)), &extent)) return {};
    step = step * Expr(extent) + (in.value[l].get() ? in.value[l] : Expr(0));
    steps *= extent;
  }
  const Expr from = first_read(first, producer), to = first_read(second, producer);
  if (from.get() == nullptr || to.get() == nullptr) return {};
  const Load& place = *from.as<Load>();
  const Expr a = linear_index(place), b = linear_index(*to.as<Load>());
  int64_t stride;
  if (a.get() == nullptr || b.get() == nullptr || !as_const_int(short_form(b - a), &stride) || stride < 1) return {};

  // A line after another; a power of two of steps for each, so that no division stays in the loop.
  constexpr int64_t kLineBytes = 64;
  const int64_t line = kLineBytes / place.dtype.bytes();
  const int64_t lines = (steps * stride + line - 1) / line, each = (lines + shares - 1) / shares;
  const int64_t per_step = (each + steps - 1) / steps;
  const int64_t pause = per_step > 1 ? 1 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(steps / each)));
  const Expr number = share * Expr(each) + floor_div(step, Expr(pause)) * Expr(per_step);
  std::vector<Stmt> stmts;
  for (int64_t k = 0; k < per_step; ++k) {
    std::vector<Expr> indices(place.indices.begin(), place.indices.end());
    indices.back() = short_form(indices.back() + Expr(steps * stride) + (number + Expr(k)) * Expr(line));
    stmts.push_back(prefetch_of(Load::make(place.buffer, indices), kSecondCache));
  }
  return stmts;
}

}  // namespace tensmith
