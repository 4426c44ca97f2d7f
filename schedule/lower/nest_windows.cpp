// Stages whose storage lives on from one iteration of the loop that they are computed at to the next.
#include <set>

#include "schedule/lower/nest_builder.h"
#include "tensor/equal_hash.h"

namespace tensmith {

void NestBuilder::refuse_window(int index, const std::string& why) const {
  const StageState& s = stage(index);
  throw ScheduleError("window-illegal", "schedule " + state_.name + ": stage " + s.name +
                                            " keeps its storage from one iteration of " + s.attach_stage + "." +
                                            s.attach_loop + " to the next, but " + why + "\n" +
                                            loop_nest_text(state_, s.attach_stage + "." + s.attach_loop));
}

WindowFrame* NestBuilder::frame_of(int index, int loop) {
  return !frames_.empty() && frames_.back().stage == index && frames_.back().loop == loop ? &frames_.back() : nullptr;
}

Stmt NestBuilder::with_frame(const NestInstance& in, int loop, const std::function<Stmt()>& emit) {
  bool any = false;
  for (int index : attached_at(in.stage, loop)) any |= stage(index).window != Window::kNone;
  if (!any) return emit();
  frames_.push_back({in.stage, loop, {}, {}, {}});
  Stmt body = emit();
  for (const Buffer& buffer : frames_.back().buffers) body = Allocate::make(buffer, body);
  frames_.pop_back();
  return body;
}

NestInstance NestBuilder::at_turn(const NestInstance& in, int loop, const Expr& turn) const {
  NestInstance other = in;
  other.value[loop] = turn;
  // Whether a piece is the last one depends on the turn, also where the loop is itself a part of the one that was cut.
  const std::vector<LoopRelation>& relations = stage(in.stage).relations;
  std::set<int> moved{loop};
  for (size_t before = 0; before != moved.size();) {
    before = moved.size();
    for (const LoopRelation& r : relations) {
      if (r.kind == LoopRelation::Kind::kSplit && (moved.count(r.outer) || moved.count(r.inner))) moved.insert(r.whole);
      if (r.kind == LoopRelation::Kind::kFuse && moved.count(r.whole)) moved.insert({r.outer, r.inner});
    }
  }
  for (const int part : moved)
    if (part != loop) other.value[part] = Expr();  // follows from the turn again
  for (const LoopRelation& r : relations) {
    if (r.kind != LoopRelation::Kind::kSplit || r.tail != Tail::kPeel || !moved.count(r.outer)) continue;
    other.decided.insert(&r);
    other.guarded.insert(&r);
    other.inner_extent.erase(r.inner);
  }
  return other;
}

void NestBuilder::allocate_attached(const NestInstance& in, int loop, const std::map<int, Region>& regions,
                                    std::vector<Buffer>* buffers) {
  for (const auto& [index, region] : regions) {
    WindowFrame* frame = frame_of(in.stage, loop);
    if (frame && stage(index).window == Window::kRolling) {
      allocate_rolling(in, *frame, index);
      continue;
    }
    if (frame && stage(index).window == Window::kPipelined) {
      allocate_slots(in, *frame, index);
      continue;
    }
    for (size_t o = 0; o < stage(index).stage->outputs.size(); ++o) {
      const Buffer& logical = stage(index).stage->outputs[o];
      if (output_buffers_.count(logical.get())) continue;
      storage_[logical.get()] = allocate_for(index, static_cast<int>(o), region, /*at_root=*/false);
      buffers->push_back(storage_[logical.get()].buffer);
    }
  }
}

std::pair<Region, Region> NestBuilder::regions_of_any_turn(const NestInstance& in, int loop, int index) {
  // Of a variable of its own: the piece at hand may be a single iteration, whose numbers say nothing of the others.
  const Facts saved = facts_;
  const Var turn(stage(in.stage).loops[loop].name);
  facts_.set_range(turn, Expr(0), extent_of(at_turn(in, loop, turn), loop));
  NestInstance now = at_turn(in, loop, turn), before = at_turn(in, loop, Expr(turn) - 1);
  std::map<int, Region> known, known_before;
  std::pair<Region, Region> result{region_of(index, now, known), region_of(index, before, known_before)};
  facts_ = saved;
  return result;
}

void NestBuilder::allocate_rolling(const NestInstance& in, WindowFrame& frame, int index) {
  const StageState& s = stage(index);
  if (!frame.moving.count(index)) {
    // Where the window stood one iteration before tells along which dim it moves.
    const auto [whole, last] = regions_of_any_turn(in, frame.loop, index);
    if (whole.min.empty()) refuse_window(index, "it is a single value, which moves nowhere; leave it as it is");
    int moving = -1;
    for (size_t d = 0; d < whole.min.size(); ++d) {
      if (equal(whole.min[d], last.min[d]) && equal(whole.extent[d], last.extent[d])) continue;
      if (moving >= 0)
        refuse_window(index, "what is needed moves in dims " + std::to_string(moving) + " and " + std::to_string(d) +
                                 " at once; compute it at a loop that moves it in one");
      moving = static_cast<int>(d);
    }
    // When nothing moves, everything is computed in the first iteration.
    frame.moving[index] = moving < 0 ? 0 : static_cast<size_t>(moving);
    for (size_t o = 0; o < s.stage->outputs.size(); ++o) {
      const Storage storage =
          allocate_for(index, static_cast<int>(o), whole, /*at_root=*/false, static_cast<int>(frame.moving[index]));
      frame.storage[s.stage->outputs[o].get()] = storage;
      frame.buffers.push_back(storage.buffer);
    }
  }
  for (const Buffer& output : s.stage->outputs) storage_[output.get()] = frame.storage.at(output.get());
}

Region NestBuilder::fresh_part(const NestInstance& in, const WindowFrame& frame, int index, const Region& region) {
  NestInstance before = at_turn(in, frame.loop, short_form(in.value[frame.loop] - 1));
  std::map<int, Region> known;
  const Region last = region_of(index, before, known);
  const size_t d = frame.moving.at(index);
  const Expr end = region.min[d] + region.extent[d], last_end = last.min[d] + last.extent[d];
  if (!can_prove(last.min[d] <= region.min[d], facts_) || !can_prove(last_end <= end, facts_))
    refuse_window(index, "what is needed cannot be shown to move on in dim " + std::to_string(d) +
                             "; compute it at a loop along which it does");
  Region fresh = region;
  fresh.min[d] = last_end;
  if (!can_prove(region.min[d] <= last_end, facts_)) fresh.min[d] = max(last_end, region.min[d]);
  fresh.min[d] = short_form(fresh.min[d]);
  fresh.extent[d] = short_form(end - fresh.min[d]);
  if (!can_prove(fresh.extent[d] >= 0, facts_)) fresh.extent[d] = short_form(max(fresh.extent[d], Expr(0)));
  return fresh;
}

void NestBuilder::allocate_slots(const NestInstance& in, WindowFrame& frame, int index) {
  const StageState& s = stage(index);
  NestInstance now = at_turn(in, frame.loop, in.value[frame.loop]);
  std::map<int, Region> known;
  const Region region = region_of(index, now, known);
  for (size_t o = 0; o < s.stage->outputs.size(); ++o) {
    const BufferNode* logical = s.stage->outputs[o].get();
    if (!frame.storage.count(logical)) {
      const Region any = regions_of_any_turn(in, frame.loop, index).first;
      frame.storage[logical] = allocate_for(index, static_cast<int>(o), any, /*at_root=*/false, -1, s.slots);
      frame.buffers.push_back(frame.storage[logical].buffer);
    }
    Storage storage = frame.storage.at(logical);
    storage.origin = region.min;
    storage.slot = short_form(floor_mod(in.value[frame.loop], Expr(s.slots)));
    storage_[logical] = storage;
  }
}

Stmt NestBuilder::emit_ahead(const NestInstance& in, int loop, int index, const Expr& turn) {
  const StageState& s = stage(index);
  const Expr there = short_form(turn < extent_of(in, loop));
  if (is_const_int(there, 0)) return {};
  const Facts saved = facts_;
  if (!is_const_int(there, 1)) facts_.assume(there);
  NestInstance ahead = at_turn(in, loop, turn);
  std::map<int, Region> known;
  const Region region = region_of(index, ahead, known);
  const auto now = storage_;
  for (const Buffer& output : s.stage->outputs) {
    storage_[output.get()].origin = region.min;
    storage_[output.get()].slot = short_form(floor_mod(turn, Expr(s.slots)));
  }
  Stmt body = emit_stage(index, region);
  storage_ = now;
  facts_ = saved;
  return is_const_int(there, 1) ? body : If::make(there, body);
}

Stmt NestBuilder::emit_windows(const NestInstance& in, int loop, const std::map<int, Region>& regions) {
  WindowFrame* frame = frame_of(in.stage, loop);
  const Expr turn = in.value[loop];
  const auto variant = [&](bool first) {
    std::map<int, Region> needed;
    // Readers come behind what they read: what they need of it follows from what they compute themselves.
    for (auto it = regions.rbegin(); it != regions.rend(); ++it) {
      const auto& [index, whole] = *it;
      if (first || stage(index).window == Window::kRolling) {
        needed[index] = first ? whole : fresh_part(in, *frame, index, whole);
        continue;
      }
      NestInstance copy = in;
      region_of(index, copy, needed);
    }
    std::vector<Stmt> stmts;
    for (const auto& [index, region] : needed) {
      if (!regions.count(index)) continue;
      if (stage(index).window != Window::kPipelined) {
        stmts.push_back(emit_stage(index, region));
        continue;
      }
      const int64_t ahead = stage(index).slots - 1;
      if (first)
        for (int64_t k = 0; k < ahead; ++k) stmts.push_back(emit_ahead(in, loop, index, Expr(k)));
      stmts.push_back(emit_ahead(in, loop, index, short_form(turn + ahead)));
    }
    return Block::make(stmts);
  };
  const Expr is_first = short_form(turn < 1);
  if (is_const_int(is_first, 1)) return variant(/*first=*/true);
  if (is_const_int(is_first, 0)) return variant(/*first=*/false);
  Stmt parts[2];
  for (const bool first : {true, false}) {
    const Facts saved = facts_;
    facts_.assume(first ? turn < 1 : turn >= 1);
    parts[first ? 0 : 1] = variant(first);
    facts_ = saved;
  }
  return If::make(is_first, parts[0], parts[1]);
}

}  // namespace tensmith
