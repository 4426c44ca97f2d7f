/// The workloads that the layers below the graph must handle, each with its values by plain loops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tensor/interpret.h"
#include "tensor/workload.h"

namespace tensmith {

/// `R = max(A * B + bias, 0)`. Shapes: A [m, k], B [k, n] constant, bias [n] constant, R [m, n].
Workload dense_workload(Expr m, int64_t n, int64_t k);
/// A dense layer whose constant weights lie in memory as `stored` and are widened, with a scale by column.
Workload narrow_dense_workload(int64_t m, int64_t n, int64_t k, DType stored);
/// Convolution whose padding is a where-clause. Shapes: X [n, c, h, w], W [o, c, kernel, kernel] constant, Y [n, o, h',
/// w'].
struct ConvShape {
  int64_t n, c, h, w, o, kernel, stride, pad;
  int64_t out(int64_t size) const { return (size + 2 * pad - kernel) / stride + 1; }
};
Workload conv_workload(const ConvShape& shape);
/// One filter a channel, otherwise as conv_workload (`o` is not used).
Workload depthwise_workload(const ConvShape& shape);
/// 1x1 convolution with relu6, depthwise 3x3 with padding and relu6, 1x1 convolution. Shapes: X [c, h, w], O [o, h, w].
Workload expand_depthwise_project_workload(int64_t c, int64_t expanded, int64_t o, int64_t h, int64_t w);
/// Row by row: maximum, exponentials, their sum, quotient.
Workload softmax_workload(Expr rows, int64_t columns);
/// One reduction with two values (sum, sum of squares) a row, then `(x - mean) / sqrt(variance + 1e-5) * gamma + beta`.
Workload layer_norm_workload(Expr rows, int64_t columns);
/// The index of the first maximum of each row, with the maximum itself. Outputs: value f32 [rows], index i64 [rows].
Workload arg_max_workload(int64_t rows, int64_t columns);
/// `max over k of A[i, k] + B[k, j]`.
Workload max_plus_workload(int64_t m, int64_t n, int64_t k);
/// `sum over k of |A[i, k] - B[j, k]|`.
Workload abs_difference_workload(int64_t m, int64_t n, int64_t k);
/// softmax over the last axis of `Q K / 2 + mask`, times V, in each of the batches. Shapes: Q [batches, rows, depth], K
/// [batches, places, depth], mask [places], V [batches, places, width].
Workload attention_workload(int64_t batches, int64_t rows, int64_t places, int64_t depth, int64_t width);
/// u8 * s8 into s32, starting from a bias.
Workload int8_product_workload(int64_t m, int64_t n, int64_t k);
/// Product of complex matrices held as separate parts; the reduction carries two values. Outputs: real, imaginary [m,
/// n].
Workload complex_product_workload(int64_t m, int64_t n, int64_t k);

/// A workload of fixed sizes with values for its symbolic dims and its outputs by plain loops in double (exact
/// integers).
struct WorkloadCase {
  std::string name;
  Workload workload;
  std::vector<int64_t> dims;
  std::function<std::vector<InterpValue>(const std::vector<InterpValue>& inputs)> expected;
};
/// All of the above in small, odd sizes.
std::vector<WorkloadCase> workload_cases();

/// The number of elements of a buffer for given values of the workload's dims.
int64_t count_elements(const Workload& workload, const std::vector<int64_t>& dims, const Buffer& buffer);
/// Inputs for a workload: floats from -1 to 1 (exact in f32), integers of the whole range of narrow types.
std::vector<InterpValue> random_inputs(const Workload& workload, const std::vector<int64_t>& dims, uint64_t seed);
/// Zeroed outputs.
std::vector<InterpValue> zero_outputs(const Workload& workload, const std::vector<int64_t>& dims);

/// Adds GoogleTest failures where floats differ by more than `tolerance` (relative to max(1, |expected|)) or integers
/// at all.
void expect_close(const InterpValue& actual, const InterpValue& expected, double tolerance, const std::string& what);

}  // namespace tensmith
