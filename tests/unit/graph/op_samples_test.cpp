// Tests generated from the operators' definitions: every sample of every operator goes through its type rule, its
// compute rule (run as plain loops) and its reference, with fixed dims and with all dims symbolic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/interpret.h"
#include "tensor/interpret.h"
#include "tensor/print.h"
#include "tensor/verify.h"
#include "tensor/walk.h"

namespace tensmith::graph {
namespace {

/// A sample made concrete: a node with data.
struct Case {
  Node node;
  std::vector<RefTensor> data;
  std::vector<const RefTensor*> inputs;  // null: absent
  std::vector<Constant> content;
  std::vector<const Constant*> constants;  // null: not known at compile time
  std::vector<TensorType> types;
  std::vector<const TensorType*> type_of;
};

RefTensor make_data(const OpSample::Input& input, std::mt19937& random) {
  RefTensor tensor = make_ref_tensor(input.dtype, input.shape);
  std::uniform_real_distribution<double> uniform(input.low, input.high);
  for (int64_t k = 0; k < tensor.num_elements(); ++k) {
    const double value = input.values.empty() ? uniform(random) : input.values.at(static_cast<size_t>(k));
    if (tensor.is_float()) tensor.f[static_cast<size_t>(k)] = value;
    else tensor.set(k, input.values.empty() ? std::floor(value + 0.5) : value);
  }
  round_to_dtype(tensor);
  return tensor;
}

/// `dim(input, axis, extent)` replaces extents by symbols (null: fixed dims).
using DimFn = std::function<Expr(size_t input, size_t axis, int64_t extent)>;
std::unique_ptr<Case> make_case(const OpDef& op, const OpSample& sample, const DimFn& dim = nullptr) {
  auto c = std::make_unique<Case>();
  c->node.id = 0;
  c->node.op = &op;
  c->node.name = sample.name;
  c->node.attrs = sample.attrs;
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>{}(op.name + "/" + sample.name)));
  const size_t count = sample.inputs.size();
  c->data.resize(count), c->content.resize(count), c->types.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const OpSample::Input& input = sample.inputs[k];
    if (!input.absent) {
      c->data[k] = make_data(input, random);
      c->types[k] = static_type(input.dtype, input.shape);
      if (dim && !input.constant)
        for (size_t axis = 0; axis < input.shape.size(); ++axis)
          c->types[k].shape[axis] = dim(k, axis, input.shape[axis]);
      if (input.constant) c->content[k] = to_constant(c->data[k]);
    }
    c->inputs.push_back(input.absent ? nullptr : &c->data[k]);
    c->constants.push_back(input.constant ? &c->content[k] : nullptr);
    c->type_of.push_back(input.absent ? nullptr : &c->types[k]);
  }
  return c;
}

Result<std::vector<TensorType>> infer(const Case& c, int num_outputs) {
  return infer_types(InferContext{c.node, c.type_of, c.constants, num_outputs});
}

/// Operators some of whose loops hold indices that the verifier cannot bound yet.
const char* const kUnproven[] = {"Col2Im"};

/// The compute rule's outputs by plain loops in double; symbolic dims by `sizes`.
Result<std::vector<RefTensor>> run_compute(const Case& c, const std::vector<std::vector<int64_t>>& shapes,
                                           const std::map<std::string, int64_t>& sizes) {
  std::vector<Tensor> placeholders;
  ComputeContext context{c.node, {}, c.type_of, c.constants};
  std::vector<InterpValue> storage;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    if (!c.inputs[k]) {
      context.inputs.emplace_back();
      continue;
    }
    placeholders.push_back(
        placeholder("x" + std::to_string(k), c.types[k].shape, c.types[k].dtype, c.constants[k] != nullptr));
    context.inputs.push_back(placeholders.back());
    storage.push_back({c.inputs[k]->dtype, c.inputs[k]->f, c.inputs[k]->i});
  }
  const std::vector<Tensor> outputs = c.node.op->compute(context);
  TS_CHECK(outputs.size() == c.node.types.size())
      << c.node.op->name << " computes " << outputs.size() << " outputs of " << c.node.types.size();
  for (size_t k = 0; k < outputs.size(); ++k) {
    TS_CHECK(outputs[k].dtype() == c.node.types[k].dtype)
        << "output " << k << " has type " << to_string(outputs[k].dtype());
    int64_t count = 1;
    for (int64_t dim : shapes[k]) count *= dim;
    storage.push_back(make_interp_value(outputs[k].dtype(), count));
  }
  const Workload workload = make_workload(c.node.op->name, placeholders, outputs);
  std::vector<int64_t> scalars;
  for (const Var& dim : workload.dims) scalars.push_back(sizes.at(dim.name()));
  const LoopFunction loops = reference_loops(workload);
  const bool provable = sizes.empty() && std::none_of(std::begin(kUnproven), std::end(kUnproven),
                                                      [&](const char* name) { return c.node.op->name == name; });
  VerifyOptions checks;
  checks.bounds = provable;
  if (auto ok = verify(loops, checks); !ok)
    return Failure{ok.failure().id, ok.failure().message + "\n" + to_string(loops)};
  std::vector<InterpValue*> buffers;
  for (InterpValue& value : storage) buffers.push_back(&value);
  if (auto ok = tensmith::interpret(loops, buffers, scalars); !ok)
    return Failure{ok.failure().id, ok.failure().message + "\n" + to_string(loops)};
  std::vector<RefTensor> results;
  for (size_t k = 0; k < outputs.size(); ++k) {
    InterpValue& value = storage[placeholders.size() + k];
    results.push_back({outputs[k].dtype(), shapes[k], std::move(value.f), std::move(value.i)});
    round_to_dtype(results.back());
  }
  return results;
}

void expect_close(const RefTensor& got, const RefTensor& want, const OpSample& sample, size_t output) {
  ASSERT_EQ(got.shape, want.shape) << "output " << output;
  for (int64_t k = 0; k < want.num_elements(); ++k) {
    const double a = got.get(k), b = want.get(k);
    if (!want.is_float()) {
      ASSERT_EQ(got.i[static_cast<size_t>(k)], want.i[static_cast<size_t>(k)])
          << "output " << output << " element " << k;
    } else if (std::isnan(b) || std::isinf(b)) {
      ASSERT_TRUE(std::isnan(b) ? std::isnan(a) : a == b)
          << "output " << output << " element " << k << ": got " << a << ", want " << b;
    } else {
      ASSERT_LE(std::fabs(a - b), sample.atol + sample.rtol * std::fabs(b))
          << "output " << output << " element " << k << ": got " << a << ", want " << b;
    }
  }
}

class Op : public testing::TestWithParam<const OpDef*> {};

TEST_P(Op, SamplesAgreeWithTheReference) {
  const OpDef& op = *GetParam();
  for (const OpSample& sample : op.samples) {
    SCOPED_TRACE(op.name + "/" + sample.name);
    const auto c = make_case(op, sample);
    const auto types = infer(*c, sample.num_outputs);
    if (!sample.error_id.empty()) {
      ASSERT_FALSE(types.ok());
      EXPECT_EQ(types.failure().id, sample.error_id) << types.failure().message;
      continue;
    }
    ASSERT_TRUE(types.ok()) << types.failure().message;
    c->node.types = types.value();
    if (!op.reference) continue;
    const auto want = interpret_node(c->node, c->inputs, c->constants);
    ASSERT_TRUE(want.ok()) << want.failure().message;
    std::vector<std::vector<int64_t>> shapes;
    for (size_t k = 0; k < want->size(); ++k) {
      shapes.push_back((*want)[k].shape);
      if (!c->node.types[k].is_static()) continue;
      ASSERT_EQ(c->node.types[k].static_shape(), shapes.back())
          << "the type rule gives " << to_string(c->node.types[k]);
    }
    if (!op.compute) continue;
    if (op.supports) {
      const auto supported = op.supports(InferContext{c->node, c->type_of, c->constants, sample.num_outputs});
      ASSERT_TRUE(supported.ok()) << supported.failure().message;
    }
    const auto got = run_compute(*c, shapes, {});
    ASSERT_TRUE(got.ok()) << got.failure().message;
    for (size_t k = 0; k < got->size(); ++k) expect_close((*got)[k], (*want)[k], sample, k);
  }
}

/// The sample with the chosen extents symbolic: refused as dynamic, or the same results. Extents 0 and 1 stay, since
/// broadcasting treats 1 by itself; equal extents share a symbol.
void check_symbolic(const OpDef& op, const OpSample& sample,
                    const std::function<bool(size_t input, size_t axis)>& chosen) {
  std::map<int64_t, Var> symbols;
  std::map<std::string, int64_t> sizes;
  const auto dim = [&](size_t input, size_t axis, int64_t extent) -> Expr {
    if (extent < 2 || !chosen(input, axis)) return extent;
    const auto [it, fresh] = symbols.try_emplace(extent);
    if (fresh) it->second = Var("n" + std::to_string(extent));
    sizes["n" + std::to_string(extent)] = extent;
    return it->second;
  };
  const auto symbolic = make_case(op, sample, dim), fixed = make_case(op, sample);
  if (symbols.empty()) return;
  const auto types = infer(*symbolic, sample.num_outputs);
  if (!types) {
    EXPECT_EQ(types.failure().id.rfind("dynamic-", 0), 0u) << types.failure().id << ": " << types.failure().message;
    return;
  }
  symbolic->node.types = types.value();
  fixed->node.types = infer(*fixed, sample.num_outputs).value();
  if (op.supports)
    if (const auto supported =
            op.supports(InferContext{symbolic->node, symbolic->type_of, symbolic->constants, sample.num_outputs});
        !supported) {
      EXPECT_EQ(supported.failure().id.rfind("dynamic-", 0), 0u)
          << supported.failure().id << ": " << supported.failure().message;
      return;
    }
  const auto want = interpret_node(fixed->node, fixed->inputs, fixed->constants);
  ASSERT_TRUE(want.ok()) << want.failure().message;
  std::vector<std::vector<int64_t>> shapes;
  for (const RefTensor& tensor : *want) shapes.push_back(tensor.shape);
  const auto got = run_compute(*symbolic, shapes, sizes);
  ASSERT_TRUE(got.ok()) << got.failure().message;
  for (size_t k = 0; k < got->size(); ++k) expect_close((*got)[k], (*want)[k], sample, k);
}

TEST_P(Op, SamplesHoldWithSymbolicDims) {
  const OpDef& op = *GetParam();
  if (!op.compute || !op.reference) GTEST_SKIP() << "no compute rule";
  for (const OpSample& sample : op.samples) {
    if (!sample.error_id.empty()) continue;
    SCOPED_TRACE(op.name + "/" + sample.name);
    check_symbolic(op, sample, [](size_t, size_t) { return true; });
    // One dim at a time as well: weights of fixed size beside a symbolic batch or image.
    for (size_t input = 0; input < sample.inputs.size(); ++input)
      for (size_t axis = 0; axis < sample.inputs[input].shape.size(); ++axis)
        check_symbolic(op, sample, [&](size_t i, size_t a) { return i == input && a == axis; });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Op, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const testing::TestParamInfo<const OpDef*>& info) {
                           std::string name = info.param->domain + "_" + info.param->name;
                           for (char& ch : name)
                             if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
                           return name.front() == '_' ? name.substr(1) : name;
                         });

}  // namespace
}  // namespace tensmith::graph
