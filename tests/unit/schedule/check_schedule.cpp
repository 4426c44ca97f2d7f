#include "tests/unit/schedule/check_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "schedule/primitive_def.h"
#include "tensor/print.h"
#include "tensor/simplify.h"
#include "tensor/verify.h"
#include "tensor/walk.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {

namespace {

/// P elementwise, C the sum of three rows of it, Q elementwise.
Workload stencils_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  const auto f32 = [](double v) { return make_const(kFloat32, v); };
  const Tensor p = compute("P", {rows, columns}, [&](const Indices& i) { return x(i[0], i[1]) * f32(2) + f32(1); });
  const Tensor c = compute("C", {rows - 2, columns}, [&](const Indices& i) {
    return p(i[0], i[1]) + p(i[0] + 1, i[1]) * f32(0.5) + p(i[0] + 2, i[1]);
  });
  const Tensor q = compute("Q", {rows - 2, columns}, [&](const Indices& i) { return max(c(i[0], i[1]), f32(0)); });
  return make_workload("stencils", {x}, {q});
}

/// P is X with borders of different widths, C adds rows of it.
Workload padded_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  const auto f32 = [](double v) { return make_const(kFloat32, v); };
  const Tensor p = compute("P", {rows + 3, columns + 2}, [&](const Indices& i) {
    const Expr outside = i[0] < 1 || i[0] >= rows + 1 || i[1] < 2;
    return select(outside, f32(0.5), x(i[0] - 1, i[1] - 2));
  });
  const Tensor c = compute("C", {rows + 1, columns + 2}, [&](const Indices& i) {
    return p(i[0], i[1]) + p(i[0] + 1, i[1]) * f32(0.5) + p(i[0] + 2, i[1]);
  });
  return make_workload("padded", {x}, {c});
}

/// S and T reduce the same rows, one of them from a start value; Y needs both.
Workload siblings_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32), start = placeholder("start", {rows}, kFloat32);
  const Tensor s = sum("S", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
  const Tensor t = reduce_multi(
      "T", {rows},
      {{columns},
       [&](const Indices& i, const Indices& r) { return std::vector<Expr>{x(i[0], r[0]) * x(i[0], r[0])}; },
       sum_reducer(kFloat32),
       nullptr,
       [&](const Indices& i) { return std::vector<Expr>{start(i[0])}; }})[0];
  const Tensor y = compute("Y", {rows, columns}, [&](const Indices& i) { return x(i[0], i[1]) * s(i[0]) - t(i[0]); });
  return make_workload("siblings", {x, start}, {y});
}

/// s8 * s8 into s32, both row-major with the reduction last.
Workload signed_product_workload(int64_t m, int64_t n, int64_t k) {
  const Tensor a = placeholder("A", {m, k}, kInt8), b = placeholder("B", {n, k}, kInt8, true);
  return make_workload("bytes", {a, b}, {sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) {
                         return cast(kInt32, b(i[1], r[0])) * cast(kInt32, a(i[0], r[0]));
                       })});
}

}  // namespace

SizedWorkload sample_workload(const std::string& name) {
  if (name == "dense") return {dense_workload(7, 19, 23), {}};
  if (name == "dense_m") return {dense_workload(Var("M"), 19, 13), {11}};
  if (name == "conv") return {conv_workload({1, 3, 7, 9, 5, 3, 1, 1}), {}};
  if (name == "depthwise") return {depthwise_workload({1, 4, 8, 9, 0, 3, 2, 1}), {}};
  if (name == "expand_depthwise_project") return {expand_depthwise_project_workload(3, 6, 5, 7, 9), {}};
  if (name == "softmax") return {softmax_workload(5, 13), {}};
  if (name == "softmax_n") return {softmax_workload(Var("N"), 13), {5}};
  if (name == "layer_norm") return {layer_norm_workload(5, 17), {}};
  if (name == "arg_max") return {arg_max_workload(6, 19), {}};
  if (name == "max_plus") return {max_plus_workload(5, 6, 7), {}};
  if (name == "int8_product") return {int8_product_workload(5, 19, 30), {}};
  if (name == "int8_dot") return {int8_product_workload(5, 16, 32), {}};
  if (name == "complex_product") return {complex_product_workload(4, 7, 9), {}};
  if (name == "padded") return {padded_workload(9, 7), {}};
  if (name == "siblings") return {siblings_workload(7, 13), {}};
  if (name == "stencils") return {stencils_workload(14, 9), {}};
  if (name == "bytes") return {signed_product_workload(3, 19, 11), {}};
  TS_UNREACHABLE() << "no sample workload " << name;
}

Schedule make_schedule(const Workload& workload, const std::vector<std::string>& steps) {
  Schedule schedule(workload);
  for (const std::string& text : steps) schedule.apply(parse_step(text).value());
  return schedule;
}

namespace {

int64_t value_of(const Expr& e, const Workload& workload, const std::vector<int64_t>& dims) {
  VarMap map;
  for (size_t k = 0; k < dims.size(); ++k) map[workload.dims.at(k).get()] = Expr(dims[k]);
  int64_t value = -1;
  const Expr folded = simplify(substitute(e, map));
  TS_CHECK(as_const_int(folded, &value)) << to_string(e) << " is no constant";
  return value;
}

std::vector<int64_t> shape_of(const Buffer& buffer, const Workload& workload, const std::vector<int64_t>& dims) {
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer->shape) shape.push_back(value_of(extent, workload, dims));
  return shape;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

/// Memory that holds nothing that anybody may rely on.
InterpValue poison(DType dtype, int64_t count) {
  InterpValue value = make_interp_value(dtype, count);
  for (double& f : value.f) f = std::numeric_limits<double>::quiet_NaN();
  for (int64_t& i : value.i) i = dtype.is_bool() ? 1 : IntImm::make(dtype, 0x5a5a5a5a5a5a5a5a).as<IntImm>()->value;
  return value;
}

/// Copies between a row-major tensor and its physical form.
void transfer(const Layout& layout, const std::vector<int64_t>& shape, InterpValue& logical, InterpValue& physical,
              bool pack) {
  const std::vector<int64_t> physical_shape = layout.physical_shape(shape);
  std::vector<int64_t> index(shape.size());
  for (int64_t k = 0; k < product(shape); ++k) {
    int64_t rest = k, at = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    const std::vector<int64_t> place = layout.physical_index(index);
    for (size_t d = 0; d < place.size(); ++d) at = at * physical_shape[d] + place[d];
    const auto copy = [&](auto& from_logical, auto& from_physical) {
      if (from_logical.empty()) return;
      if (pack) from_physical[at] = from_logical[k];
      else from_logical[k] = from_physical[at];
    };
    copy(logical.f, physical.f);
    copy(logical.i, physical.i);
  }
}

std::optional<std::string> compare(const InterpValue& actual, const InterpValue& expected, double tolerance,
                                   const std::string& name) {
  std::ostringstream text;
  for (size_t k = 0; k < expected.f.size(); ++k) {
    const double a = actual.f[k], e = expected.f[k];
    if (a == e || (std::isnan(a) && std::isnan(e)) || std::fabs(a - e) <= tolerance * std::max(1.0, std::fabs(e)))
      continue;
    text << name << "[" << k << "]: expected " << e << ", got " << a;
    return text.str();
  }
  for (size_t k = 0; k < expected.i.size(); ++k) {
    if (actual.i[k] == expected.i[k]) continue;
    text << name << "[" << k << "]: expected " << expected.i[k] << ", got " << actual.i[k];
    return text.str();
  }
  return {};
}

/// The function with the iterations of each parallel loop in reverse.
LoopFunction backwards(LoopFunction function) {
  function.body = rewrite(function.body, {}, [](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop || loop->for_kind != ForKind::kParallel) return s;
    const Var var(loop->var.name());
    return For::make(var, loop->min, loop->extent, ForKind::kSerial,
                     substitute(loop->body, {{loop->var.get(), loop->min + loop->min + loop->extent - 1 - var}}),
                     loop->attrs);
  });
  return function;
}

constexpr int64_t kMaxSteps = 200'000'000;

}  // namespace

std::optional<std::string> difference(const Schedule& schedule, const std::vector<int64_t>& dims,
                                      const RunOptions& options) {
  const Workload& workload = schedule.workload();
  LowerOptions lower_options;
  std::string malformed;
  bool unproven = false, races = false, flat = false;
  lower_options.on_pass = [&](int, const char* pass, const LoopFunction& function) {
    // Races show when parallel loops run backwards; the verifier takes some pairs of peeled iterations for races.
    VerifyOptions checks;
    checks.races = false;
    for (const Var& dim : workload.dims) checks.facts.assume(dim >= 1);
    const Result<void> ok = verify(function, checks);
    // A flat index hides the dims that keep iterations apart.
    flat = flat || std::string_view(pass) == "flatten";
    if (ok && options.races && !flat) {
      checks.races = true;
      races = races || !verify(function, checks).ok();
    }
    if (ok) return;
    if (ok.failure().id == "verify-bounds") unproven = true;
    else if (malformed.empty()) malformed = std::string("after ") + pass + ": " + ok.failure().message;
  };
  const LoweredKernel kernel = lower(schedule, lower_options);
  if (!malformed.empty()) return malformed;
  if (unproven && options.unproven) ++*options.unproven;
  if (races && options.races) ++*options.races;
  std::vector<InterpValue> inputs = random_inputs(workload, dims, options.seed);
  std::vector<InterpValue> expected = zero_outputs(workload, dims);
  std::vector<InterpValue*> pointers;
  for (InterpValue& value : inputs) pointers.push_back(&value);
  for (InterpValue& value : expected) pointers.push_back(&value);
  const Result<void> reference = interpret(reference_loops(workload), pointers, dims, InterpFloat::kExact, kMaxSteps);
  TS_CHECK(reference.ok()) << reference.failure().message;

  std::vector<InterpValue> memory;
  for (size_t k = 0; k < kernel.function.buffers.size(); ++k) {
    const Buffer& buffer = kernel.function.buffers[k];
    memory.push_back(poison(buffer->dtype, product(shape_of(buffer, workload, dims))));
    if (k < inputs.size())
      transfer(kernel.input_layouts[k], shape_of(workload.inputs[k].buffer(), workload, dims), inputs[k], memory[k],
               /*pack=*/true);
  }
  enum How { kForwards, kBackwards, kCode };
  const auto run = [&](How way) -> std::optional<std::string> {
    std::vector<InterpValue> buffers = memory;
    std::vector<InterpValue*> arguments;
    for (InterpValue& value : buffers) arguments.push_back(&value);
    const std::string how = way == kCode ? "code: " : way == kBackwards ? "loops backwards: " : "loops: ";
    if (way == kCode) {
      if (const int32_t result = run_code(kernel.function, "host", arguments, dims); result != 0)
        return how + "returned " + std::to_string(result);
    } else if (const Result<void> done = interpret(way == kBackwards ? backwards(kernel.function) : kernel.function,
                                                   arguments, dims, InterpFloat::kExact, kMaxSteps);
               !done) {
      return how + done.failure().message;
    }
    for (size_t k = 0; k < expected.size(); ++k) {
      InterpValue actual =
          make_interp_value(expected[k].dtype, static_cast<int64_t>(expected[k].f.size() + expected[k].i.size()));
      transfer(kernel.output_layouts[k], shape_of(workload.outputs[k].buffer(), workload, dims), actual,
               buffers[inputs.size() + k], /*pack=*/false);
      if (auto wrong = compare(actual, expected[k], way == kCode ? 2e-4 : 1e-9, workload.outputs[k].buffer()->name))
        return how + *wrong;
    }
    return {};
  };
  if (auto wrong = run(kForwards)) return wrong;
  if (auto wrong = run(kBackwards)) return wrong;
  // As many arguments as run_code can pass.
  return options.code && memory.size() + dims.size() <= 12 ? run(kCode) : std::nullopt;
}

void expect_correct(const SizedWorkload& sized, const std::vector<std::string>& steps) {
  std::string text;
  for (const std::string& step : steps) text += step + "\n";
  try {
    const Schedule schedule = make_schedule(sized.workload, steps);
    RunOptions options;
    options.code = true;
    if (auto wrong = difference(schedule, sized.dims, options))
      ADD_FAILURE() << *wrong << "\n" << text << lowered_text(schedule, "loop_nests");
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << text;
  }
}

std::string lowered_text(const Schedule& schedule, const std::string& pass) {
  std::string text;
  LowerOptions options;
  options.on_pass = [&](int, const char* name, const LoopFunction& function) {
    if (pass == name) text = to_string(function);
  };
  const LoweredKernel kernel = lower(schedule, options);
  return pass.empty() ? to_string(kernel.function) : text;
}

}  // namespace tensmith
