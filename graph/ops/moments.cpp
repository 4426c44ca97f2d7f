#include "graph/ops/moments.h"

#include "graph/ops/arith.h"

namespace tensmith::graph::ops {

Moments moments(const std::string& name, const ReducedShape& shape, double epsilon,
                const std::function<Expr(const Indices&)>& load) {
  Moments result;
  result.mean = mean_axes(name + "_mean", shape, load);
  result.variance = mean_axes(name + "_variance", shape, [&](const Indices& in) {
    return with_value("d", load(in) - result.mean(shape.output_index(in)), [](const Expr& d) { return d * d; });
  });
  result.inverse_deviation = compute(name + "_inverse_deviation", shape.out, [&](const Indices& i) {
    const Expr variance = result.variance(i);
    return constant_like(variance, 1) / call(Intrinsic::kSqrt, {variance + constant_like(variance, epsilon)});
  });
  return result;
}

Tensor inverse_root_mean_square(const std::string& name, const ReducedShape& shape, double epsilon,
                                const std::function<Expr(const Indices&)>& load) {
  const Tensor mean = mean_axes(name + "_mean_square", shape, [&](const Indices& in) {
    return with_value("x", load(in), [](const Expr& x) { return x * x; });
  });
  return compute(name + "_inverse_root", shape.out, [&](const Indices& i) {
    return constant_like(mean(i), 1) / call(Intrinsic::kSqrt, {mean(i) + constant_like(mean(i), epsilon)});
  });
}

ReferenceMoments reference_moments(const RefTensor& x, const Dims& strides, int64_t outputs) {
  ReferenceMoments result{std::vector<double>(static_cast<size_t>(outputs)),
                          std::vector<double>(static_cast<size_t>(outputs))};
  const double count = outputs ? static_cast<double>(x.num_elements()) / static_cast<double>(outputs) : 1;
  using At = std::array<int64_t, 1>;
  for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const At& at) { result.mean[at[0]] += x.f[k]; });
  for (double& mean : result.mean) mean /= count;
  for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const At& at) {
    const double d = x.f[k] - result.mean[at[0]];
    result.variance[at[0]] += d * d;
  });
  for (double& variance : result.variance) variance /= count;
  return result;
}

}  // namespace tensmith::graph::ops
