#include "graph/ops/winograd.h"

#include <array>

#include "graph/element.h"

namespace tensmith::graph {

namespace {

/// Coefficients of the product of (x - p) over the points but number `left_out` (-1: over all).
std::vector<double> polynomial(const std::vector<double>& points, int left_out) {
  std::vector<double> coefficients{1};
  for (int p = 0; p < static_cast<int>(points.size()); ++p) {
    if (p == left_out) continue;
    coefficients.push_back(0);
    for (size_t k = coefficients.size(); k-- > 0;)
      coefficients[k] = (k > 0 ? coefficients[k - 1] : 0) - points[p] * coefficients[k];
  }
  return coefficients;
}

constexpr int kMostPoints = 6;

double power(double base, int exponent) {
  double result = 1;
  for (int k = 0; k < exponent; ++k) result *= base;
  return result;
}

/// Toom-Cook with the given finite points and infinity. The denominators go to the weights, which are transformed once.
Winograd make(int tile, const std::vector<double>& points) {
  const int n = tile + kWinogradKernel - 1;
  TS_CHECK(static_cast<int>(points.size()) == n - 1) << tile;
  const auto matrix = [](int rows, int columns) {
    return std::vector<std::vector<double>>(rows, std::vector<double>(columns));
  };
  Winograd result{tile, n, matrix(n, n), matrix(n, kWinogradKernel), matrix(tile, n)};
  for (int i = 0; i < n; ++i) {
    const bool infinity = i == n - 1;
    double denominator = 1;
    if (!infinity)
      for (int j = 0; j < n - 1; ++j)
        if (j != i) denominator *= points[i] - points[j];
    const std::vector<double> row = polynomial(points, infinity ? -1 : i);
    for (size_t k = 0; k < row.size(); ++k) result.input[i][k] = row[k];
    for (int k = 0; k < kWinogradKernel; ++k)
      result.weights[i][k] = infinity ? k == kWinogradKernel - 1 : power(points[i], k) / denominator;
    for (int k = 0; k < tile; ++k) result.output[k][i] = infinity ? k == tile - 1 : power(points[i], k);
  }
  return result;
}

}  // namespace

const Winograd& winograd(int tile) {
  static const Winograd two = make(2, {0, 1, -1});
  static const Winograd four = make(4, {0, 0.625, -0.625, 1.5, -1.5});
  TS_CHECK(tile == 2 || tile == 4) << tile;
  return tile == 2 ? two : four;
}

Constant winograd_weights(const Constant& w, const Winograd& transform) {
  const int64_t outs = w.shape()[0], ins = w.shape()[1];
  const int n = transform.points;
  constexpr int r = kWinogradKernel;
  Constant result = Constant::allocate(w.dtype(), {n, n, ins, outs});
  with_element_type(w.dtype(), [&]<typename E>(E) {
    auto* out = static_cast<typename E::Stored*>(result.mutable_data());
    for (int64_t c = 0; c < ins; ++c)
      for (int64_t o = 0; o < outs; ++o) {
        double taps[r][r], half[kMostPoints][r];
        for (int y = 0; y < r; ++y)
          for (int x = 0; x < r; ++x)
            taps[y][x] = E::to_float(load_element<E>(w.data(), ((o * ins + c) * r + y) * r + x));
        for (int a = 0; a < n; ++a)
          for (int x = 0; x < r; ++x) {
            half[a][x] = 0;
            for (int y = 0; y < r; ++y) half[a][x] += transform.weights[a][y] * taps[y][x];
          }
        for (int a = 0; a < n; ++a)
          for (int b = 0; b < n; ++b) {
            double sum = 0;
            for (int x = 0; x < r; ++x) sum += half[a][x] * transform.weights[b][x];
            out[((a * n + b) * ins + c) * outs + o] = E::from_float(sum);
          }
      }
  });
  return result;
}

}  // namespace tensmith::graph
