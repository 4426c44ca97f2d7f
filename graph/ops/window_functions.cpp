#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// A window is a sum of cosines: a0 + a1 cos(2 pi n / N) + a2 cos(4 pi n / N).
struct Cosines {
  double a0, a1, a2;
};

DType output_type(const AttrMap& attrs) { return attrs.get_dtype("output_datatype", kFloat32); }
bool is_periodic(const AttrMap& attrs) { return attrs.get_int("periodic", 1) != 0; }

OpDef window_function(const char* name, const char* doc, Cosines terms) {
  OpDef op{
      .name = name,
      .since = 17,
      .doc = doc,
      .inputs = {{.name = "size", .types = TypeSet::kIndex}},
      .attrs = {{.name = "output_datatype", .kind = AttrKind::kType, .default_value = kFloat32},
                {.name = "periodic", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .fusion = FusionKind::kInjective,
      .infer = nullptr,  // set below, as is all that needs the terms
      .samples =
          {
              {.name = "periodic", .inputs = {known_scalar(kInt64, 17)}},
              {.name = "symmetric",
               .inputs = {known_scalar(kInt32, 10)},
               .attrs = attrs({{"periodic", 0}, {"output_datatype", AttrValue(kFloat64)}})},
              {.name = "one", .inputs = {known_scalar(kInt64, 1)}, .attrs = attrs({{"periodic", 0}})},
              {.name = "half",
               .inputs = {known_scalar(kInt64, 3)},
               .attrs = attrs({{"output_datatype", AttrValue(kFloat16)}}),
               .rtol = 1e-3},
              {.name = "vector", .inputs = {known_ints({3, 4})}, .error_id = "rank-mismatch"},
          },
  };
  op.infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
    if (!ctx.input(0).shape.empty() && !(ctx.input(0).rank() == 1 && is_const_int(ctx.input(0).shape[0], 1)))
      return refuse("rank-mismatch") << "input size: expected a scalar, got shape " << shape_text(ctx.input(0).shape);
    const auto size = int_elements(ctx, 0);
    return std::vector<TensorType>{{output_type(ctx.node.attrs), {size ? (*size)[0] : ctx.data_dim(0, 0)}, {}}};
  };
  op.supports = [](const InferContext& ctx) { return require_elements(ctx, {0}); };
  op.compute = [terms](const ComputeContext& ctx) -> std::vector<Tensor> {
    const TensorType& type = ctx.output_type();
    // In float64: the angles of long windows lose digits in float32, and this is computed once.
    const Expr points = cast(kFloat64, is_periodic(ctx.node.attrs) ? type.shape[0] : max(type.shape[0] - 1, 1));
    return {compute("window", type.shape, [&](const Indices& i) {
      const auto cosine = [&](double turns) {
        return call(Intrinsic::kCos, {cast(kFloat64, i[0]) * make_const(kFloat64, turns * 2 * M_PI) / points});
      };
      Expr value = make_const(kFloat64, terms.a0) + make_const(kFloat64, terms.a1) * cosine(1);
      if (terms.a2 != 0) value = value + make_const(kFloat64, terms.a2) * cosine(2);
      return cast(type.dtype, value);
    })};
  };
  op.reference = [terms](ReferenceContext& ctx) -> Result<void> {
    const int64_t size = ctx.input(0).i[0];
    RefTensor& y = make_output(ctx, output_type(ctx.node.attrs), {size});
    const double points = static_cast<double>(is_periodic(ctx.node.attrs) ? size : std::max<int64_t>(size - 1, 1));
    for (int64_t n = 0; n < size; ++n) {
      const double angle = 2 * M_PI * static_cast<double>(n) / points;
      y.set(n, terms.a0 + terms.a1 * std::cos(angle) + terms.a2 * std::cos(2 * angle));
    }
    return {};
  };
  return op;
}

}  // namespace

std::vector<OpDef> window_functions() {
  return {
      window_function("BlackmanWindow", "The Blackman window of a given length.", {0.42, -0.5, 0.08}),
      window_function("HammingWindow", "The Hamming window of a given length.", {25.0 / 46, -21.0 / 46, 0}),
      window_function("HannWindow", "The Hann window of a given length.", {0.5, -0.5, 0}),
  };
}

}  // namespace tensmith::graph::ops
