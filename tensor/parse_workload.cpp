#include <algorithm>
#include <unordered_set>

#include "tensor/parse.h"
#include "tensor/text_parser.h"
#include "tensor/walk.h"

namespace tensmith::text {

namespace {

/// The name that gives these outputs: `C` for one, `C` for `C_0, C_1`.
std::string stage_name(const std::vector<Buffer>& outputs) {
  std::string name = outputs[0]->name;
  if (outputs.size() > 1 && name.size() > 2 && name.ends_with("_0")) name.resize(name.size() - 2);
  return name;
}

/// What a stage of loops reads: all buffers that it neither writes as an output nor allocates.
std::vector<Buffer> buffers_read(const StageNode& stage) {
  std::unordered_set<const BufferNode*> own;
  for (const Buffer& output : stage.outputs) own.insert(output.get());
  visit(stage.imperative, [&](const Stmt& s) {
    if (const auto* allocate = s.as<Allocate>()) own.insert(allocate->buffer.get());
    return true;
  });
  std::vector<Buffer> found;
  visit(
      stage.imperative, [](const Stmt&) { return true; },
      [&](const Expr& e) {
        if (const auto* load = e.as<Load>(); load && own.insert(load->buffer.get()).second)
          found.push_back(load->buffer);
        return true;
      });
  return found;
}

std::vector<Axis> default_axes(const std::vector<Expr>& shape) {
  std::vector<Axis> axes;
  for (size_t k = 0; k < shape.size(); ++k) axes.push_back({Var("i" + std::to_string(k)), shape[k]});
  return axes;
}

}  // namespace

std::vector<Expr> Parser::values(const std::vector<DType>& types, const char* what) {
  std::vector<Expr> list;
  do {
    const Token& start = current();
    Parsed value = expression();
    if (list.size() == types.size()) fail_at(start, "expected no further value, got one");
    const DType type = types[list.size()];
    if (value.bare) value.expr = constant(value, type);
    if (value.expr.dtype() != type) fail_at(start, "expected ", what, " of ", type, ", got ", value.expr.dtype());
    list.push_back(std::move(value.expr));
  } while (accept(","));
  if (list.size() != types.size()) fail("as many values as outputs (", types.size(), ")");
  return list;
}

std::vector<Axis> Parser::axes() {
  std::vector<Axis> list;
  do {
    const std::string name = new_name("an axis");
    if (!accept_word("in")) fail("'in'");
    Expr extent = scalar(kInt64, "an extent");
    list.push_back({Var(name), std::move(extent)});
    bind(name, list.back().var);
  } while (accept(","));
  return list;
}

Reducer Parser::reducer(const std::vector<DType>& types) {
  Reducer reducer;
  reducer.name = word_or_string("a reducer");
  expect("(");
  const Token& start = current();
  std::vector<Var> vars = scalar_parameters();
  expect(")");
  if (vars.size() != 2 * types.size())
    fail_at(start, "expected ", 2 * types.size(), " variables of the reducer, got ", vars.size());
  for (size_t k = 0; k < vars.size(); ++k)
    if (vars[k].dtype() != types[k % types.size()])
      fail_at(start, "expected a variable of ", types[k % types.size()], ", got ", vars[k].dtype());
  const auto half = vars.begin() + static_cast<std::ptrdiff_t>(types.size());
  reducer.lhs.assign(vars.begin(), half);
  reducer.rhs.assign(half, vars.end());
  expect(":");
  reducer.combined = values(types, "a combined value");
  if (!accept_word("from")) fail("'from'");
  reducer.identity = values(types, "a start value");
  for (const Var& var : vars) unbind(var.name());
  return reducer;
}

void Parser::compute_stage(StageNode& stage, const std::vector<DType>& types) {
  const Token& start = current();
  expect("{");
  if (accept_word("for")) stage.axes = axes();
  if (accept_word("reduce")) stage.reduce_axes = axes();
  if (accept_word("by")) stage.reducer = reducer(types);
  if (accept_word("where")) stage.where = scalar(kBool, "a condition");
  if (accept_word("initial")) stage.initial = values(types, "an initial value");
  if (!accept_word("value")) fail("'value'");
  stage.bodies = values(types, "a value");
  expect("}");
  for (const auto* list : {&stage.axes, &stage.reduce_axes})
    for (const Axis& axis : *list) unbind(axis.var.name());
  for (const Buffer& output : stage.outputs)
    if (output->shape.size() != stage.axes.size())
      fail_at(start, "expected an axis for each of ", output->shape.size(), " dims, got ", stage.axes.size());
  if (!stage.reducer && (!stage.reduce_axes.empty() || stage.where.get() != nullptr || !stage.initial.empty()))
    fail_at(start, "expected 'by' in a stage with reduce axes, a condition or initial values, got none");
}

Stage Parser::stage() {
  auto* node = new StageNode;
  Stage stage(node);
  std::vector<std::string> names;
  std::vector<DType> types;
  do {
    names.push_back(new_name("a stage"));
    node->outputs.push_back(buffer_type(names.back()));
    types.push_back(node->outputs.back()->dtype);
  } while (accept(","));
  node->name = stage_name(node->outputs);
  expect("=");
  // Loops write their outputs, values must not read them.
  const bool is_loops = is_word("loops");
  const auto bind_outputs = [&] {
    for (size_t k = 0; k < names.size(); ++k) bind(names[k], node->outputs[k]);
  };
  if (is_loops) bind_outputs();
  if (accept_word("constant") || is_word("input")) {
    node->is_constant = !is_word("input") || tokens_[at_ - 1].text == "constant";
    if (!accept_word("input")) fail("'input'");
    node->stage_kind = StageKind::kPlaceholder;
    if (names.size() != 1) fail("one buffer for an input");
    node->axes = default_axes(node->outputs[0]->shape);
  } else if (accept_word("loops")) {
    node->stage_kind = StageKind::kImperative;
    node->axes = default_axes(node->outputs[0]->shape);
    node->imperative = block();
    node->reads = buffers_read(*node);
  } else if (accept_word("compute")) {
    node->stage_kind = StageKind::kCompute;
    compute_stage(*node, types);
  } else {
    fail("'input', 'constant input', 'compute' or 'loops'");
  }
  if (!is_loops) bind_outputs();
  return stage;
}

Workload Parser::workload() {
  if (!accept_word("workload")) fail("'workload'");
  Workload workload;
  scopes_.clear();
  workload.name = word_or_string("a workload");
  struct Wanted {
    const Token* token;
    std::string name;
  };
  std::vector<Wanted> inputs, outputs;
  const auto names = [&](std::vector<Wanted>& list) {
    do {
      list.push_back({&current(), {}});
      list.back().name = new_name("a tensor");
    } while (accept(","));
  };
  expect("(");
  if (!is(")") && !is(";")) names(inputs);
  if (accept(";")) workload.dims = scalar_parameters();
  expect(")");
  expect("->");
  names(outputs);
  expect("{");
  std::unordered_set<std::string> known;
  while (!accept("}")) {
    const Token& start = current();
    Stage next = stage();
    for (const Buffer& output : next->outputs) {
      if (!known.insert(output->name).second)
        fail_at(start, "expected each tensor once, got '", output->name, "' again");
      output->stage = next.get();
    }
    for (const Buffer& buffer : read_buffers(*next)) {
      const Stage producer(buffer->stage);
      const auto same = [&](const Stage& s) { return s.same_as(producer); };
      auto& producers = const_cast<StageNode*>(next.get())->producers;
      if (std::none_of(producers.begin(), producers.end(), same)) producers.push_back(producer);
    }
    workload.stages.push_back(std::move(next));
  }
  const auto find_tensor = [&](const Wanted& wanted) {
    for (const Stage& s : workload.stages)
      for (size_t k = 0; k < s->outputs.size(); ++k)
        if (s->outputs[k]->name == wanted.name) return Tensor(s, static_cast<int>(k));
    fail_at(*wanted.token, "expected a tensor of the workload, got '", wanted.name, "'");
  };
  for (const Wanted& wanted : inputs) {
    workload.inputs.push_back(find_tensor(wanted));
    if (workload.inputs.back().stage()->stage_kind != StageKind::kPlaceholder)
      fail_at(*wanted.token, "expected an input, got '", wanted.name, "'");
  }
  for (const Stage& s : workload.stages)
    if (s->stage_kind == StageKind::kPlaceholder && std::none_of(workload.inputs.begin(), workload.inputs.end(),
                                                                 [&](const Tensor& t) { return t.stage().same_as(s); }))
      fail_at(current(), "expected '", s->name, "' among the inputs, got it only as a stage");
  for (const Wanted& wanted : outputs) workload.outputs.push_back(find_tensor(wanted));
  return workload;
}

}  // namespace tensmith::text
