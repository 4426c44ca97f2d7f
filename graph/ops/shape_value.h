/// Small integer tensors whose elements are known as expressions over dims (TensorType::value): reading them and
/// passing them on. Elements are in row-major order; tensors of any rank are followed, so that pads written as an [n,
/// 2] matrix are understood.
#pragma once

#include <optional>

#include "graph/op_def.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

using Elements = std::vector<Expr>;

/// The elements of an integer or bool tensor of any rank, from its constant or its type. Nothing when unknown.
std::optional<Elements> int_elements(const TensorType* type, const Constant* constant);
std::optional<Elements> int_elements(const InferContext& ctx, int input);
std::optional<Elements> int_elements(const ComputeContext& ctx, int input);
/// The same where all elements are numbers.
std::optional<std::vector<int64_t>> known_numbers(const InferContext& ctx, int input);
std::optional<std::vector<int64_t>> known_numbers(const ComputeContext& ctx, int input);

/// The elements of a float tensor, when all are numbers.
std::optional<std::vector<double>> known_floats(const TensorType* type, const Constant* constant);
template <typename Context>
const Constant* constant_at(const Context& ctx, int input) {
  return input < static_cast<int>(ctx.constants.size()) ? ctx.constants[static_cast<size_t>(input)] : nullptr;
}
/// The one element of a float or integer constant. Nothing when it is not constant or has several elements.
std::optional<double> known_float(const Constant* constant);

/// Elements of a tensor of any type, in the form of TensorType::value.
std::optional<Elements> any_elements(const InferContext& ctx, int input);
/// Whether there are few enough elements to be followed.
bool follows_elements(const TensorType& type);
/// Fills `out.value` where element k of `out` is element `source(k)` of the input, when these are known.
void pass_elements(const InferContext& ctx, int input, TensorType& out, const std::function<int64_t(int64_t)>& source);
/// The same in equal order.
void pass_elements(const InferContext& ctx, int input, TensorType& out);
/// Fills `out.value` when the count fits.
void set_elements(TensorType& out, Elements elements);

/// For `supports`: the inputs given by position steer the output shape, so their elements must be known.
/// Errors: `dynamic-shape` naming the first one that is given and unknown.
Result<void> require_elements(const InferContext& ctx, std::initializer_list<int> inputs);
/// For `supports`: errors `dynamic-shape` unless the dims are provably equal.
Result<void> require_same_dim(const Expr& a, const Expr& b, const std::string& what);

/// Shape with a variable of its own for each dim that only the data decides.
Shape data_shape(const InferContext& ctx, int output, int rank);

}  // namespace tensmith::graph::ops
