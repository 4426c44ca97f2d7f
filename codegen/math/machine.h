/// Operations of single machine instructions that loop IR has no word for: calls by name which `expand_math` makes for
/// targets that have them, and code generation alone reads (codegen/llvm_machine.cpp).
#pragma once

#include <span>

#include "tensor/expr.h"

namespace tensmith::math {

inline constexpr char kMachineScale[] = "tensmith.scale";
inline constexpr char kMachineLookup[] = "tensmith.lookup";
inline constexpr char kMachineReciprocal[] = "tensmith.reciprocal";

/// Whether this is the name of such an operation; all are pure.
bool is_machine_operation(const std::string& symbol);

/// value * 2^floor(exponent) with one rounding; the exponent is of the value's float type.
Expr scale(Expr value, Expr exponent);
/// Lane by lane the number of `table`, which has 16 of f32, at the low four bits of `bits`, an unsigned of 32 bits.
Expr lookup(std::span<const float> table, Expr bits);
/// 1 / value within 2^-14, f32.
Expr reciprocal(Expr value);

}  // namespace tensmith::math
