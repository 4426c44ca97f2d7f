/// One rule for all operators that combine elements of tensors broadcast against each other.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// An operator of two inputs of one type as a row of a table.
struct BinaryRow {
  const char* name;
  int since = 7;
  TypeSet types = TypeSet::kNumeric;
  const char* doc;
  std::vector<AttrSpec> attrs = {};
  /// Operands come in their compute type; the result has the same type, or bool when `gives_bool`.
  std::function<Expr(const Expr& a, const Expr& b, const AttrMap& attrs)> body;
  /// Null: no float types. Comparisons give 0 or 1.
  std::function<double(double a, double b, const AttrMap& attrs)> reference = nullptr;
  /// Null: no integer types. Unsigned 64-bit values come as their bit pattern; the result is wrapped to the type.
  std::function<int64_t(int64_t a, int64_t b, DType type, const AttrMap& attrs)> int_reference = nullptr;
  /// The result for elements known as index expressions (TensorType::value); null expression: unknown. Null: never
  /// known.
  std::function<Expr(const Expr& a, const Expr& b)> known_value = nullptr;
  bool whole_of_floats = false;  ///< `known_value` holds for floats that are whole numbers too
  bool gives_bool = false;
  /// What the type rule checks besides shapes; null: nothing.
  std::function<Result<void>(const InferContext&)> check = nullptr;
  double low_b = 0, high_b = 0;  ///< range of the second operand in random samples, when it is not that of the first
  AttrMap sample_attrs = {};     ///< attributes of the random samples
  std::vector<OpSample> more_samples = {};
};

OpDef make_binary(const BinaryRow& row);
std::vector<OpDef> make_binary_table(const std::vector<BinaryRow>& rows);

/// The type rule of operators whose inputs are all broadcast against each other and have one element type.
Result<TensorType> infer_broadcast(const InferContext& ctx, DType result);

}  // namespace tensmith::graph::ops
