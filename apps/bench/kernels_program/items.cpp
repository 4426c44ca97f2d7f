#include "apps/bench/kernels_program/items.h"

#include <functional>

namespace tensmith::bench {

namespace {

Tensor input(const char* name, std::vector<Expr> shape, bool constant = false) {
  return placeholder(name, std::move(shape), kFloat32, constant);
}

Item matmul(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", {m, k}), b = input("B", {k, n}, true);
  const Tensor c =
      sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  const std::string name = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  return {"matmul", name, make_workload("matmul", {a, b}, {c}), {}, {}, 2.0 * static_cast<double>(m * n * k)};
}

struct Conv {
  int64_t c, size, o, kernel, stride;
};

/// Channels-last when `block` is 1, else blocks of so many channels.
Item conv(const Conv& s, bool depthwise, int64_t block) {
  const int64_t pad = s.kernel / 2, out = (s.size + 2 * pad - s.kernel) / s.stride + 1;
  const int64_t o = depthwise ? s.c : s.o;
  const Tensor x = input("X", {1, s.c, s.size, s.size}),
               w = input("W", {o, depthwise ? 1 : s.c, s.kernel, s.kernel}, true);
  const auto row = [&](const Indices& i, const Indices& r, int d) { return i[d] * s.stride + r[d - 1] - pad; };
  const auto inside = [&](const Expr& e) { return e >= 0 && e < s.size; };
  // Reduce axes: channel, y, x.
  const Tensor y = reduce(
      "Y", {1, o, out, out}, {depthwise ? Expr(1) : Expr(s.c), s.kernel, s.kernel}, sum_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) {
        return x(i[0], depthwise ? i[1] : r[0], row(i, r, 2), row(i, r, 3)) * w(i[1], r[0], r[1], r[2]);
      },
      pad ? std::function<Expr(const Indices&, const Indices&)>(
                [&](const Indices& i, const Indices& r) { return inside(row(i, r, 2)) && inside(row(i, r, 3)); })
          : nullptr);
  const Layout layout = block > 1 ? Layout::blocked({0, 1, 2, 3}, 1, block) : Layout::permuted({0, 2, 3, 1});
  const std::string name = std::to_string(s.kernel) + "x" + std::to_string(s.kernel) + " s" + std::to_string(s.stride) +
                           " " + std::to_string(s.c) + "->" + std::to_string(o) + " @" + std::to_string(s.size) +
                           (block > 1 ? " blocks" : "");
  // Work on padding is not counted: it is skipped.
  double taps = 0;
  for (int64_t p = 0; p < out; ++p)
    for (int64_t k = 0; k < s.kernel; ++k) taps += p * s.stride + k - pad >= 0 && p * s.stride + k - pad < s.size;
  const double flops = 2.0 * static_cast<double>(o) * (depthwise ? 1.0 : static_cast<double>(s.c)) * taps * taps;
  return {depthwise ? "depthwise" : "convolution",
          name,
          make_workload("conv", {x, w}, {y}),
          {layout, Layout()},
          {layout},
          flops};
}

std::vector<Item> vector_items() {
  const int64_t rows = 96, columns = 768, keys = 128;
  const double all = static_cast<double>(rows * columns);
  std::vector<Item> items;
  const auto one = [](double v) { return make_const(kFloat32, v); };
  {
    const Tensor x = input("X", {384, keys});
    const Tensor top = reduce("m", {384}, {keys}, max_reducer(kFloat32),
                              [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
    const Tensor e =
        compute("e", {384, keys}, [&](const Indices& i) { return call(Intrinsic::kExp, {x(i[0], i[1]) - top(i[0])}); });
    const Tensor total = sum("s", {384}, {keys}, [&](const Indices& i, const Indices& r) { return e(i[0], r[0]); });
    const Tensor scale = compute("r", {384}, [&](const Indices& i) { return one(1) / total(i[0]); });
    const Tensor y = compute("Y", {384, keys}, [&](const Indices& i) { return e(i[0], i[1]) * scale(i[0]); });
    items.push_back({"vector",
                     "softmax, rows of 128",
                     make_workload("softmax", {x}, {y}),
                     {},
                     {},
                     0,
                     384.0 * keys,
                     16.2,
                     Measure::kCycles});
  }
  {
    const Tensor x = input("X", {rows, columns}), g = input("g", {columns}, true), b = input("b", {columns}, true);
    const Tensor mean =
        compute("mean", {rows},
                [s = sum("s", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); }),
                 &one](const Indices& i) { return s(i[0]) * one(1.0 / columns); });
    const Tensor q = sum("q", {rows}, {columns}, [&](const Indices& i, const Indices& r) {
      return (x(i[0], r[0]) - mean(i[0])) * (x(i[0], r[0]) - mean(i[0]));
    });
    const Tensor inv = compute("inv", {rows}, [&](const Indices& i) {
      return one(1) / call(Intrinsic::kSqrt, {q(i[0]) * one(1.0 / columns) + one(1e-5)});
    });
    const Tensor y = compute("Y", {rows, columns}, [&](const Indices& i) {
      return (x(i[0], i[1]) - mean(i[0])) * inv(i[0]) * g(i[1]) + b(i[1]);
    });
    items.push_back({"vector",
                     "layer norm, rows of 768",
                     make_workload("layer_norm", {x, g, b}, {y}),
                     {},
                     {},
                     0,
                     all,
                     6.4,
                     Measure::kCycles});
  }
  const auto elementwise = [&](const char* name, double cycles, const std::function<Expr(Expr)>& f) {
    const Tensor x = input("X", {4096});
    items.push_back(
        {"vector",
         name,
         make_workload("elementwise", {x}, {compute("Y", {4096}, [&](const Indices& i) { return f(x(i[0])); })}),
         {},
         {},
         0,
         4096,
         cycles,
         Measure::kCycles});
  };
  elementwise("GELU (erf)", 18.2,
              [&](Expr x) { return x * one(0.5) * (one(1) + call(Intrinsic::kErf, {x * one(0.7071067811865476)})); });
  elementwise("sigmoid", 14.4, [](Expr x) { return call(Intrinsic::kSigmoid, {x}); });
  elementwise("exp", 10.8, [](Expr x) { return call(Intrinsic::kExp, {x}); });
  elementwise("tanh", 12.2, [](Expr x) { return call(Intrinsic::kTanh, {x}); });
  elementwise("relu", 2.2, [&](Expr x) { return max(x, one(0)); });
  return items;
}

}  // namespace

std::vector<Item> all_items(int lanes) {
  std::vector<Item> items;
  for (int64_t m : {8, 16, 49, 128, 196, 512, 1024}) items.push_back(matmul(m, 768, 768));
  for (int64_t m : {8, 16}) items.push_back(matmul(m, 384, 768));  // weights that stay in L2: the tile shows
  items.push_back(matmul(1, 3072, 768));  // one row: the weights stream from the last level of cache
  items.push_back(matmul(1, 768, 3072));
  items.push_back(matmul(128, 3072, 768));
  items.push_back(matmul(128, 768, 3072));
  items.push_back(matmul(1024, 1024, 1024));
  for (const Conv& c :
       {Conv{64, 56, 64, 3, 1}, Conv{128, 28, 128, 3, 1}, Conv{256, 14, 256, 3, 1}, Conv{512, 7, 512, 3, 1},
        Conv{128, 56, 128, 3, 2}, Conv{64, 56, 256, 1, 1}, Conv{256, 56, 64, 1, 1}, Conv{512, 28, 128, 1, 1},
        Conv{256, 14, 1024, 1, 1}, Conv{1024, 14, 256, 1, 1}, Conv{512, 7, 2048, 1, 1}, Conv{2048, 7, 512, 1, 1}})
    for (int64_t block : {1, lanes}) items.push_back(conv(c, false, block));
  for (const Conv& c : {Conv{32, 112, 0, 3, 1}, Conv{144, 56, 0, 3, 1}, Conv{192, 28, 0, 3, 1}, Conv{576, 14, 0, 3, 1},
                        Conv{960, 7, 0, 3, 1}, Conv{96, 112, 0, 3, 2}, Conv{144, 56, 0, 3, 2}})
    for (int64_t block : {1, lanes}) items.push_back(conv(c, true, block));
  for (Item& item : vector_items()) items.push_back(std::move(item));
  return items;
}

}  // namespace tensmith::bench
