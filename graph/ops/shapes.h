/// Shapes whose dims may be symbolic: comparing, broadcasting, axes.
#pragma once

#include <optional>
#include <span>

#include "graph/op_def.h"
#include "graph/ops/refusal.h"

namespace tensmith::graph::ops {

using Shape = std::vector<Expr>;

/// Text form `[1, s, 3]`.
std::string shape_text(const Shape& shape);

/// Provably different: both are numbers and not the same. Neither this nor `same_dim` (graph.h) holds when it depends
/// on symbols.
bool different_dim(const Expr& a, const Expr& b);
/// The number, or nothing when the dim is symbolic.
std::optional<int64_t> known(const Expr& dim);
/// The product of the dims from `begin` to before `end` (1 for none).
Expr product(const Shape& shape, size_t begin = 0, size_t end = SIZE_MAX);
/// A shape of numbers as expressions.
Shape to_shape(std::span<const int64_t> dims);

/// The common shape of tensors under ONNX's multidirectional broadcasting.
/// Errors: `shape-mismatch` for dims that differ, `dynamic-broadcast` where it depends on symbols.
Result<Shape> broadcast_shapes(const std::vector<const Shape*>& shapes);
/// Whether `shape` may be stretched to `target` (unidirectional broadcasting). Errors: as above, naming `what`.
Result<void> check_broadcast_to(const Shape& shape, const Shape& target, const std::string& what);
/// The index into a tensor of shape `shape` that belongs to index `i` of a tensor that it is broadcast to.
Indices broadcast_index(const Shape& shape, const Indices& i);
/// The element of `tensor` that belongs to index `i` of a tensor that it is broadcast to.
Expr broadcast_load(const Tensor& tensor, const Indices& i);

/// The axis counted from the front. Errors: `axis-out-of-range`.
Result<int> normalize_axis(int64_t axis, int rank, const std::string& what = "attribute axis");
/// Axes counted from the front, ascending. Errors: `axis-out-of-range`, `duplicate-axis`.
Result<std::vector<int>> normalize_axes(const std::vector<int64_t>& axes, int rank);

/// Errors: `rank-mismatch` unless low <= rank <= high.
Result<void> check_rank(const TensorType& type, int low, int high, const std::string& what);
/// Errors: `shape-mismatch` or `dynamic-shape` unless the shape is provably `expected`.
Result<void> check_shape(const TensorType& type, const Shape& expected, const std::string& what);

/// Largest number of elements whose values are followed through type rules (TensorType::value).
inline constexpr int64_t kMaxKnownElements = 64;
/// The elements of a small input as far as they are known. Integers and bools: as InferContext::int_values. Floats:
/// whole numbers as kInt64 expressions (sizes on their way through float arithmetic), all others as FloatImm of f64.
std::optional<std::vector<Expr>> known_elements(const InferContext& ctx, int i);
/// The number that an element of that form is, when it is a constant.
std::optional<double> known_number(const Expr& element);
/// A number of a float tensor in that form, rounded to the tensor's type.
Expr float_element(double value, DType dtype);

/// How the elements of an elementwise result follow from those of its inputs.
struct ValueRule {
  /// Over kInt64 expressions; a null result: not known after all.
  std::function<Expr(const std::vector<Expr>&)> whole = nullptr;
  /// `whole` holds for floats too (it gives whole numbers of whole numbers).
  bool whole_of_floats = false;
  /// Over constant numbers, for float inputs. Null: unknown.
  std::function<double(const std::vector<double>&)> numbers = nullptr;
};
/// Fills `type.value` of an elementwise result from the known elements of all inputs (broadcast against each other),
/// when all are known and the result is small.
void propagate_values(const InferContext& ctx, TensorType& type, const ValueRule& rule);
/// Whether an expression over dims (which are never negative) can be seen not to be negative.
bool non_negative(const Expr& e);

}  // namespace tensmith::graph::ops
