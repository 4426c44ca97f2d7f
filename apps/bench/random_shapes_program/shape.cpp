#include "apps/bench/random_shapes_program/shape.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tensmith::bench {

namespace {

constexpr double kMostFlops = 3e8, kMostElements = 3e6, kLeastFlops = 2e4;

/// Taps inside the picture, summed over all output positions of one dim.
double taps(int64_t out, int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t before) {
  double count = 0;
  for (int64_t p = 0; p < out; ++p)
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = p * stride + k * dilation - before;
      count += at >= 0 && at < size;
    }
  return count;
}

template <typename T>
T one_of(Rng& rng, std::initializer_list<T> list) {
  return list.begin()[rng.below(list.size())];
}

/// Half of them small and mostly odd, some as networks have them, some large and odd.
int64_t draw_channels(Rng& rng) {
  if (rng.chance(0.5)) return rng.between(1, 70);
  if (rng.chance(0.6)) return one_of<int64_t>(rng, {8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 512});
  return rng.between(65, 400);
}

int64_t draw_size(Rng& rng) { return rng.chance(0.8) ? rng.between(1, 60) : rng.between(30, 150); }

Act draw_act(Rng& rng) { return one_of(rng, {Act::kNone, Act::kRelu, Act::kNone, Act::kSigmoid}); }

Shape draw_conv(Rng& rng) {
  Shape s;
  s.is_conv = true;
  s.batch = rng.chance(0.85) ? 1 : rng.between(2, 4);
  s.channels = draw_channels(rng);
  s.filters = draw_channels(rng);
  s.one_dim = rng.chance(0.1);
  s.height = s.one_dim ? 1 : draw_size(rng);
  s.width = draw_size(rng) * (s.one_dim ? 8 : 1);
  const int64_t kernel = one_of<int64_t>(rng, {1, 1, 3, 3, 3, 5, 7, 2});
  s.kernel_w = kernel;
  s.kernel_h = s.one_dim ? 1 : rng.chance(0.9) ? kernel : one_of<int64_t>(rng, {1, 3, 5});
  const int64_t stride = one_of<int64_t>(rng, {1, 1, 1, 2, 2, 3});
  s.stride_w = stride;
  s.stride_h = s.one_dim ? 1 : rng.chance(0.9) ? stride : 1;
  const int64_t dilation = kernel > 1 && rng.chance(0.2) ? rng.between(2, 3) : 1;
  s.dilation_w = dilation;
  s.dilation_h = s.one_dim ? 1 : dilation;
  const bool same = rng.chance(0.7);  // else any padding, on each side its own
  const auto pad = [&](int64_t size, int64_t by) {
    const int64_t half = (size - 1) * by / 2;
    return same ? half : rng.between(0, half);
  };
  s.left = pad(s.kernel_w, s.dilation_w), s.right = pad(s.kernel_w, s.dilation_w);
  s.top = pad(s.kernel_h, s.dilation_h), s.bottom = pad(s.kernel_h, s.dilation_h);
  if (rng.chance(0.25)) {
    s.filters = s.groups = s.channels;
    if (rng.chance(0.15)) s.filters *= 2;
  } else if (rng.chance(0.15)) {
    s.groups = rng.between(2, 8);
    s.channels = std::max<int64_t>(1, s.channels / s.groups) * s.groups;
    s.filters = std::max<int64_t>(1, s.filters / s.groups) * s.groups;
  }
  s.bias = rng.chance(0.6);
  s.act = draw_act(rng);
  s.row_major = rng.chance(0.3);
  return s;
}

Shape draw_product(Rng& rng) {
  Shape s;
  const auto extent = [&] {
    return rng.chance(0.4)   ? rng.between(1, 130)
           : rng.chance(0.5) ? rng.between(64, 900)
                             : one_of<int64_t>(rng, {32, 64, 128, 256, 384, 512, 768, 1024});
  };
  s.m = rng.chance(0.15) ? 1 : rng.chance(0.2) ? rng.between(2, 15) : extent();
  s.n = extent();
  s.k = extent();
  s.batched = rng.chance(0.35);
  if (s.batched) s.batch = rng.between(1, 12);
  s.turn_a = rng.chance(0.2);
  s.turn_b = rng.chance(0.3);
  s.bias = rng.chance(0.5);
  s.act = draw_act(rng);
  return s;
}

bool suits(const Shape& s) {
  const auto fits = [](int64_t padded, int64_t kernel, int64_t dilation) {
    return padded >= dilation * (kernel - 1) + 1;
  };
  if (!fits(s.height + s.top + s.bottom, s.kernel_h, s.dilation_h)) return false;
  if (!fits(s.width + s.left + s.right, s.kernel_w, s.dilation_w)) return false;
  return s.flops() >= kLeastFlops && s.flops() <= kMostFlops && s.bytes() <= 4 * kMostElements;
}

double activate(Act act, double x) {
  return act == Act::kRelu ? std::max(x, 0.0) : act == Act::kSigmoid ? 1 / (1 + std::exp(-x)) : x;
}

std::vector<float> random_data(Rng& rng, int64_t count, double bound) {
  std::vector<float> data(static_cast<size_t>(count));
  for (float& x : data) x = static_cast<float>(rng.uniform(-bound, bound));
  return data;
}

std::vector<double> plain_conv(const Shape& s, const std::vector<float>& x, const std::vector<float>& w,
                               const std::vector<float>& bias) {
  const int64_t oh = s.out_height(), ow = s.out_width(), per_group = s.channels / s.groups,
                filters = s.filters / s.groups;
  std::vector<double> y(static_cast<size_t>(s.batch * s.filters * oh * ow));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.filters; ++o) {
      double* plane = y.data() + (n * s.filters + o) * oh * ow;
      std::fill(plane, plane + oh * ow, s.bias ? bias[o] : 0.0);
      for (int64_t c = 0; c < per_group; ++c)
        for (int64_t a = 0; a < s.kernel_h; ++a)
          for (int64_t b = 0; b < s.kernel_w; ++b) {
            const double weight = w[((o * per_group + c) * s.kernel_h + a) * s.kernel_w + b];
            const float* from = x.data() + (n * s.channels + o / filters * per_group + c) * s.height * s.width;
            for (int64_t i = 0; i < oh; ++i) {
              const int64_t row = i * s.stride_h + a * s.dilation_h - s.top;
              if (row < 0 || row >= s.height) continue;
              for (int64_t j = 0; j < ow; ++j) {
                const int64_t column = j * s.stride_w + b * s.dilation_w - s.left;
                if (column >= 0 && column < s.width) plane[i * ow + j] += weight * from[row * s.width + column];
              }
            }
          }
    }
  for (double& v : y) v = activate(s.act, v);
  return y;
}

std::vector<double> plain_product(const Shape& s, const std::vector<float>& a, const std::vector<float>& b,
                                  const std::vector<float>& bias) {
  std::vector<double> y(static_cast<size_t>(s.batch * s.m * s.n));
  for (int64_t p = 0; p < s.batch; ++p) {
    const float* left = a.data() + p * s.m * s.k;
    const float* right = b.data() + (s.batched ? p * s.k * s.n : 0);
    for (int64_t i = 0; i < s.m; ++i) {
      double* row = y.data() + (p * s.m + i) * s.n;
      for (int64_t j = 0; j < s.n; ++j) row[j] = s.bias ? bias[j] : 0;
      for (int64_t q = 0; q < s.k; ++q) {
        const double factor = left[s.turn_a ? q * s.m + i : i * s.k + q];
        if (s.turn_b)
          for (int64_t j = 0; j < s.n; ++j) row[j] += factor * right[j * s.k + q];
        else
          for (int64_t j = 0; j < s.n; ++j) row[j] += factor * right[q * s.n + j];
      }
    }
  }
  for (double& v : y) v = activate(s.act, v);
  return y;
}

}  // namespace

double Shape::flops() const {
  if (!is_conv) return 2.0 * static_cast<double>(batch * m * n * k);
  return 2.0 * static_cast<double>(batch * filters * (channels / groups)) *
         taps(out_height(), height, kernel_h, stride_h, dilation_h, top) *
         taps(out_width(), width, kernel_w, stride_w, dilation_w, left);
}

double Shape::results() const {
  return static_cast<double>(is_conv ? batch * filters * out_height() * out_width() : batch * m * n);
}

double Shape::bytes() const {
  const double elements = is_conv ? static_cast<double>(batch * channels * height * width +
                                                        filters * channels / groups * kernel_h * kernel_w +
                                                        batch * filters * out_height() * out_width())
                                  : static_cast<double>(batch * m * k + (batched ? batch : 1) * k * n + batch * m * n);
  return 4 * elements;
}

std::string Shape::text() const {
  char text[256];
  if (is_conv)
    std::snprintf(text, sizeof text, "conv%s n%ld %ld@%ldx%ld -> %ld, %ldx%ld s%ldx%ld d%ldx%ld p%ld,%ld,%ld,%ld g%ld",
                  one_dim ? "1d" : "", batch, channels, height, width, filters, kernel_h, kernel_w, stride_h, stride_w,
                  dilation_h, dilation_w, top, left, bottom, right, groups);
  else
    std::snprintf(text, sizeof text, "product b%ld %ldx%ldx%ld%s%s%s", batch, m, n, k, batched ? " two inputs" : "",
                  turn_a ? " A^T" : "", turn_b ? " B^T" : "");
  return std::string(text) + (bias ? " bias" : "") +
         (act == Act::kRelu      ? " relu"
          : act == Act::kSigmoid ? " sigmoid"
                                 : "") +
         (row_major ? " row-major" : "");
}

std::string Shape::shape_class() const {
  const double work = flops();
  const char* size = work < 3e5 ? "tiny" : work < 3e6 ? "small" : work < 3e7 ? "middle" : "large";
  std::string kind;
  if (!is_conv)
    kind = batched ? "batched product" : m == 1 || n == 1 ? "vector product" : m < 16 ? "skinny product" : "product";
  else if (groups == channels && channels > 1) kind = "depthwise";
  else if (groups > 1) kind = "grouped conv";
  else if (stride_h > 1 || stride_w > 1) kind = "strided conv";
  else kind = kernel_h * kernel_w == 1 ? "1x1 conv" : "conv";
  return kind + ", " + size;
}

Shape draw_shape(Rng& rng) {
  for (;;) {
    const Shape s = rng.chance(0.65) ? draw_conv(rng) : draw_product(rng);
    if (suits(s)) return s;
  }
}

Problem make_problem(const Shape& s, Rng& rng) {
  Problem problem;
  problem.graph.name = "shape";
  graph::GraphEditor edit(problem.graph);
  const auto input = [&](const char* name, const std::vector<int64_t>& shape) {
    graph::TensorType type;
    type.dtype = kFloat32;
    int64_t count = 1;
    for (const int64_t extent : shape) type.shape.push_back(Expr(extent)), count *= extent;
    problem.inputs.push_back(random_data(rng, count, 1));
    return edit.add_input(name, std::move(type));
  };
  const auto weight = [&](const char* name, const std::vector<int64_t>& shape, const std::vector<float>& data) {
    graph::Constant constant = graph::Constant::allocate(kFloat32, shape);
    std::copy(data.begin(), data.end(), static_cast<float*>(constant.mutable_data()));
    return edit.add_constant(std::move(constant), name);
  };
  const auto node = [&](const char* op, std::vector<graph::Value> inputs,
                        std::initializer_list<std::pair<const char*, graph::AttrValue>> attributes = {}) {
    graph::AttrMap attrs;
    for (const auto& [name, value] : attributes) attrs.set(name, value);
    return graph::Value{edit.add(op, std::move(inputs), std::move(attrs)), 0};
  };
  using Sizes = std::vector<int64_t>;
  graph::Value y;
  const int64_t columns = s.is_conv ? s.filters : s.n;
  const std::vector<float> bias = random_data(rng, columns, 0.5);
  if (s.is_conv) {
    const int64_t per_group = s.channels / s.groups;
    const double bound = 1 / std::sqrt(static_cast<double>(per_group * s.kernel_h * s.kernel_w));
    const std::vector<float> w = random_data(rng, s.filters * per_group * s.kernel_h * s.kernel_w, bound);
    const auto spatial = [&](int64_t a, int64_t b) { return s.one_dim ? Sizes{b} : Sizes{a, b}; };
    Sizes in{s.batch, s.channels, s.height, s.width}, filter{s.filters, per_group, s.kernel_h, s.kernel_w};
    if (s.one_dim) in.erase(in.begin() + 2), filter.erase(filter.begin() + 2);
    std::vector<graph::Value> operands{input("x", in), weight("w", filter, w)};
    if (s.bias) operands.push_back(weight("bias", {columns}, bias));
    y = node("Conv", operands,
             {{"kernel_shape", spatial(s.kernel_h, s.kernel_w)},
              {"strides", spatial(s.stride_h, s.stride_w)},
              {"dilations", spatial(s.dilation_h, s.dilation_w)},
              {"pads", s.one_dim ? Sizes{s.left, s.right} : Sizes{s.top, s.left, s.bottom, s.right}},
              {"group", s.groups}});
    problem.wanted = plain_conv(s, problem.inputs[0], w, bias);
  } else {
    const auto matrix = [&](bool turned, int64_t rows, int64_t cols, bool many) {
      Sizes shape = turned ? Sizes{cols, rows} : Sizes{rows, cols};
      if (many) shape.insert(shape.begin(), s.batch);
      return shape;
    };
    const auto turn = [&](graph::Value v, bool many) {
      return node("Transpose", {v}, {{"perm", many ? Sizes{0, 2, 1} : Sizes{1, 0}}});
    };
    graph::Value a = input("a", matrix(s.turn_a, s.m, s.k, s.batched));
    std::vector<float> right;
    graph::Value b;
    if (s.batched) {
      b = input("b", matrix(s.turn_b, s.k, s.n, true));
      right = problem.inputs[1];
    } else {
      right = random_data(rng, s.k * s.n, 1 / std::sqrt(static_cast<double>(s.k)));
      b = weight("b", matrix(s.turn_b, s.k, s.n, false), right);
    }
    if (s.turn_a) a = turn(a, s.batched);
    if (s.turn_b) b = turn(b, s.batched);
    y = node("MatMul", {a, b});
    if (s.bias) y = node("Add", {y, weight("bias", {columns}, bias)});
    problem.wanted = plain_product(s, problem.inputs[0], right, bias);
  }
  if (s.act != Act::kNone) y = node(s.act == Act::kRelu ? "Relu" : "Sigmoid", {y});
  edit.set_outputs({y}, {"y"});
  return problem;
}

}  // namespace tensmith::bench
