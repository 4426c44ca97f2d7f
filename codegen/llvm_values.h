/// Operations of the loop IR on LLVM values, one by one; knows types and instruction sets, nothing of statements.
/// Internal to codegen/.
///
/// Types in registers: bool is i1; float16 and bfloat16 are i16 holding the bits (arithmetic goes through float); int4
/// and uint4 are i8 holding the extended value. In memory a bool is a byte; all else is as in registers.
#pragma once

#include <llvm/Analysis/TargetFolder.h>
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <vector>

#include "codegen/llvm_target.h"
#include "tensor/expr.h"

namespace tensmith {

/// Folds constants only: a folder that simplifies would look through loop counters that are not complete yet and take
/// them for zero.
using LlvmBuilder = llvm::IRBuilder<llvm::TargetFolder>;

/// What is known of the operands of an integer operation.
struct OperandFacts {
  bool no_overflow = false;  ///< index arithmetic: an overflow is undefined
  bool dividend_nonnegative = false;
};

class LlvmValues {
 public:
  LlvmValues(LlvmBuilder& builder, const Isa& isa) : b_(builder), isa_(isa) {}

  LlvmBuilder& builder() { return b_; }
  const Isa& isa() const { return isa_; }

  /// The type of a value in registers.
  llvm::Type* type(DType t) const;
  /// The type of the value in memory.
  llvm::Type* memory_type(DType t) const;
  llvm::Value* to_memory(DType t, llvm::Value* v);
  llvm::Value* from_memory(DType t, llvm::Value* v);

  llvm::Constant* zero(DType t) const { return llvm::Constant::getNullValue(type(t)); }
  llvm::Constant* int_constant(DType t, int64_t value) const;
  /// Rounds to the type (to nearest even).
  llvm::Constant* float_constant(DType t, double value) const;

  llvm::Value* splat(llvm::Value* v, int lanes);
  /// Lanes [begin, begin + lanes); a scalar when lanes is 1.
  llvm::Value* slice(llvm::Value* v, int begin, int lanes);
  /// `v` with lanes [begin, begin + lanes of part) replaced.
  llvm::Value* insert(llvm::Value* v, llvm::Value* part, int begin);
  /// Scalars or vectors of one element type side by side.
  llvm::Value* concat(std::span<llvm::Value* const> parts);
  /// base, base + stride, ...
  llvm::Value* ramp(llvm::Value* base, llvm::Value* stride, int lanes);

  llvm::Value* binary(BinaryOp op, DType operand, llvm::Value* a, llvm::Value* b, OperandFacts facts = {});
  llvm::Value* invert(DType t, llvm::Value* v);
  /// Either NaN gives NaN.
  llvm::Value* min(DType t, llvm::Value* a, llvm::Value* b) { return min_max(t, a, b, /*is_min=*/true); }
  llvm::Value* max(DType t, llvm::Value* a, llvm::Value* b) { return min_max(t, a, b, /*is_min=*/false); }
  llvm::Value* cast(DType from, DType to, llvm::Value* v);
  /// a * b + c with one rounding, on any target.
  llvm::Value* fma(DType t, llvm::Value* a, llvm::Value* b, llvm::Value* c);

  /// In the type that arithmetic is done in: half where the target has it, float for the other 16-bit floats, others as
  /// they are.
  llvm::Value* to_arithmetic(DType t, llvm::Value* v);
  llvm::Value* from_arithmetic(DType t, llvm::Value* v);
  /// float16 and bfloat16 as float, other floats as they are.
  llvm::Value* widen(DType t, llvm::Value* v);
  /// The inverse, rounding to nearest even; `v` is float for the 16-bit types.
  llvm::Value* narrow(DType t, llvm::Value* v);

  static int lanes_of(const llvm::Value* v);

 private:
  llvm::Value* min_max(DType t, llvm::Value* a, llvm::Value* b, bool is_min);
  /// `chosen` where x is a number, x where it is NaN; null where the target has no instruction for it.
  llvm::Value* take_nan(llvm::Value* chosen, llvm::Value* x);
  llvm::Value* float_binary(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_binary(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b, OperandFacts facts);
  llvm::Value* bool_binary(BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b, OperandFacts facts);
  llvm::Value* divide_nonzero(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b);
  /// Brings a 4-bit value back into its range; other types as they are.
  llvm::Value* wrap(DType t, llvm::Value* v);
  llvm::Value* float_to_int(DType from, DType to, llvm::Value* v);
  llvm::Value* half_to_float_soft(llvm::Value* v);
  llvm::Value* float_to_half_soft(llvm::Value* v);
  llvm::Value* float_to_bfloat(llvm::Value* v);
  llvm::Value* double_to_float_odd(llvm::Value* v);
  llvm::Value* add_to_odd(llvm::Value* a, llvm::Value* b);
  /// The given scalar type with as many lanes as `v`.
  llvm::Type* like(llvm::Type* element, const llvm::Value* v) const;
  llvm::Constant* splat_bits(llvm::Type* type, uint64_t bits) const;

  LlvmBuilder& b_;
  const Isa& isa_;
};

}  // namespace tensmith
