#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/workloads.h"

namespace tensmith {

namespace {

using Values = std::vector<InterpValue>;

InterpValue f32(size_t count) { return make_interp_value(kFloat32, static_cast<int64_t>(count)); }

Values dense(const Values& in, size_t m, size_t n, size_t k) {
  InterpValue out = f32(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t l = 0; l < k; ++l) sum += in[0].f[i * k + l] * in[1].f[l * n + j];
      out.f[i * n + j] = std::max(sum + in[2].f[j], 0.0);
    }
  return {out};
}

/// Adds a convolution of x [c, h, w] with one filter [c, kernel, kernel] to y [h', w'].
void add_conv(const double* x, const double* filter, const ConvShape& s, int64_t channels, double* y) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < s.out(s.h); ++i)
      for (int64_t j = 0; j < s.out(s.w); ++j)
        for (int64_t ky = 0; ky < s.kernel; ++ky)
          for (int64_t kx = 0; kx < s.kernel; ++kx) {
            const int64_t row = i * s.stride + ky - s.pad, column = j * s.stride + kx - s.pad;
            if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
            y[i * s.out(s.w) + j] += x[(c * s.h + row) * s.w + column] * filter[(c * s.kernel + ky) * s.kernel + kx];
          }
}

Values conv(const Values& in, const ConvShape& s) {
  const int64_t plane = s.out(s.h) * s.out(s.w);
  InterpValue y = f32(static_cast<size_t>(s.n * s.o * plane));
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t o = 0; o < s.o; ++o)
      add_conv(&in[0].f[static_cast<size_t>(n * s.c * s.h * s.w)],
               &in[1].f[static_cast<size_t>(o * s.c * s.kernel * s.kernel)], s, s.c,
               &y.f[static_cast<size_t>((n * s.o + o) * plane)]);
  return {y};
}

Values depthwise(const Values& in, const ConvShape& s) {
  const int64_t plane = s.out(s.h) * s.out(s.w);
  InterpValue y = f32(static_cast<size_t>(s.n * s.c * plane));
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t c = 0; c < s.c; ++c)
      add_conv(&in[0].f[static_cast<size_t>((n * s.c + c) * s.h * s.w)],
               &in[1].f[static_cast<size_t>(c * s.kernel * s.kernel)], s, 1,
               &y.f[static_cast<size_t>((n * s.c + c) * plane)]);
  return {y};
}

InterpValue pointwise(const InterpValue& x, const InterpValue& w, size_t c, size_t o, size_t plane) {
  InterpValue y = f32(o * plane);
  for (size_t out = 0; out < o; ++out)
    for (size_t in = 0; in < c; ++in)
      for (size_t p = 0; p < plane; ++p) y.f[out * plane + p] += x.f[in * plane + p] * w.f[out * c + in];
  return y;
}

Values expand_depthwise_project(const Values& in, int64_t c, int64_t e, int64_t o, int64_t h, int64_t w) {
  const auto relu6 = [](InterpValue& v) {
    for (double& x : v.f) x = std::min(std::max(x, 0.0), 6.0);
  };
  const auto plane = static_cast<size_t>(h * w);
  InterpValue expanded = pointwise(in[0], in[1], static_cast<size_t>(c), static_cast<size_t>(e), plane);
  relu6(expanded);
  InterpValue d = depthwise({expanded, in[2]}, {1, e, h, w, 0, 3, 1, 1})[0];
  relu6(d);
  return {pointwise(d, in[3], static_cast<size_t>(e), static_cast<size_t>(o), plane)};
}

Values softmax(const Values& in, size_t rows, size_t columns) {
  InterpValue y = f32(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    const double* x = &in[0].f[i * columns];
    const double highest = *std::max_element(x, x + columns);
    double sum = 0;
    for (size_t j = 0; j < columns; ++j) sum += std::exp(x[j] - highest);
    for (size_t j = 0; j < columns; ++j) y.f[i * columns + j] = std::exp(x[j] - highest) / sum;
  }
  return {y};
}

Values layer_norm(const Values& in, size_t rows, size_t columns) {
  // The workload's constants are f32.
  const double inverse = static_cast<double>(static_cast<float>(1.0 / static_cast<double>(columns))),
               epsilon = static_cast<double>(1e-5f);
  InterpValue y = f32(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    const double* x = &in[0].f[i * columns];
    double sum = 0, squares = 0;
    for (size_t j = 0; j < columns; ++j) sum += x[j];
    for (size_t j = 0; j < columns; ++j) squares += x[j] * x[j];
    const double mean = sum * inverse, variance = squares * inverse - mean * mean;
    for (size_t j = 0; j < columns; ++j)
      y.f[i * columns + j] = (x[j] - mean) / std::sqrt(variance + epsilon) * in[1].f[j] + in[2].f[j];
  }
  return {y};
}

Values arg_max(const Values& in, size_t rows, size_t columns) {
  InterpValue value = f32(rows), index = make_interp_value(kInt64, static_cast<int64_t>(rows));
  for (size_t i = 0; i < rows; ++i) {
    const double* x = &in[0].f[i * columns];
    const double* best = std::max_element(x, x + columns);  // the first of equals
    value.f[i] = *best;
    index.i[i] = best - x;
  }
  return {value, index};
}

/// Any product: `combine` takes what was found so far, a[i, k] and the element of b.
template <typename F>
Values product(const Values& in, size_t m, size_t n, size_t k, bool b_transposed, double start, F&& combine) {
  InterpValue c = f32(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double value = start;
      for (size_t l = 0; l < k; ++l)
        value = combine(value, in[0].f[i * k + l], in[1].f[b_transposed ? j * k + l : l * n + j]);
      c.f[i * n + j] = value;
    }
  return {c};
}

Values int8_product(const Values& in, size_t m, size_t n, size_t k) {
  InterpValue c = make_interp_value(kInt32, static_cast<int64_t>(m * n));
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      c.i[i * n + j] = in[2].i[j];
      for (size_t l = 0; l < k; ++l) c.i[i * n + j] += in[0].i[i * k + l] * in[1].i[l * n + j];
    }
  return {c};
}

Values complex_product(const Values& in, size_t m, size_t n, size_t k) {
  InterpValue re = f32(m * n), im = f32(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t l = 0; l < k; ++l) {
        const double x = in[0].f[i * k + l], y = in[1].f[i * k + l], u = in[2].f[l * n + j], v = in[3].f[l * n + j];
        re.f[i * n + j] += x * u - y * v;
        im.f[i * n + j] += x * v + y * u;
      }
  return {re, im};
}

Values attention(const Values& in, size_t batches, size_t rows, size_t places, size_t depth, size_t width) {
  InterpValue out = f32(batches * rows * width);
  for (size_t row = 0; row < batches * rows; ++row) {
    const size_t batch = row / rows;
    InterpValue scores = f32(places);
    for (size_t j = 0; j < places; ++j) {
      for (size_t l = 0; l < depth; ++l)
        scores.f[j] += in[0].f[row * depth + l] * in[1].f[(batch * places + j) * depth + l];
      scores.f[j] = scores.f[j] * 0.5 + in[2].f[j];
    }
    const Values shares = softmax({scores}, 1, places);
    for (size_t j = 0; j < places; ++j)
      for (size_t c = 0; c < width; ++c)
        out.f[row * width + c] += shares[0].f[j] * in[3].f[(batch * places + j) * width + c];
  }
  return {out};
}

}  // namespace

std::vector<WorkloadCase> workload_cases() {
  const ConvShape padded = {2, 3, 7, 6, 5, 3, 1, 1}, strided = {1, 2, 9, 8, 3, 3, 2, 1},
                  wide = {1, 4, 8, 8, 0, 5, 1, 2};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto max_plus = [](double c, double a, double b) { return std::max(c, a + b); };
  const auto abs_difference = [](double c, double a, double b) { return c + std::fabs(a - b); };
  return {
      {"dense", dense_workload(7, 19, 23), {}, [](const Values& in) { return dense(in, 7, 19, 23); }},
      {"dense with symbolic M",
       dense_workload(Var("M"), 8, 5),
       {11},
       [](const Values& in) { return dense(in, 11, 8, 5); }},
      {"padded conv", conv_workload(padded), {}, [=](const Values& in) { return conv(in, padded); }},
      {"strided conv", conv_workload(strided), {}, [=](const Values& in) { return conv(in, strided); }},
      {"depthwise", depthwise_workload(wide), {}, [=](const Values& in) { return depthwise(in, wide); }},
      {"expand, depthwise, project",
       expand_depthwise_project_workload(3, 6, 4, 5, 7),
       {},
       [](const Values& in) { return expand_depthwise_project(in, 3, 6, 4, 5, 7); }},
      {"softmax", softmax_workload(5, 13), {}, [](const Values& in) { return softmax(in, 5, 13); }},
      {"softmax with symbolic rows",
       softmax_workload(Var("N"), 6),
       {4},
       [](const Values& in) { return softmax(in, 4, 6); }},
      {"layer norm", layer_norm_workload(4, 17), {}, [](const Values& in) { return layer_norm(in, 4, 17); }},
      {"arg max", arg_max_workload(6, 9), {}, [](const Values& in) { return arg_max(in, 6, 9); }},
      {"max-plus product",
       max_plus_workload(5, 6, 7),
       {},
       [=](const Values& in) { return product(in, 5, 6, 7, false, -kInf, max_plus); }},
      {"sum of |a - b|",
       abs_difference_workload(5, 4, 9),
       {},
       [=](const Values& in) { return product(in, 5, 4, 9, true, 0, abs_difference); }},
      {"attention",
       attention_workload(2, 21, 35, 9, 18),
       {},
       [](const Values& in) { return attention(in, 2, 21, 35, 9, 18); }},
      {"u8 * s8 into s32",
       int8_product_workload(4, 6, 30),
       {},
       [](const Values& in) { return int8_product(in, 4, 6, 30); }},
      {"complex product",
       complex_product_workload(4, 3, 8),
       {},
       [](const Values& in) { return complex_product(in, 4, 3, 8); }},
  };
}

}  // namespace tensmith
