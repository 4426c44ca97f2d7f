#include <algorithm>
#include <unordered_set>

#include "runtime/base/error.h"
#include "tensor/walk.h"
#include "tensor/workload.h"

namespace tensmith {

namespace {

std::vector<Expr> vars_of(const std::vector<Axis>& axes) {
  std::vector<Expr> vars;
  for (const Axis& axis : axes) vars.push_back(axis.var);
  return vars;
}

Stmt loops_over(const std::vector<Axis>& axes, Stmt body) {
  for (size_t k = axes.size(); k-- > 0;)
    body = For::make(axes[k].var, 0, axes[k].extent, ForKind::kSerial, std::move(body));
  return body;
}

int count_uses(const Expr& e, const Var& var) {
  int uses = 0;
  visit(e, [&](const Expr& node) {
    uses += node.get() == var.get();
    return true;
  });
  return uses;
}

/// One step of a reduction: outputs[i] = combined[i](outputs, values), all at once.
Stmt accumulate(const StageNode& stage, const std::vector<Expr>& indices) {
  const Reducer& reducer = *stage.reducer;
  const size_t count = stage.outputs.size();
  // A single value that uses each operand at most once needs no lets, so that a sum reads C[i] = C[i] + A[i] * B[i].
  if (count == 1 && count_uses(reducer.combined[0], reducer.lhs[0]) <= 1 &&
      count_uses(reducer.combined[0], reducer.rhs[0]) <= 1) {
    const VarMap map = {{reducer.lhs[0].operator->(), load(stage.outputs[0], indices)},
                        {reducer.rhs[0].operator->(), stage.bodies[0]}};
    return Store::make(stage.outputs[0], indices, substitute(reducer.combined[0], map));
  }
  // All values are read before any is written. Fresh variables, since stages may share a reducer.
  VarMap map;
  std::vector<std::pair<Var, Expr>> lets;
  for (size_t k = 0; k < count; ++k) {
    lets.emplace_back(Var(reducer.lhs[k].name(), reducer.lhs[k].dtype()), load(stage.outputs[k], indices));
    map[reducer.lhs[k].operator->()] = lets.back().first;
  }
  for (size_t k = 0; k < count; ++k) {
    lets.emplace_back(Var(reducer.rhs[k].name(), reducer.rhs[k].dtype()), stage.bodies[k]);
    map[reducer.rhs[k].operator->()] = lets.back().first;
  }
  std::vector<Stmt> stores;
  for (size_t k = 0; k < count; ++k)
    stores.push_back(Store::make(stage.outputs[k], indices, substitute(reducer.combined[k], map)));
  Stmt body = Block::make(std::move(stores));
  for (size_t k = lets.size(); k-- > 0;) body = LetStmt::make(lets[k].first, lets[k].second, std::move(body));
  return body;
}

Stmt stage_loops(const StageNode& stage) {
  if (stage.stage_kind == StageKind::kImperative) return stage.imperative;
  const std::vector<Expr> indices = vars_of(stage.axes);
  std::vector<Stmt> stmts;
  if (!stage.reducer) {
    for (size_t k = 0; k < stage.outputs.size(); ++k)
      stmts.push_back(Store::make(stage.outputs[k], indices, stage.bodies[k]));
    return loops_over(stage.axes, Block::make(std::move(stmts)));
  }
  const std::vector<Expr>& start = stage.initial.empty() ? stage.reducer->identity : stage.initial;
  for (size_t k = 0; k < stage.outputs.size(); ++k) stmts.push_back(Store::make(stage.outputs[k], indices, start[k]));
  Stmt step = accumulate(stage, indices);
  if (stage.where) step = If::make(stage.where, std::move(step));
  stmts.push_back(loops_over(stage.reduce_axes, std::move(step)));
  return loops_over(stage.axes, Block::make(std::move(stmts)));
}

Stmt copy(const Buffer& from, const Buffer& to) {
  std::vector<Axis> axes;
  for (size_t k = 0; k < from->shape.size(); ++k) axes.push_back({Var("i" + std::to_string(k)), from->shape[k]});
  return loops_over(axes, Store::make(to, vars_of(axes), load(from, vars_of(axes))));
}

}  // namespace

LoopFunction reference_loops(const Workload& workload) {
  LoopFunction f;
  f.name = workload.name;
  f.scalars = workload.dims;
  std::unordered_set<const BufferNode*> parameters;
  for (const Tensor& input : workload.inputs)
    if (parameters.insert(input.buffer().get()).second) f.buffers.push_back(input.buffer());
  std::vector<Stmt> copies;
  for (const Tensor& output : workload.outputs) {
    Buffer buffer = output.buffer();
    if (!parameters.insert(buffer.get()).second) {
      // An input handed through, or the same tensor twice: a parameter of its own, filled at the end.
      buffer = make_buffer(buffer->name + "_copy", buffer->dtype, buffer->shape, buffer->scope, buffer->alignment);
      copies.push_back(copy(output.buffer(), buffer));
    }
    f.buffers.push_back(buffer);
    f.outputs.push_back(buffer);
  }
  // An intermediate buffer is allocated right before its stage, around all that follows.
  Stmt body = Block::make(std::move(copies));
  for (size_t k = workload.stages.size(); k-- > 0;) {
    const StageNode& stage = *workload.stages[k];
    if (stage.stage_kind == StageKind::kPlaceholder) continue;
    body = Block::make({stage_loops(stage), std::move(body)});
    for (size_t o = stage.outputs.size(); o-- > 0;)
      if (!parameters.count(stage.outputs[o].get())) body = Allocate::make(stage.outputs[o], std::move(body));
  }
  f.body = std::move(body);
  return f;
}

}  // namespace tensmith
