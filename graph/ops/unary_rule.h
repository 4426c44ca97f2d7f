/// One rule for all operators that map each element of one tensor by itself.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// The attributes of an operator resolved once a node: numbers in the order of UnaryRow::attrs, and the text attribute.
struct UnaryParams {
  std::vector<double> number;
  std::string text;
};

/// An operator as a row of a table.
struct UnaryRow {
  const char* name;
  const char* domain = "";
  int since = 1;
  TypeSet types = TypeSet::kFloat;
  const char* doc;
  std::vector<AttrSpec> attrs = {};
  /// `x` comes in its compute type; the result has the same type, or bool when `gives_bool`.
  std::function<Expr(const Expr& x, const UnaryParams& params)> body;
  /// Null: no float types.
  std::function<double(double x, const UnaryParams& params)> reference = nullptr;
  /// Integers and bools exactly; the result is wrapped to the type. Null: they go through `reference`.
  std::function<int64_t(int64_t x, DType type)> int_reference = nullptr;
  bool gives_bool = false;
  bool keeps_whole = false;   ///< gives whole numbers back as they are (rounding)
  double low = -3, high = 3;  ///< range of the random sample values
  double work = 1;            ///< Units: floating-point operations an element
  std::vector<OpSample> more_samples = {};
};

OpDef make_unary(const UnaryRow& row);
std::vector<OpDef> make_unary_table(const std::vector<UnaryRow>& rows);

}  // namespace tensmith::graph::ops
