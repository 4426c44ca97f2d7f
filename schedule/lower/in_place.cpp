#include "schedule/lower/in_place.h"

#include <algorithm>

#include "schedule/lower/inline_stages.h"
#include "tensor/equal_hash.h"
#include "tensor/may_overlap.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// Buffers with a bit in kMayOverlap.
constexpr size_t kMarkable = 62;

/// How a stage reads a buffer.
enum class Reading { kNone, kOwnElement, kOther };

Reading reading_of(const StageNode& stage, const BufferNode* buffer) {
  Reading reading = Reading::kNone;
  const auto look = [&](const Expr& root) {
    if (root.get() == nullptr) return;
    visit(root, [&](const Expr& e) {
      const auto* load = e.as<Load>();
      if (!load || load->buffer.get() != buffer) return true;
      bool own = load->indices.size() == stage.axes.size();
      for (size_t d = 0; own && d < stage.axes.size(); ++d) {
        // A dim of one element has index 0, however it is written.
        int64_t extent;
        const bool single = as_const_int(stage.axes[d].extent, &extent) && extent == 1;
        own = load->indices[d].get() == stage.axes[d].var.get() || (single && is_const_int(load->indices[d], 0));
      }
      if (!own) reading = Reading::kOther;
      else if (reading == Reading::kNone) reading = Reading::kOwnElement;
      return true;
    });
  };
  for (const Expr& body : stage.bodies) look(body);
  for (const Expr& initial : stage.initial) look(initial);
  look(stage.where);
  for (const Buffer& read : stage.reads)
    if (read.get() == buffer) reading = Reading::kOther;
  return reading;
}

/// Whether the loops of the stage store each element of its output once, as soon as it is computed.
bool stores_once(const StageState& s) {
  if (s.stage->stage_kind != StageKind::kCompute || s.stage->reducer || s.stage->outputs.size() != 1 ||
      s.attach != AttachKind::kRoot)
    return false;
  return std::none_of(s.relations.begin(), s.relations.end(), [](const LoopRelation& r) {
    return r.kind == LoopRelation::Kind::kSplit && (r.tail == Tail::kShiftInwards || r.tail == Tail::kPad);
  });
}

bool same_place(const StageState& a, const StageState& b) {
  const Buffer &x = a.stage->outputs[0], &y = b.stage->outputs[0];
  if (x->dtype != y->dtype || x->shape.size() != y->shape.size() || !(a.layout_of(0) == b.layout_of(0)) ||
      a.align_elements != b.align_elements)
    return false;
  for (size_t d = 0; d < x->shape.size(); ++d)
    if (!equal(x->shape[d], y->shape[d])) return false;
  return true;
}

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Schedule& schedule) {
  const ScheduleState state = with_inlined_stages(schedule.state());
  std::vector<InPlacePair> pairs;
  for (size_t k = 0; k < state.inputs.size(); ++k) {
    const StageState& input = state.stages[static_cast<size_t>(state.producer_of(state.inputs[k].get()))];
    if (input.stage->is_constant) continue;
    int reader = -1;
    bool suits = true;
    for (size_t s = 0; s < state.stages.size() && suits; ++s) {
      if (state.stages[s].attach == AttachKind::kInlined) continue;
      const Reading reading = reading_of(*state.stages[s].stage, state.inputs[k].get());
      if (reading == Reading::kNone) continue;
      suits = reading == Reading::kOwnElement && reader < 0;
      reader = static_cast<int>(s);
    }
    if (!suits || reader < 0 || !state.is_output(reader)) continue;
    const StageState& s = state.stages[static_cast<size_t>(reader)];
    if (!stores_once(s) || !same_place(input, s)) continue;
    const auto output = std::find_if(state.outputs.begin(), state.outputs.end(),
                                     [&](const Buffer& b) { return b.same_as(s.stage->outputs[0]); });
    const InPlacePair pair{static_cast<int>(k), static_cast<int>(output - state.outputs.begin())};
    // The code generator cannot be told of later buffers, and would take them to overlap nothing.
    if (std::max(k, state.inputs.size() + static_cast<size_t>(pair.output)) >= kMarkable) continue;
    if (std::none_of(pairs.begin(), pairs.end(), [&](const InPlacePair& p) { return p.output == pair.output; }))
      pairs.push_back(pair);
  }
  return pairs;
}

void mark_in_place(LoweredKernel& kernel, const std::vector<InPlacePair>& pairs) {
  int64_t mask = 0;
  for (const InPlacePair& pair : pairs)
    for (int buffer : {pair.input, kernel.num_inputs + pair.output}) {
      TS_CHECK(buffer >= 0 && buffer < static_cast<int>(kMarkable)) << kernel.function.name << " buffer " << buffer;
      mask |= int64_t{1} << buffer;
    }
  if (mask != 0) kernel.function.attrs[kMayOverlap] = mask;
}

}  // namespace tensmith
