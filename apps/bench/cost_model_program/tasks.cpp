#include "apps/bench/cost_model_program/tasks.h"

#include <functional>

namespace tensmith::bench {

namespace {

Tensor input(const char* name, std::vector<Expr> shape, bool constant = false) {
  return placeholder(name, std::move(shape), kFloat32, constant);
}
Expr f32(double value) { return make_const(kFloat32, value); }

Workload product(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", {m, k}), b = input("B", {k, n}, true), bias = input("bias", {n}, true);
  const Tensor c =
      sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return make_workload("product", {a, b, bias},
                       {compute("R", {m, n}, [&](const Indices& i) { return max(c(i) + bias(i[1]), f32(0)); })});
}

/// Both operands are computed by somebody else, so neither can be packed beforehand.
Workload batched_product(int64_t batch, int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", {batch, m, k}), b = input("B", {batch, k, n});
  return make_workload("batched", {a, b}, {sum("C", {batch, m, n}, {k}, [&](const Indices& i, const Indices& r) {
                         return a(i[0], i[1], r[0]) * b(i[0], r[0], i[2]);
                       })});
}

struct ConvSizes {
  int64_t c, size, o, kernel, stride;
};

Workload conv(const ConvSizes& s, bool depthwise) {
  const int64_t pad = s.kernel / 2, out = (s.size + 2 * pad - s.kernel) / s.stride + 1;
  const int64_t o = depthwise ? s.c : s.o;
  const Tensor x = input("X", {1, s.c, s.size, s.size}),
               w = input("W", {o, depthwise ? 1 : s.c, s.kernel, s.kernel}, true);
  const auto at = [&](const Indices& i, const Indices& r, int d) { return i[d] * s.stride + r[d - 1] - pad; };
  const auto inside = [&](const Expr& e) { return e >= 0 && e < s.size; };
  const Tensor y = reduce(
      "Y", {1, o, out, out}, {depthwise ? Expr(1) : Expr(s.c), s.kernel, s.kernel}, sum_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) {
        return x(i[0], depthwise ? i[1] : r[0], at(i, r, 2), at(i, r, 3)) * w(i[1], r[0], r[1], r[2]);
      },
      pad ? std::function<Expr(const Indices&, const Indices&)>(
                [&](const Indices& i, const Indices& r) { return inside(at(i, r, 2)) && inside(at(i, r, 3)); })
          : nullptr);
  return make_workload("conv", {x, w},
                       {compute("R", {1, o, out, out}, [&](const Indices& i) { return max(y(i), f32(0)); })});
}

Workload grouped_conv(int64_t groups, int64_t in, int64_t out, int64_t size) {
  const Tensor x = input("X", {groups, in, size, size}), w = input("W", {groups, out, in, 3, 3}, true);
  const int64_t to = size - 2;
  return make_workload("grouped", {x, w},
                       {sum("Y", {groups, out, to, to}, {in, 3, 3}, [&](const Indices& i, const Indices& r) {
                         return x(i[0], r[0], i[2] + r[1], i[3] + r[2]) * w(i[0], i[1], r[0], r[1], r[2]);
                       })});
}

Workload pool(int64_t channels, int64_t size) {
  const Tensor x = input("X", {1, channels, size, size});
  const int64_t out = (size - 3) / 2 + 1;
  return make_workload(
      "pool", {x},
      {reduce("P", {1, channels, out, out}, {3, 3}, max_reducer(kFloat32),
              [&](const Indices& i, const Indices& r) { return x(i[0], i[1], i[2] * 2 + r[0], i[3] * 2 + r[1]); })});
}

Workload softmax(int64_t rows, int64_t columns) {
  const Tensor x = input("X", {rows, columns});
  const Tensor top = reduce("m", {rows}, {columns}, max_reducer(kFloat32),
                            [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
  const Tensor e = compute("e", {rows, columns},
                           [&](const Indices& i) { return call(Intrinsic::kExp, {x(i[0], i[1]) - top(i[0])}); });
  const Tensor total = sum("s", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return e(i[0], r[0]); });
  return make_workload("softmax", {x},
                       {compute("Y", {rows, columns}, [&](const Indices& i) { return e(i[0], i[1]) / total(i[0]); })});
}

Workload layer_norm(int64_t rows, int64_t columns) {
  const Tensor x = input("X", {rows, columns}), g = input("g", {columns}, true), b = input("b", {columns}, true);
  const Tensor s = sum("s", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
  const Expr share = f32(1.0 / static_cast<double>(columns));
  const Tensor mean = compute("mean", {rows}, [&](const Indices& i) { return s(i[0]) * share; });
  const Tensor q = sum("q", {rows}, {columns}, [&](const Indices& i, const Indices& r) {
    return (x(i[0], r[0]) - mean(i[0])) * (x(i[0], r[0]) - mean(i[0]));
  });
  const Tensor inv = compute(
      "inv", {rows}, [&](const Indices& i) { return f32(1) / call(Intrinsic::kSqrt, {q(i[0]) * share + f32(1e-5)}); });
  return make_workload("layer_norm", {x, g, b}, {compute("Y", {rows, columns}, [&](const Indices& i) {
                         return (x(i[0], i[1]) - mean(i[0])) * inv(i[0]) * g(i[1]) + b(i[1]);
                       })});
}

Workload gelu(int64_t rows, int64_t columns) {
  const Tensor x = input("X", {rows, columns}), bias = input("bias", {columns}, true);
  const Tensor v = compute("V", {rows, columns}, [&](const Indices& i) { return x(i) + bias(i[1]); });
  return make_workload("gelu", {x, bias}, {compute("Y", {rows, columns}, [&](const Indices& i) {
                         return v(i) * f32(0.5) * (f32(1) + call(Intrinsic::kErf, {v(i) * f32(0.7071067811865476)}));
                       })});
}

Workload transpose(int64_t rows, int64_t columns) {
  const Tensor x = input("X", {rows, columns});
  return make_workload("transpose", {x},
                       {compute("T", {columns, rows}, [&](const Indices& i) { return x(i[1], i[0]) + f32(1); })});
}

Workload row_sums(int64_t rows, int64_t columns) {
  const Tensor x = input("X", {rows, columns});
  return make_workload(
      "row_sums", {x},
      {sum("S", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return x(i[0], r[0]) * x(i[0], r[0]); })});
}

Workload column_sums(int64_t rows, int64_t columns) {
  const Tensor x = input("X", {rows, columns});
  return make_workload(
      "column_sums", {x},
      {sum("S", {columns}, {rows}, [&](const Indices& i, const Indices& r) { return x(r[0], i[0]); })});
}

}  // namespace

std::vector<JudgedTask> judged_tasks(const Target& target) {
  std::vector<JudgedTask> tasks;
  const auto add = [&](const std::string& name, Workload workload, int threads = 1, Layout layout = {}) {
    ScheduleRequest request;
    request.target = target;
    request.threads = threads;
    if (layout.rank()) {
      request.input_layouts.assign(workload.inputs.size(), Layout());
      request.input_layouts[0] = layout;
      request.output_layouts = {layout};
    }
    tasks.push_back(
        {threads > 1 ? name + " x" + std::to_string(threads) : name, std::move(workload), std::move(request)});
  };
  const Layout last = Layout::permuted({0, 2, 3, 1}), blocks = Layout::blocked({0, 1, 2, 3}, 1, target.lanes(4));
  add("product 128x768x768", product(128, 768, 768));
  add("product 512x512x512", product(512, 512, 512));
  add("product 97x131x257", product(97, 131, 257));
  add("product 1x1000x2048", product(1, 1000, 2048));
  add("batched product 12x128x64x128", batched_product(12, 128, 64, 128));
  add("conv 3x3 64@28 last", conv({64, 28, 64, 3, 1}, false), 1, last);
  add("conv 3x3 64@28 blocks", conv({64, 28, 64, 3, 1}, false), 1, blocks);
  add("conv 1x1 256->64@28 last", conv({256, 28, 64, 1, 1}, false), 1, last);
  add("conv 7x7 s2 3->64@112", conv({3, 112, 64, 7, 2}, false), 1);
  add("depthwise 3x3 96@56 last", conv({96, 56, 0, 3, 1}, true), 1, last);
  add("depthwise 3x3 s2 144@28 blocks", conv({144, 28, 0, 3, 2}, true), 1, blocks);
  add("grouped 8x16->16@28", grouped_conv(8, 16, 16, 28));
  add("pool 64@56", pool(64, 56));
  add("softmax 384x128", softmax(384, 128));
  add("layer norm 96x768", layer_norm(96, 768));
  add("gelu 128x3072", gelu(128, 3072));
  add("transpose 700x900", transpose(700, 900));
  add("row sums 200x1500", row_sums(200, 1500));
  add("column sums 1500x200", column_sums(1500, 200));
  add("product 196x256x512", product(196, 256, 512), 2);
  add("conv 3x3 128@14 last", conv({128, 14, 128, 3, 1}, false), 2, last);
  add("softmax 768x197", softmax(768, 197), 2);
  return tasks;
}

}  // namespace tensmith::bench
