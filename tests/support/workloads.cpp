#include "tests/support/workloads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tensor/walk.h"

namespace tensmith {

namespace {

Expr constant(double value) { return make_const(kFloat32, value); }
Expr relu6(const Expr& x) { return min(max(x, constant(0)), constant(6)); }
Expr inside(const Expr& i, int64_t size) { return i >= 0 && i < size; }

/// A reduction over pairs of values that are summed each on its own.
Reducer pair_sum(DType dtype) {
  const Var a("a", dtype), b("b", dtype), c("c", dtype), d("d", dtype);
  return {"pair_sum", {a, b}, {c, d}, {Expr(a) + Expr(c), Expr(b) + Expr(d)}, {make_zero(dtype), make_zero(dtype)}};
}

}  // namespace

Workload dense_workload(Expr m, int64_t n, int64_t k) {
  const Tensor a = placeholder("A", {m, k}, kFloat32), b = placeholder("B", {k, n}, kFloat32, /*is_constant=*/true);
  const Tensor bias = placeholder("bias", {n}, kFloat32, /*is_constant=*/true);
  const Tensor c =
      sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  const Tensor out =
      compute("R", {m, n}, [&](const Indices& i) { return max(c(i[0], i[1]) + bias(i[1]), constant(0)); });
  return make_workload("dense", {a, b, bias}, {out});
}

Workload narrow_dense_workload(int64_t m, int64_t n, int64_t k, DType stored) {
  const Tensor a = placeholder("A", {m, k}, kFloat32), b = placeholder("B", {k, n}, stored, /*is_constant=*/true);
  const Tensor wide = compute("wide", {k, n}, [&](const Indices& i) { return cast(kFloat32, b(i)); });
  const Tensor scale = placeholder("scale", {n}, kFloat32, /*is_constant=*/true);
  const Tensor c =
      sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * wide(r[0], i[1]); });
  const Tensor out = compute("R", {m, n}, [&](const Indices& i) { return c(i[0], i[1]) * scale(i[1]); });
  return make_workload("narrow_dense", {a, b, scale}, {out});
}

Workload conv_workload(const ConvShape& s) {
  const Tensor x = placeholder("X", {s.n, s.c, s.h, s.w}, kFloat32);
  const Tensor w = placeholder("W", {s.o, s.c, s.kernel, s.kernel}, kFloat32, /*is_constant=*/true);
  const auto row = [&](const Indices& i, const Indices& r) { return i[2] * s.stride + r[1] - s.pad; };
  const auto column = [&](const Indices& i, const Indices& r) { return i[3] * s.stride + r[2] - s.pad; };
  const Tensor y = reduce(
      "Y", {s.n, s.o, s.out(s.h), s.out(s.w)}, {s.c, s.kernel, s.kernel}, sum_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) {
        return x(i[0], r[0], row(i, r), column(i, r)) * w(i[1], r[0], r[1], r[2]);
      },
      [&](const Indices& i, const Indices& r) { return inside(row(i, r), s.h) && inside(column(i, r), s.w); });
  return make_workload("conv", {x, w}, {y});
}

Workload depthwise_workload(const ConvShape& s) {
  const Tensor x = placeholder("X", {s.n, s.c, s.h, s.w}, kFloat32);
  const Tensor w = placeholder("W", {s.c, s.kernel, s.kernel}, kFloat32, /*is_constant=*/true);
  const auto row = [&](const Indices& i, const Indices& r) { return i[2] * s.stride + r[0] - s.pad; };
  const auto column = [&](const Indices& i, const Indices& r) { return i[3] * s.stride + r[1] - s.pad; };
  const Tensor y = reduce(
      "Y", {s.n, s.c, s.out(s.h), s.out(s.w)}, {s.kernel, s.kernel}, sum_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) { return x(i[0], i[1], row(i, r), column(i, r)) * w(i[1], r[0], r[1]); },
      [&](const Indices& i, const Indices& r) { return inside(row(i, r), s.h) && inside(column(i, r), s.w); });
  return make_workload("depthwise", {x, w}, {y});
}

Workload expand_depthwise_project_workload(int64_t c, int64_t expanded, int64_t o, int64_t h, int64_t w) {
  const Tensor x = placeholder("X", {c, h, w}, kFloat32);
  const Tensor w1 = placeholder("W1", {expanded, c}, kFloat32, true),
               w2 = placeholder("W2", {expanded, 3, 3}, kFloat32, true);
  const Tensor w3 = placeholder("W3", {o, expanded}, kFloat32, true);
  const Tensor e = sum("E", {expanded, h, w}, {c},
                       [&](const Indices& i, const Indices& r) { return x(r[0], i[1], i[2]) * w1(i[0], r[0]); });
  const Tensor e6 = compute("E6", {expanded, h, w}, [&](const Indices& i) { return relu6(e(i)); });
  const Tensor d = reduce(
      "D", {expanded, h, w}, {3, 3}, sum_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) {
        return e6(i[0], i[1] + r[0] - 1, i[2] + r[1] - 1) * w2(i[0], r[0], r[1]);
      },
      [&](const Indices& i, const Indices& r) { return inside(i[1] + r[0] - 1, h) && inside(i[2] + r[1] - 1, w); });
  const Tensor d6 = compute("D6", {expanded, h, w}, [&](const Indices& i) { return relu6(d(i)); });
  const Tensor out = sum("O", {o, h, w}, {expanded},
                         [&](const Indices& i, const Indices& r) { return d6(r[0], i[1], i[2]) * w3(i[0], r[0]); });
  return make_workload("expand_depthwise_project", {x, w1, w2, w3}, {out});
}

Workload softmax_workload(Expr rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  const Tensor m = reduce("m", {rows}, {columns}, max_reducer(kFloat32),
                          [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
  const Tensor e =
      compute("e", {rows, columns}, [&](const Indices& i) { return call(Intrinsic::kExp, {x(i) - m(i[0])}); });
  const Tensor s = sum("s", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return e(i[0], r[0]); });
  const Tensor y = compute("Y", {rows, columns}, [&](const Indices& i) { return e(i) / s(i[0]); });
  return make_workload("softmax", {x}, {y});
}

Workload layer_norm_workload(Expr rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  const Tensor gamma = placeholder("gamma", {columns}, kFloat32, true),
               beta = placeholder("beta", {columns}, kFloat32, true);
  const auto body = [&](const Indices& i, const Indices& r) {
    return std::vector<Expr>{x(i[0], r[0]), x(i[0], r[0]) * x(i[0], r[0])};
  };
  const std::vector<Tensor> sums = reduce_multi("sums", {rows}, {{columns}, body, pair_sum(kFloat32)});
  const Expr inverse = constant(1.0 / static_cast<double>(columns));
  const Tensor y = compute("Y", {rows, columns}, [&](const Indices& i) {
    const Expr mean = sums[0](i[0]) * inverse;
    const Expr variance = sums[1](i[0]) * inverse - mean * mean;
    return (x(i) - mean) * call(Intrinsic::kRsqrt, {variance + constant(1e-5)}) * gamma(i[1]) + beta(i[1]);
  });
  return make_workload("layer_norm", {x, gamma, beta}, {y});
}

Workload arg_max_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  const auto body = [&](const Indices& i, const Indices& r) { return std::vector<Expr>{x(i[0], r[0]), r[0]}; };
  return make_workload(
      "arg_max", {x},
      reduce_multi("best", {rows}, {{columns}, body, arg_max_reducer(kFloat32, kInt64, /*last_index=*/false)}));
}

Workload max_plus_workload(int64_t m, int64_t n, int64_t k) {
  const Tensor a = placeholder("A", {m, k}, kFloat32), b = placeholder("B", {k, n}, kFloat32);
  const Tensor c = reduce("C", {m, n}, {k}, max_reducer(kFloat32),
                          [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) + b(r[0], i[1]); });
  return make_workload("max_plus", {a, b}, {c});
}

Workload abs_difference_workload(int64_t m, int64_t n, int64_t k) {
  const Tensor a = placeholder("A", {m, k}, kFloat32), b = placeholder("B", {n, k}, kFloat32);
  const Tensor c = sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) {
    return call(Intrinsic::kAbs, {a(i[0], r[0]) - b(i[1], r[0])});
  });
  return make_workload("abs_difference", {a, b}, {c});
}

Workload attention_workload(int64_t batches, int64_t rows, int64_t places, int64_t depth, int64_t width) {
  const Tensor q = placeholder("Q", {batches, rows, depth}, kFloat32),
               k = placeholder("K", {batches, places, depth}, kFloat32), mask = placeholder("mask", {places}, kFloat32),
               v = placeholder("V", {batches, places, width}, kFloat32);
  const Tensor products = sum("products", {batches, rows, places}, {depth}, [&](const Indices& i, const Indices& r) {
    return q(i[0], i[1], r[0]) * k(i[0], i[2], r[0]);
  });
  const Tensor scores = compute("scores", {batches, rows, places},
                                [&](const Indices& i) { return products(i) * constant(0.5) + mask(i[2]); });
  const Tensor largest = reduce("largest", {batches, rows}, {places}, max_reducer(kFloat32),
                                [&](const Indices& i, const Indices& r) { return scores(i[0], i[1], r[0]); });
  const Tensor terms = compute("terms", {batches, rows, places}, [&](const Indices& i) {
    return call(Intrinsic::kExp, {scores(i) - largest(i[0], i[1])});
  });
  const Tensor total = sum("total", {batches, rows}, {places},
                           [&](const Indices& i, const Indices& r) { return terms(i[0], i[1], r[0]); });
  const Tensor shares =
      compute("shares", {batches, rows, places}, [&](const Indices& i) { return terms(i) / total(i[0], i[1]); });
  const Tensor y = sum("Y", {batches, rows, width}, {places}, [&](const Indices& i, const Indices& r) {
    return shares(i[0], i[1], r[0]) * v(i[0], r[0], i[2]);
  });
  return make_workload("attention", {q, k, mask, v}, {y});
}

Workload int8_product_workload(int64_t m, int64_t n, int64_t k) {
  const Tensor a = placeholder("A", {m, k}, kUInt8), b = placeholder("B", {k, n}, kInt8, true),
               bias = placeholder("bias", {n}, kInt32, true);
  Reduction reduction{{k},
                      [&](const Indices& i, const Indices& r) {
                        return std::vector<Expr>{cast(kInt32, a(i[0], r[0])) * cast(kInt32, b(r[0], i[1]))};
                      },
                      sum_reducer(kInt32)};
  reduction.initial = [&](const Indices& i) { return std::vector<Expr>{bias(i[1])}; };
  return make_workload("int8_product", {a, b, bias}, reduce_multi("C", {m, n}, reduction));
}

Workload complex_product_workload(int64_t m, int64_t n, int64_t k) {
  const Tensor ar = placeholder("Ar", {m, k}, kFloat32), ai = placeholder("Ai", {m, k}, kFloat32);
  const Tensor br = placeholder("Br", {k, n}, kFloat32), bi = placeholder("Bi", {k, n}, kFloat32);
  const auto body = [&](const Indices& i, const Indices& r) {
    const Expr x = ar(i[0], r[0]), y = ai(i[0], r[0]), u = br(r[0], i[1]), v = bi(r[0], i[1]);
    return std::vector<Expr>{x * u - y * v, x * v + y * u};
  };
  return make_workload("complex_product", {ar, ai, br, bi}, reduce_multi("C", {m, n}, {{k}, body, pair_sum(kFloat32)}));
}

int64_t count_elements(const Workload& workload, const std::vector<int64_t>& dims, const Buffer& buffer) {
  VarMap map;
  for (size_t k = 0; k < dims.size(); ++k) map[workload.dims.at(k).operator->()] = Expr(dims[k]);
  int64_t count = 1;
  for (const Expr& extent : buffer->shape) {
    // Rebuilt by the operators that fold constants.
    const Expr value = rewrite(substitute(extent, map), [](const Expr& e) -> Expr {
      const auto* node = e.as<Binary>();
      if (!node) return e;
      switch (node->op) {
        case BinaryOp::kAdd: return node->a + node->b;
        case BinaryOp::kSub: return node->a - node->b;
        case BinaryOp::kMul: return node->a * node->b;
        case BinaryOp::kFloorDiv: return floor_div(node->a, node->b);
        default: return e;
      }
    });
    int64_t size = 0;
    EXPECT_TRUE(as_const_int(value, &size)) << buffer->name;
    count *= size;
  }
  return count;
}

std::vector<InterpValue> random_inputs(const Workload& workload, const std::vector<int64_t>& dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<InterpValue> values;
  for (const Tensor& input : workload.inputs) {
    const DType type = input.dtype();
    InterpValue value = make_interp_value(type, count_elements(workload, dims, input.buffer()));
    for (double& f : value.f) f = static_cast<double>(static_cast<int64_t>(random() % 2001) - 1000) / 1024.0;
    for (int64_t& i : value.i) {
      const int bits = std::min<int>(type.bits, 16);
      i = type.is_bool()
              ? static_cast<int64_t>(random() % 2)
              : static_cast<int64_t>(random() >> (64 - bits)) - (type.is_int() ? int64_t{1} << (bits - 1) : 0);
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<InterpValue> zero_outputs(const Workload& workload, const std::vector<int64_t>& dims) {
  std::vector<InterpValue> values;
  for (const Tensor& output : workload.outputs)
    values.push_back(make_interp_value(output.dtype(), count_elements(workload, dims, output.buffer())));
  return values;
}

void expect_close(const InterpValue& actual, const InterpValue& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.dtype, expected.dtype) << what;
  ASSERT_EQ(actual.f.size(), expected.f.size()) << what;
  for (size_t k = 0; k < expected.f.size(); ++k) {
    if (std::isnan(expected.f[k]) && std::isnan(actual.f[k])) continue;
    if (expected.f[k] == actual.f[k]) continue;  // infinities
    ASSERT_LE(std::fabs(actual.f[k] - expected.f[k]), tolerance * std::max(1.0, std::fabs(expected.f[k])))
        << what << "[" << k << "]: expected " << expected.f[k] << ", got " << actual.f[k];
  }
  ASSERT_EQ(actual.i, expected.i) << what;
}

}  // namespace tensmith
