#include "schedule/state.h"

#include <algorithm>
#include <sstream>

#include "tensor/print.h"
#include "tensor/text_words.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {
constexpr const char* kTails[] = {"guard", "peel", "shift", "pad"};

std::string attrs_text(const Attrs& attrs) {
  std::string text;
  for (const auto& [key, value] : attrs) text += (text.empty() ? " @(" : ", ") + key + " = " + std::to_string(value);
  return text.empty() ? text : text + ")";
}
}  // namespace

const char* to_string(Tail tail) { return kTails[static_cast<int>(tail)]; }

Result<Tail> parse_tail(std::string_view text) {
  for (int k = 0; k < 4; ++k)
    if (text == kTails[k]) return static_cast<Tail>(k);
  return Failure{"bad-tail", "tail: expected guard, peel, shift or pad, got '" + std::string(text) + "'"};
}

int StageState::find_loop(const std::string& loop_name) const {
  for (int loop : order)
    if (loops[loop].name == loop_name) return loop;
  return -1;
}

int StageState::order_position(int loop) const {
  const auto it = std::find(order.begin(), order.end(), loop);
  return it == order.end() ? -1 : static_cast<int>(it - order.begin());
}

int StageState::init_position() const {
  // An intrinsic only adds to what is there, so the start values of all its lanes come before it.
  const auto it = std::find_if(order.begin(), order.end(), [&](int loop) {
    return loop == init_loop || loop == intrinsic_loop || loops[loop].is_reduce;
  });
  return static_cast<int>(it - order.begin());
}

const LoopRelation* StageState::consumer_of(int loop) const {
  for (const LoopRelation& r : relations) {
    if (r.kind == LoopRelation::Kind::kSplit && r.whole == loop) return &r;
    if (r.kind == LoopRelation::Kind::kFuse && (r.outer == loop || r.inner == loop)) return &r;
  }
  return nullptr;
}

const LoopRelation* StageState::maker_of(int loop) const {
  for (const LoopRelation& r : relations) {
    if (r.kind == LoopRelation::Kind::kSplit && (r.outer == loop || r.inner == loop)) return &r;
    if (r.kind == LoopRelation::Kind::kFuse && r.whole == loop) return &r;
  }
  return nullptr;
}

bool StageState::comes_from(int loop, int ancestor) const {
  if (loop == ancestor) return true;
  const LoopRelation* made = maker_of(loop);
  if (!made) return false;
  if (made->kind == LoopRelation::Kind::kSplit) return comes_from(made->whole, ancestor);
  return comes_from(made->outer, ancestor) || comes_from(made->inner, ancestor);
}

Layout StageState::layout_of(int output) const {
  const int rank = static_cast<int>(stage->outputs[output]->shape.size());
  return layouts[output].dims().empty() ? Layout::row_major(rank) : layouts[output];
}

StageState* ScheduleState::find(const std::string& stage_name) {
  for (StageState& s : stages)
    if (s.name == stage_name) return &s;
  return nullptr;
}

const StageState* ScheduleState::find(const std::string& stage_name) const {
  return const_cast<ScheduleState*>(this)->find(stage_name);
}

int ScheduleState::producer_of(const BufferNode* buffer) const {
  for (size_t k = 0; k < stages.size(); ++k)
    for (const Buffer& output : stages[k].stage->outputs)
      if (output.get() == buffer) return static_cast<int>(k);
  return -1;
}

std::vector<int> ScheduleState::consumers_of(int index) const {
  std::vector<int> found;
  for (size_t k = 0; k < stages.size(); ++k) {
    const std::vector<Buffer> reads = read_buffers(*stages[k].stage);
    const bool uses =
        std::any_of(reads.begin(), reads.end(), [&](const Buffer& b) { return producer_of(b.get()) == index; });
    if (uses && static_cast<int>(k) != index) found.push_back(static_cast<int>(k));
  }
  return found;
}

bool ScheduleState::is_output(int index) const {
  for (const Buffer& output : outputs)
    for (const Buffer& own : stages[index].stage->outputs)
      if (own.same_as(output)) return true;
  return false;
}

std::string ScheduleState::unique_name(const std::string& base) const {
  if (!find(base)) return base;
  for (int k = 1;; ++k)
    if (std::string name = base + "_" + std::to_string(k); !find(name)) return name;
}

StageState fresh_stage(const Stage& stage, const std::string& name) {
  StageState s;
  s.name = name;
  s.stage = stage;
  if (stage->stage_kind == StageKind::kCompute) {
    for (const Axis& axis : stage->axes) {
      s.axis_loops.push_back(static_cast<int>(s.loops.size()));
      s.loops.push_back({axis.var.name()});
    }
    for (const Axis& axis : stage->reduce_axes) {
      s.reduce_loops.push_back(static_cast<int>(s.loops.size()));
      s.loops.push_back({axis.var.name(), /*is_reduce=*/true});
    }
  }
  for (size_t k = 0; k < s.loops.size(); ++k) s.order.push_back(static_cast<int>(k));
  s.layouts.resize(stage->outputs.size());
  return s;
}

ScheduleState initial_state(const Workload& workload) {
  ScheduleState state;
  state.name = workload.name;
  state.dims = workload.dims;
  for (const Stage& stage : workload.stages) {
    std::string name = state.unique_name(stage->name);
    // A word of the text form gets the name that the text gives it, so that steps fit the workload that is read back.
    for (int k = 1; text::is_reserved(stage->name) && (k == 1 || state.find(name)); ++k)
      name = stage->name + "_" + std::to_string(k);
    state.stages.push_back(fresh_stage(stage, name));
  }
  for (const Tensor& input : workload.inputs) state.inputs.push_back(input.buffer());
  for (const Tensor& output : workload.outputs) state.outputs.push_back(output.buffer());
  return state;
}

Stage rebuild_stage(const Stage& stage, const std::function<void(StageNode&)>& edit) {
  auto* node = new StageNode;
  const Stage keep(node);
  node->stage_kind = stage->stage_kind;
  node->name = stage->name;
  node->outputs = stage->outputs;
  node->axes = stage->axes;
  node->reduce_axes = stage->reduce_axes;
  node->bodies = stage->bodies;
  node->reducer = stage->reducer;
  node->where = stage->where;
  node->initial = stage->initial;
  node->imperative = stage->imperative;
  node->reads = stage->reads;
  node->producers = stage->producers;
  node->is_constant = stage->is_constant;
  edit(*node);
  return keep;
}

std::string loop_nest_text(const ScheduleState& state, const std::string& marked) {
  std::ostringstream text;
  for (const StageState& s : state.stages) {
    if (s.stage->stage_kind == StageKind::kPlaceholder || s.attach == AttachKind::kInlined) continue;
    text << "stage " << s.name;
    if (s.attach == AttachKind::kAt) text << " at " << s.attach_stage << "." << s.attach_loop;
    static constexpr const char* kWindows[] = {"", ", rolling", ", pipelined"};
    text << kWindows[static_cast<int>(s.window)] << attrs_text(s.notes) << "\n";
    for (const auto& [read, notes] : s.access_notes) text << "  reads " << read << attrs_text(notes) << "\n";
    std::string indent = "  ";
    for (int loop : s.order) {
      const LoopVar& l = s.loops[loop];
      static constexpr const char* kKinds[] = {"for", "parallel", "vectorized", "unrolled"};
      const bool mark = s.name + "." + l.name == marked;
      text << (mark ? "->" : "  ") << indent.substr(2) << kKinds[static_cast<int>(l.kind)] << " " << l.name
           << (l.is_reduce ? " (reduce)" : "") << attrs_text(l.attrs);
      for (const Prefetch& p : l.prefetches) {
        text << " prefetch " << p.producer;
        if (p.distance > 0) text << " +" << p.distance;
        else text << " next, spread over " << p.spread_stage << "." << state.find(p.spread_stage)->loops[p.spread].name;
      }
      for (int64_t cut : l.cuts) text << " | " << cut;
      text << (loop == s.intrinsic_loop ? " = " + s.intrinsic : "") << "\n";
      indent += "  ";
    }
  }
  return text.str();
}

}  // namespace tensmith
