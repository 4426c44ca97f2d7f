#include "tensor/workload.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/error.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

Reducer simple_reducer(std::string name, DType dtype, BinaryOp op, Expr identity) {
  Var lhs("a", dtype), rhs("b", dtype);
  return Reducer{std::move(name), {lhs}, {rhs}, {Binary::make(op, lhs, rhs)}, {std::move(identity)}};
}

Reducer arg_reducer(std::string name, DType value, DType index, BinaryOp better, bool last_index, Expr identity) {
  Var lv("av", value), li("ai", index), rv("bv", value), ri("bi", index);
  // NaN counts as better than any number, as in ONNX's reference (numpy). An index below 0 marks the identity.
  Expr takes = Binary::make(better, rv, lv);
  Expr ties = Expr(rv) == Expr(lv);
  if (value.is_float()) {
    Expr lnan = call(Intrinsic::kIsNan, {lv}), rnan = call(Intrinsic::kIsNan, {rv});
    takes = takes || (rnan && logical_not(lnan));
    ties = ties || (rnan && lnan);
  }
  Expr earlier = last_index ? Binary::make(BinaryOp::kGT, ri, li) : Binary::make(BinaryOp::kLT, ri, li);
  Expr zero = make_zero(index);
  Expr take =
      Binary::make(BinaryOp::kGE, ri, zero) && (Binary::make(BinaryOp::kLT, li, zero) || takes || (ties && earlier));
  return Reducer{std::move(name),
                 {lv, li},
                 {rv, ri},
                 {select(take, rv, lv), select(take, ri, li)},
                 {std::move(identity), make_const_int(index, -1)}};
}

std::vector<Axis> make_axes(const std::vector<Expr>& extents, const char* prefix) {
  std::vector<Axis> axes;
  for (size_t k = 0; k < extents.size(); ++k) axes.push_back({Var(prefix + std::to_string(k)), extents[k]});
  return axes;
}

Indices vars_of(const std::vector<Axis>& axes) {
  Indices vars;
  for (const Axis& axis : axes) vars.push_back(axis.var);
  return vars;
}

/// Ties a finished stage to its outputs and to the stages that it reads.
std::vector<Tensor> finish(StageNode* raw) {
  const Stage stage(raw);
  for (const Buffer& buffer : raw->outputs) buffer->stage = raw;
  for (const Buffer& buffer : read_buffers(*raw)) {
    TS_CHECK(buffer->stage) << raw->name << " reads " << buffer->name << ", whose stage is gone";
    const Stage producer(buffer->stage);
    const auto same = [&](const Stage& s) { return s.same_as(producer); };
    if (std::none_of(raw->producers.begin(), raw->producers.end(), same)) raw->producers.push_back(producer);
  }
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < raw->outputs.size(); ++k) tensors.emplace_back(stage, static_cast<int>(k));
  return tensors;
}

std::string output_name(const std::string& name, size_t index, size_t count) {
  return count == 1 ? name : name + "_" + std::to_string(index);
}

}  // namespace

StageNode::~StageNode() {
  for (const Buffer& buffer : outputs)
    if (buffer->stage == this) buffer->stage = nullptr;
}

Reducer sum_reducer(DType dtype) { return simple_reducer("sum", dtype, BinaryOp::kAdd, make_zero(dtype)); }
Reducer prod_reducer(DType dtype) { return simple_reducer("prod", dtype, BinaryOp::kMul, make_const_int(dtype, 1)); }
Reducer max_reducer(DType dtype) { return simple_reducer("max", dtype, BinaryOp::kMax, min_value(dtype)); }
Reducer min_reducer(DType dtype) { return simple_reducer("min", dtype, BinaryOp::kMin, max_value(dtype)); }
Reducer any_reducer() { return simple_reducer("any", kBool, BinaryOp::kOr, make_bool(false)); }
Reducer all_reducer() { return simple_reducer("all", kBool, BinaryOp::kAnd, make_bool(true)); }
Reducer arg_max_reducer(DType value, DType index, bool last_index) {
  return arg_reducer("arg_max", value, index, BinaryOp::kGT, last_index, min_value(value));
}
Reducer arg_min_reducer(DType value, DType index, bool last_index) {
  return arg_reducer("arg_min", value, index, BinaryOp::kLT, last_index, max_value(value));
}

Tensor placeholder(std::string name, std::vector<Expr> shape, DType dtype, bool is_constant) {
  auto* stage = new StageNode;
  stage->stage_kind = StageKind::kPlaceholder;
  stage->outputs = {make_buffer(name, dtype, shape)};
  stage->name = std::move(name);
  stage->axes = make_axes(shape, "i");
  stage->is_constant = is_constant;
  return finish(stage)[0];
}

std::vector<Tensor> compute_multi(std::string name, std::vector<Expr> shape,
                                  const std::function<std::vector<Expr>(const Indices&)>& body) {
  auto* stage = new StageNode;
  const Stage keep(stage);  // the body may throw
  stage->stage_kind = StageKind::kCompute;
  stage->axes = make_axes(shape, "i");
  stage->bodies = body(vars_of(stage->axes));
  for (size_t k = 0; k < stage->bodies.size(); ++k)
    stage->outputs.push_back(make_buffer(output_name(name, k, stage->bodies.size()), stage->bodies[k].dtype(), shape));
  stage->name = std::move(name);
  return finish(stage);
}

Tensor compute(std::string name, std::vector<Expr> shape, const std::function<Expr(const Indices&)>& body) {
  return compute_multi(std::move(name), std::move(shape),
                       [&](const Indices& i) { return std::vector<Expr>{body(i)}; })[0];
}

std::vector<Tensor> reduce_multi(std::string name, std::vector<Expr> shape, const Reduction& reduction) {
  auto* stage = new StageNode;
  const Stage keep(stage);  // the body may throw
  stage->stage_kind = StageKind::kCompute;
  stage->axes = make_axes(shape, "i");
  stage->reduce_axes = make_axes(reduction.extents, "r");
  const Indices i = vars_of(stage->axes), r = vars_of(stage->reduce_axes);
  stage->bodies = reduction.body(i, r);
  stage->reducer = reduction.reducer;
  TS_CHECK(stage->bodies.size() == reduction.reducer.identity.size()) << name;
  if (reduction.where) stage->where = reduction.where(i, r);
  if (reduction.initial) stage->initial = reduction.initial(i);
  for (size_t k = 0; k < stage->bodies.size(); ++k) {
    TS_CHECK(stage->bodies[k].dtype() == reduction.reducer.identity[k].dtype())
        << name << ": body of " << to_string(stage->bodies[k].dtype()) << ", reducer of "
        << to_string(reduction.reducer.identity[k].dtype());
    stage->outputs.push_back(make_buffer(output_name(name, k, stage->bodies.size()), stage->bodies[k].dtype(), shape));
  }
  stage->name = std::move(name);
  return finish(stage);
}

Tensor reduce(std::string name, std::vector<Expr> shape, std::vector<Expr> extents, const Reducer& reducer,
              const std::function<Expr(const Indices&, const Indices&)>& body,
              const std::function<Expr(const Indices&, const Indices&)>& where) {
  Reduction reduction{std::move(extents),
                      [&](const Indices& i, const Indices& r) { return std::vector<Expr>{body(i, r)}; }, reducer,
                      where};
  return reduce_multi(std::move(name), std::move(shape), reduction)[0];
}

Tensor sum(std::string name, std::vector<Expr> shape, std::vector<Expr> extents,
           const std::function<Expr(const Indices&, const Indices&)>& body) {
  // The dtype of the sum is that of the body, which is only known after building it once; axes of this trial are
  // discarded.
  const DType dtype = body(vars_of(make_axes(shape, "i")), vars_of(make_axes(extents, "r"))).dtype();
  return reduce(std::move(name), std::move(shape), std::move(extents), sum_reducer(dtype), body);
}

std::vector<Tensor> imperative(std::string name, const std::vector<Tensor>& inputs,
                               const std::vector<std::vector<Expr>>& shapes, const std::vector<DType>& dtypes,
                               const std::function<Stmt(const std::vector<Buffer>&)>& body) {
  auto* stage = new StageNode;
  const Stage keep(stage);  // the body may throw
  stage->stage_kind = StageKind::kImperative;
  for (size_t k = 0; k < shapes.size(); ++k)
    stage->outputs.push_back(make_buffer(output_name(name, k, shapes.size()), dtypes[k], shapes[k]));
  for (const Tensor& input : inputs) stage->reads.push_back(input.buffer());
  stage->axes = make_axes(shapes.at(0), "i");
  stage->imperative = body(stage->outputs);
  stage->name = std::move(name);
  return finish(stage);
}

std::vector<Buffer> read_buffers(const StageNode& stage) {
  std::vector<Buffer> found;
  std::unordered_set<const BufferNode*> seen;
  const auto add = [&](const Buffer& buffer) {
    if (seen.insert(buffer.get()).second) found.push_back(buffer);
  };
  const auto scan = [&](const Expr& e) {
    if (e)
      visit(e, [&](const Expr& node) {
        if (const auto* read = node.as<Load>()) add(read->buffer);
        return true;
      });
  };
  for (const Expr& body : stage.bodies) scan(body);
  scan(stage.where);
  for (const Expr& initial : stage.initial) scan(initial);
  for (const Buffer& buffer : stage.reads) add(buffer);
  return found;
}

Workload make_workload(std::string name, std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
  Workload workload{std::move(name), {}, std::move(inputs), std::move(outputs), {}};
  std::unordered_set<const StageNode*> done;
  std::unordered_set<const VarNode*> dims;
  // Free variables are those that no axis binds; dims are collected from shapes and bodies in stage order.
  const auto collect_dims = [&](const Stage& stage) {
    std::unordered_set<const VarNode*> bound;
    for (const Axis& axis : stage->axes) bound.insert(axis.var.operator->());
    for (const Axis& axis : stage->reduce_axes) bound.insert(axis.var.operator->());
    const auto scan = [&](const Expr& e) {
      if (e.get() == nullptr) return;  // not !e, which makes an expression
      std::unordered_set<const VarNode*> local;
      visit(e, [&](const Expr& node) {
        if (const auto* binding = node.as<Let>()) local.insert(binding->var.operator->());
        if (const auto* var = node.as<VarNode>();
            var && !bound.count(var) && !local.count(var) && dims.insert(var).second)
          workload.dims.push_back(Var(var));
        return true;
      });
    };
    for (const Axis& axis : stage->axes) scan(axis.extent);
    for (const Axis& axis : stage->reduce_axes) scan(axis.extent);
    for (const Buffer& output : stage->outputs)
      for (const Expr& extent : output->shape) scan(extent);
    for (const Expr& body : stage->bodies) scan(body);
    scan(stage->where);
    for (const Expr& initial : stage->initial) scan(initial);
  };
  // Depth-first without recursion: stage chains may be long.
  std::vector<std::pair<Stage, size_t>> stack;
  const auto add = [&](const Stage& root) {
    if (done.count(root.get())) return;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [stage, next] = stack.back();
      if (done.count(stage.get())) {
        stack.pop_back();
      } else if (next < stage->producers.size()) {
        const Stage producer = stage->producers[next++];
        if (!done.count(producer.get())) stack.emplace_back(producer, 0);
      } else {
        done.insert(stage.get());
        workload.stages.push_back(stage);
        stack.pop_back();
      }
    }
  };
  for (const Tensor& input : workload.inputs) add(input.stage());
  const size_t input_count = workload.stages.size();
  for (const Tensor& output : workload.outputs) add(output.stage());
  for (size_t k = input_count; k < workload.stages.size(); ++k)
    TS_CHECK(workload.stages[k]->stage_kind != StageKind::kPlaceholder)
        << workload.name << " reads placeholder " << workload.stages[k]->name << ", which is not among its inputs";
  for (const Stage& stage : workload.stages) collect_dims(stage);
  return workload;
}

std::vector<Stage> consumers(const Workload& workload, const Stage& stage) {
  std::vector<Stage> found;
  for (const Stage& other : workload.stages)
    for (const Stage& producer : other->producers)
      if (producer.same_as(stage)) {
        found.push_back(other);
        break;
      }
  return found;
}

Stage producer(const Workload& workload, const Buffer& buffer) {
  for (const Stage& stage : workload.stages)
    for (const Buffer& output : stage->outputs)
      if (output.same_as(buffer)) return stage;
  return {};
}

}  // namespace tensmith
