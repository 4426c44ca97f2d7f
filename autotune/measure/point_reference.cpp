#include "autotune/measure/point_reference.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "runtime/base/error.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// First and last index of each dim, both included.
using Box = std::vector<std::pair<int64_t, int64_t>>;

Box whole(const Buffer& buffer) {
  Box box;
  for (const Expr& extent : buffer->shape) {
    int64_t value = 1;
    TS_CHECK(as_const_int(extent, &value)) << buffer->name;
    box.emplace_back(0, value - 1);
  }
  return box;
}

void widen(std::optional<Box>& box, const Box& by) {
  if (!box) {
    box = by;
    return;
  }
  for (size_t d = 0; d < by.size(); ++d) {
    (*box)[d].first = std::min((*box)[d].first, by[d].first);
    (*box)[d].second = std::max((*box)[d].second, by[d].second);
  }
}

/// What all loads of an expression read when the variables run over their ranges.
void add_reads(const Expr& root, const Facts& facts, std::unordered_map<const BufferNode*, std::optional<Box>>& boxes) {
  if (root.get() == nullptr) return;
  visit(root, [&](const Expr& e) {
    const auto* load = e.as<Load>();
    if (!load) return true;
    Box read = whole(load->buffer);
    for (size_t d = 0; d < read.size() && load->indices.size() == read.size(); ++d) {
      const VarFacts bounds = constant_bounds(load->indices[d], facts);
      if (bounds.lo) read[d].first = std::clamp(*bounds.lo, read[d].first, read[d].second);
      if (bounds.hi) read[d].second = std::clamp(*bounds.hi, read[d].first, read[d].second);
    }
    widen(boxes[load->buffer.get()], read);
    return true;
  });
}

/// Runs the loops over the axes of some stages over a part of their range.
class Restrict : public Mutator {
 public:
  std::unordered_map<const VarNode*, std::pair<int64_t, int64_t>> ranges;
  using Mutator::mutate;
  Stmt mutate(const Stmt& s) override {
    const Stmt inner = mutate_children(s);
    const auto* loop = inner.as<For>();
    const auto it = loop ? ranges.find(loop->var.operator->()) : ranges.end();
    if (it == ranges.end()) return inner;
    const auto [first, last] = it->second;
    return For::make(loop->var, first, last - first + 1, loop->for_kind, loop->body, loop->attrs);
  }
};

}  // namespace

PointReference::PointReference(const Workload& workload, std::vector<InterpValue> inputs, int64_t max_steps)
    : workload_(workload), inputs_(std::move(inputs)), max_steps_(max_steps), loops_(reference_loops(workload)) {}

Result<InterpValue> PointReference::element(size_t output, int64_t element) {
  std::unordered_map<const BufferNode*, std::optional<Box>> boxes;
  const Buffer& wanted = workload_.outputs[output].buffer();
  Box point = whole(wanted);
  int64_t rest = element;
  for (size_t d = point.size(); d-- > 0;) {
    const int64_t extent = point[d].second + 1;
    point[d] = {rest % extent, rest % extent};
    rest /= extent;
  }
  widen(boxes[wanted.get()], point);
  Restrict restrict;
  for (size_t k = workload_.stages.size(); k-- > 0;) {
    const StageNode& stage = *workload_.stages[k];
    if (stage.stage_kind == StageKind::kPlaceholder) continue;
    if (stage.stage_kind == StageKind::kImperative) {
      for (const Buffer& read : stage.reads) boxes[read.get()] = whole(read);
      continue;
    }
    std::optional<Box> box;
    for (const Buffer& made : stage.outputs)
      if (const auto it = boxes.find(made.get()); it != boxes.end() && it->second) widen(box, *it->second);
    Facts facts;
    for (size_t d = 0; d < stage.axes.size(); ++d) {
      // A stage that nobody reads runs zero times.
      const std::pair<int64_t, int64_t> range = box ? (*box)[d] : std::pair<int64_t, int64_t>{0, -1};
      restrict.ranges[stage.axes[d].var.operator->()] = range;
      facts.set(stage.axes[d].var, VarFacts{range.first, range.second});
    }
    if (!box) continue;
    for (const Axis& axis : stage.reduce_axes) {
      int64_t extent = 1;
      if (as_const_int(axis.extent, &extent)) facts.set(axis.var, VarFacts{0, extent - 1});
    }
    for (const Expr& body : stage.bodies) add_reads(body, facts, boxes);
    for (const Expr& initial : stage.initial) add_reads(initial, facts, boxes);
    add_reads(stage.where, facts, boxes);
  }
  LoopFunction f = loops_;
  f.body = restrict.mutate(f.body);
  std::vector<InterpValue> results;
  for (const Buffer& buffer : f.outputs) {
    int64_t count = 1;
    for (const auto& [first, last] : whole(buffer)) count *= last - first + 1;
    results.push_back(make_interp_value(buffer->dtype, count));
  }
  std::vector<InterpValue*> buffers;
  for (InterpValue& value : inputs_) buffers.push_back(&value);
  for (InterpValue& value : results) buffers.push_back(&value);
  if (Result<void> ran = interpret(f, buffers, {}, InterpFloat::kExact, max_steps_); !ran) return ran.failure();
  InterpValue one{wanted->dtype, {}, {}};
  if (wanted->dtype.is_float()) one.f = {results[output].f[static_cast<size_t>(element)]};
  else one.i = {results[output].i[static_cast<size_t>(element)]};
  return one;
}

}  // namespace tensmith
