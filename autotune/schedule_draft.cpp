#include <algorithm>

#include "autotune/schedule_rules.h"
#include "schedule/lower/inline_stages.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

// Starting a parallel loop costs about a microsecond; less work than a few of those stays on the caller.
constexpr double kMinParallelCycles = 20000;
// A reader with so many places in a stage is a stencil over it.
constexpr int kManyPlaces = 4;
// Expressions whose copies together cost more than that are not put into their readers against the rule. Units:
// instructions.
constexpr int kMostCopied = 64;
// Nor into readers that have grown to so many nodes.
constexpr int64_t kLargestBody = 1 << 13;
// A symbolic extent is taken for this size when a choice has to be made.
constexpr int64_t kSymbolicExtent = 64;

/// Rough cost of evaluating an expression once. Units: instructions.
int cost_of(const Expr& e) {
  int cost = 0;
  visit(e, [&](const Expr& node) {
    if (const auto* c = node.as<Call>()) {
      switch (c->id) {
        case Intrinsic::kAbs:
        case Intrinsic::kSqrt:
        case Intrinsic::kFloor:
        case Intrinsic::kCeil:
        case Intrinsic::kTrunc:
        case Intrinsic::kRoundEven:
        case Intrinsic::kMinNum:
        case Intrinsic::kMaxNum: cost += 1; break;
        default: cost += 12;
      }
    } else if (const auto* b = node.as<Binary>()) {
      if (b->dtype.is_float()) cost += b->op == BinaryOp::kDiv ? 4 : 1;
    }
    return node.kind() != NodeKind::kLoad;
  });
  return cost;
}

/// Whether values are chosen along the innermost axis, where vectors run: by other axes it is decided once a row, and
/// what lies inside is peeled off.
bool chooses_by_lane(const StageNode& stage) {
  bool found = false;
  for (const Expr& body : stage.bodies)
    visit(body, [&](const Expr& node) {
      if (const auto* select = node.as<Select>())
        found |= stage.axes.empty() || uses_var(select->cond, stage.axes.back().var);
      return true;
    });
  return found;
}

}  // namespace

ScheduleDraft::ScheduleDraft(const Workload& workload, const ScheduleRequest& request, Chooser* chooser)
    : schedule(workload), request(request), threads(request.threads), chooser_(chooser) {
  const auto place = [&](const Tensor& tensor, const Layout& layout) {
    if (layout.dims().empty() || layout.is_row_major()) return;
    const int index = schedule.state().producer_of(tensor.buffer().get());
    schedule.transform_layout(schedule.state().stages[index].name, layout.text(), tensor.output());
  };
  for (size_t k = 0; k < workload.inputs.size() && k < request.input_layouts.size(); ++k)
    place(workload.inputs[k], request.input_layouts[k]);
  for (size_t k = 0; k < workload.outputs.size() && k < request.output_layouts.size(); ++k)
    place(workload.outputs[k], request.output_layouts[k]);
}

ChoiceValue ScheduleDraft::decide(Question&& question) {
  ChoicePoint point = std::move(question).point();
  if (point.options.size() == 1) return point.options[0].value;
  // Two rules that ask the same of a stage ask two things.
  const std::string what = point.what;
  const auto taken_name = [&] {
    return std::any_of(points.begin(), points.end(),
                       [&](const ChosenPoint& p) { return p.point.name() == point.name(); });
  };
  for (int number = 2; taken_name(); ++number) point.what = what + "_" + std::to_string(number);
  if (chooser_ && !chooser_->is_open(point)) return point.options[point.preferred].value;
  const size_t taken = chooser_ ? chooser_->choose(point) : point.preferred;
  TS_CHECK(taken < point.options.size()) << point.name() << ": a chooser took option " << taken;
  points.push_back({std::move(point), taken});
  return points.back().value();
}

bool ScheduleDraft::decide_yes(const std::string& stage, const std::string& what, bool preferred, double other) {
  Question question(stage, what);
  question.offer(int64_t{preferred}).offer(int64_t{!preferred}, other).prefer(int64_t{preferred});
  return decide_number(std::move(question)) != 0;
}

Stage ScheduleDraft::effective(const std::string& name) const {
  return with_inlined_stages(schedule.state()).find(name)->stage;
}

int64_t ScheduleDraft::size_of(const Expr& extent) {
  int64_t value;
  return as_const_int(extent, &value) ? value : kSymbolicExtent;
}

int64_t ScheduleDraft::extent_of(const StageState& s, int axis) const {
  const auto piece = pieces.find(s.name);
  return piece != pieces.end() ? piece->second[static_cast<size_t>(axis)]
                               : size_of(s.stage->axes[static_cast<size_t>(axis)].extent);
}

int ScheduleDraft::lanes_for(DType type) const {
  return std::max(1, target().lanes(std::max<int64_t>(type.bytes(), 4)));
}

std::vector<int> ScheduleDraft::storage_order(const StageState& s) const {
  std::vector<int> order(s.stage->axes.size());
  std::vector<int64_t> strides(order.size());
  for (size_t a = 0; a < order.size(); ++a) {
    order[a] = static_cast<int>(a);
    const int64_t extent = size_of(s.stage->axes[a].extent);
    strides[a] = extent == 1 ? INT64_MAX : store_stride_of(s, 0, s.stage->axes[a].var).value_or(INT64_MAX - 1);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] > strides[b]; });
  return order;
}

void ScheduleDraft::vectorize_loop(const std::string& name, const std::string& loop, const Expr& extent, int lanes) {
  constexpr int kVectors = 4;
  const int64_t size = size_of(extent);
  int64_t known;
  if (size <= 1 || (size <= lanes && !as_const_int(extent, &known))) return;
  const int usual = size >= kVectors * lanes ? kVectors : 1;
  Question question(name, "vectors");
  question.offer(int64_t{0}, 4);
  for (int vectors = 1; vectors == 1 || (vectors <= 8 && vectors * lanes <= size); vectors *= 2)
    question.offer(int64_t{vectors}, vectors < usual ? 1.2 : 1.1);
  const int64_t vectors = decide_number(std::move(question.prefer(int64_t{usual})));
  if (vectors == 0) return;
  if (vectors > 1) {
    schedule.split(name, loop, vectors * lanes, loop + ".o", loop + ".i");
    schedule.split(name, loop + ".i", lanes, loop + ".v", loop + ".l");
    schedule.unroll(name, loop + ".v");
    schedule.vectorize(name, loop + ".l");
  } else if (size > lanes) {
    schedule.split(name, loop, lanes, loop + ".o", loop + ".l");
    schedule.vectorize(name, loop + ".l");
  } else {
    // Where lanes can be masked, a whole register moves at once what is no power of two.
    int whole = 4;
    while (whole < size) whole *= 2;
    if (size > 2 && whole != size && whole <= lanes && target().has("avx2")) {
      schedule.split(name, loop, whole, loop + ".o", loop + ".l");
      schedule.vectorize(name, loop + ".l");
    } else {
      schedule.vectorize(name, loop);
    }
  }
}

std::string ScheduleDraft::parallelize(const std::string& name, const std::vector<std::string>& loops, double cycles) {
  if (loops.empty()) return {};
  if (threads <= 1) return loops.back();
  // Fewer loops mean fewer, larger pieces; work so small that starting the threads takes longer is not offered to them.
  Question question(name, "parallel");
  const bool worth = cycles >= kMinParallelCycles;
  question.offer(int64_t{0}, worth ? threads : 1);
  if (cycles >= kMinParallelCycles / 16)
    for (size_t count = 1; count <= loops.size(); ++count)
      question.offer(static_cast<int64_t>(count), 1 + 0.1 * static_cast<double>(loops.size() - count));
  const auto count = static_cast<size_t>(
      decide_number(std::move(question.prefer(worth ? static_cast<int64_t>(loops.size()) : int64_t{0}))));
  if (count == 0) return loops.back();
  std::string loop = loops[0];
  if (count > 1) {
    loop = "par";
    schedule.fuse(name, {loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(count)}, loop);
  }
  schedule.parallel(name, loop);
  return count == loops.size() ? loop : loops.back();
}

/// Whether the stage makes each element from one result of a reduction: it belongs behind that reduction's tile.
static bool is_epilogue(const ScheduleState& state, const StageNode& stage) {
  for (const TensorAccess& access : accesses_of(state, stage)) {
    if (!state.stages[static_cast<size_t>(access.producer)].stage->reducer) continue;
    bool each = access.indices.size() == stage.axes.size();
    for (const Expr& index : access.indices)
      each = each && (collect_vars(index).empty() || std::any_of(stage.axes.begin(), stage.axes.end(),
                                                                 [&](const Axis& a) { return is_var(index, a.var); }));
    if (each) return true;
  }
  return false;
}

void inline_cheap_stages(ScheduleDraft& draft) {
  // Consumers first: then the cost of what a stage would be copied into is known.
  for (size_t k = draft.schedule.state().stages.size(); k-- > 0;) {
    const ScheduleState initial = with_inlined_stages(draft.schedule.state());
    const StageState& s = initial.stages[k];
    if (s.stage->stage_kind != StageKind::kCompute || s.stage->reducer || initial.is_output(static_cast<int>(k)))
      continue;
    int cost = 0;
    for (const Expr& body : s.stage->bodies) cost += cost_of(body);
    std::vector<int> users;
    for (int user : initial.consumers_of(static_cast<int>(k)))
      if (initial.stages[user].attach != AttachKind::kInlined) users.push_back(user);
    bool reused = false, statements = false, spread = false;
    int most_places = 1;
    int64_t nodes = 0;
    for (int user : users) {
      const StageNode& u = *initial.stages[user].stage;
      statements |= u.stage_kind == StageKind::kImperative;
      for (const Expr& body : u.bodies) visit(body, [&](const Expr&) { return ++nodes <= kLargestBody; });
      int places = 0;
      for (const TensorAccess& access : accesses_of(initial, u)) places += access.producer == static_cast<int>(k);
      spread |= places >= kManyPlaces;
      most_places = std::max(most_places, places);
      if (!u.reducer) continue;
      // An axis that the read does not use means that the same element is wanted again for each of its values.
      for (const TensorAccess& access : accesses_of(initial, u)) {
        if (access.producer != static_cast<int>(k)) continue;
        for (const Axis& axis : u.axes) {
          bool used = ScheduleDraft::size_of(axis.extent) == 1;
          for (const Expr& index : access.indices) used = used || uses_var(index, axis.var);
          reused |= !used;
        }
      }
    }
    if (statements) continue;
    const bool cheap = cost <= 2;
    bool worth = cheap ? (cost == 0 || !reused) : (users.size() == 1 && !reused);
    // A stencil would evaluate what it reads once for each of its places.
    if (spread && (cost > 0 || chooses_by_lane(*s.stage))) worth = false;
    // In front of another reduction it is the epilogue of its own.
    if (cost > 0 && is_epilogue(initial, *s.stage) && std::any_of(users.begin(), users.end(), [&](int user) {
          return initial.stages[user].stage->reducer.has_value();
        }))
      worth = false;
    // What would grow beyond bounds is not offered (each squaring of a chain doubles its reader); what is evaluated
    // again and again should be cheap.
    if (nodes > kLargestBody || (!worth && (cost + 1) * most_places > kMostCopied)) continue;
    const double again = reused || spread ? 2.0 + cost : 1.2;
    if (draft.decide_yes(s.name, "inline", worth, worth ? 1.5 : again)) draft.schedule.compute_inline(s.name);
  }
}

std::vector<std::string> readers_of(const ScheduleDraft& draft, const std::string& name) {
  const ScheduleState state = with_inlined_stages(draft.schedule.state());
  std::vector<std::string> readers;
  for (const int user : state.consumers_of(draft.index_of(name)))
    if (const StageState& s = state.stages[static_cast<size_t>(user)]; s.attach != AttachKind::kInlined)
      readers.push_back(s.name);
  return readers;
}

std::vector<std::string> cone_of(const ScheduleDraft& draft, const std::string& root,
                                 const std::vector<std::string>& roots) {
  const ScheduleState state = with_inlined_stages(draft.schedule.state());
  const auto is_root = [&](const std::string& name) {
    return std::find(roots.begin(), roots.end(), name) != roots.end();
  };
  std::vector<std::string> cone;
  // Consumers first: a stage belongs to the cone when all its readers do.
  for (size_t k = state.stages.size(); k-- > 0;) {
    const StageState& s = state.stages[k];
    if (s.stage->stage_kind != StageKind::kCompute || s.attach == AttachKind::kInlined || s.name == root ||
        is_root(s.name))
      continue;
    const std::vector<int> users = state.consumers_of(static_cast<int>(k));
    bool inside = false, outside = false;
    for (int user : users) {
      const StageState& u = state.stages[user];
      if (u.attach == AttachKind::kInlined) continue;
      const bool in = u.name == root || std::find(cone.begin(), cone.end(), u.name) != cone.end();
      (in ? inside : outside) = true;
    }
    if (inside && !outside) cone.push_back(s.name);
  }
  std::reverse(cone.begin(), cone.end());
  return cone;
}

}  // namespace tensmith
