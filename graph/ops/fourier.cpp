#include "graph/ops/fourier.h"

#include <cmath>

namespace tensmith::graph::ops {

namespace {

/// Up to here one pass over all pairs beats several short ones.
constexpr int64_t kDirectLength = 32;

Reducer complex_sum(DType dtype) {
  Reducer reducer{
      .name = "complex_sum", .lhs = {}, .rhs = {}, .combined = {}, .identity = {make_zero(dtype), make_zero(dtype)}};
  for (const char* part : {"r", "i"}) {
    const Var a(std::string("a") + part, dtype), b(std::string("b") + part, dtype);
    reducer.lhs.push_back(a);
    reducer.rhs.push_back(b);
    reducer.combined.push_back(Expr(a) + b);
  }
  return reducer;
}

}  // namespace

std::vector<int64_t> fourier_factors(int64_t length) {
  if (length <= kDirectLength) return {length};
  std::vector<int64_t> factors;
  for (int64_t factor : {4, 2, 3, 5, 7})
    for (; length % factor == 0; length /= factor) factors.push_back(factor);
  for (int64_t factor = 11; factor * factor <= length; factor += 2)
    for (; length % factor == 0; length /= factor) factors.push_back(factor);
  if (length > 1) factors.push_back(length);
  return factors;
}

std::vector<Tensor> fourier_transform(const Fourier& what) {
  const DType dtype = what.dtype;
  const int64_t length = what.length;
  // The roots of unity, exactly reduced and computed in float64, since errors of angles add up over the passes.
  const auto root = [&](const char* name, Intrinsic function, double sign) {
    return compute(name, {Expr(length)}, [&](const Indices& i) {
      const Expr angle = cast(kFloat64, i[0]) * make_const(kFloat64, 2 * M_PI / static_cast<double>(length));
      return cast(dtype, call(function, {angle}) * make_const(kFloat64, sign));
    });
  };
  const Tensor cosine = root("fourier_cos", Intrinsic::kCos, 1),
               sine = root("fourier_sin", Intrinsic::kSin, what.inverse ? 1 : -1);
  const size_t batch = what.batch.size();
  std::vector<Tensor> state;
  int64_t done = 1;
  // After each pass state[k, i] is the transform of length `done` of the elements i, i + length/done, i + 2
  // length/done, ... at frequency k. A pass of factor r joins r of them: state'[k, i] = sum over q of root(q k) state[k
  // mod done, i + q length/(done r)].
  for (int64_t factor : fourier_factors(length)) {
    const int64_t next = done * factor, rest = length / next;
    Shape shape = what.batch;
    shape.emplace_back(next == length ? what.bins : next);
    shape.emplace_back(rest);
    const std::vector<Tensor> before = state;
    const auto body = [&](const Indices& i, const Indices& r) {
      const Expr &k = i[batch], &at = i[batch + 1];
      const Expr turn = floor_mod(k * r[0], next) * (length / next), n = at + r[0] * rest;
      Complex x;
      if (before.empty()) {
        x = what.element(Indices(i.begin(), i.begin() + static_cast<ptrdiff_t>(batch)), n);
      } else {
        Indices from(i.begin(), i.begin() + static_cast<ptrdiff_t>(batch));
        from.push_back(floor_mod(k, done));
        from.push_back(n);
        x = {before[0](from), before[1](from)};
      }
      const Expr c = cosine(turn), s = sine(turn);
      if (x.imaginary.get() == nullptr) return std::vector<Expr>{x.real * c, x.real * s};
      return std::vector<Expr>{x.real * c - x.imaginary * s, x.real * s + x.imaginary * c};
    };
    state = reduce_multi("fourier_" + std::to_string(next), shape, {{Expr(factor)}, body, complex_sum(dtype)});
    done = next;
  }
  std::vector<Tensor> result;
  Shape shape = what.batch;
  shape.emplace_back(what.bins);
  for (size_t part = 0; part < 2; ++part)
    result.push_back(compute(part == 0 ? "fourier_real" : "fourier_imaginary", shape, [&](const Indices& i) {
      Indices index = i;
      index.emplace_back(0);
      return state[part](index);
    }));
  return result;
}

}  // namespace tensmith::graph::ops
