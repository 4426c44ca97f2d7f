/// Random convolutions and products: what is drawn, the graph of it, and its results in plain loops.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/base/rng.h"

namespace tensmith::bench {

enum class Act : uint8_t { kNone, kRelu, kSigmoid };

/// One convolution (of one or two dims) or product. Sizes that do not belong to the kind are 1.
struct Shape {
  bool is_conv = false;
  // A convolution: dims that are missing (height of a one-dimensional one) are 1.
  int64_t batch = 1, channels = 1, height = 1, width = 1, filters = 1, groups = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;  ///< padding
  bool one_dim = false;
  // A product of [batch] m x k by k x n.
  int64_t m = 1, n = 1, k = 1;
  bool batched = false;  ///< two inputs; otherwise the right matrix is constant
  bool turn_a = false, turn_b = false;
  bool bias = false;
  Act act = Act::kNone;
  bool row_major = false;  ///< layouts as they come, rather than as the compiler picks them

  int64_t out_height() const { return (height + top + bottom - dilation_h * (kernel_h - 1) - 1) / stride_h + 1; }
  int64_t out_width() const { return (width + left + right - dilation_w * (kernel_w - 1) - 1) / stride_w + 1; }
  /// Units: operations of one call; taps on padding are not counted.
  double flops() const;
  /// Elements of the result.
  double results() const;
  /// Units: bytes of inputs, weights and results, each once.
  double bytes() const;
  /// `conv 17x33@9x31 -> 5, 3x3 s2x1 d1x2 p1,0,1,1 g1 bias relu`.
  std::string text() const;
  /// What it is compared with: kind and magnitude of its work: `conv 3x3 1e7`.
  std::string shape_class() const;
};

/// Draws one. Equal seeds give equal shapes.
Shape draw_shape(Rng& rng);

/// The shape as a graph with random weights, and the data that its plain loops need.
struct Problem {
  graph::Graph graph;
  std::vector<std::vector<float>> inputs;  ///< of the graph, in order
  std::vector<double> wanted;              ///< the result in double
};
Problem make_problem(const Shape& shape, Rng& rng);

}  // namespace tensmith::bench
