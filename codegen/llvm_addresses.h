/// Addresses as the machine wants them: one pointer per group of accesses, moved on by the loops around, plus a
/// constant per access. Internal to codegen/.
///
/// An index `i*448 + k*16 + 3` inside loops i and k becomes `p + 12` bytes, where p starts at the buffer, moves by 1792
/// bytes a turn of i and, in a copy that starts anew with each i, by 64 bytes a turn of k. All accesses whose indices
/// differ by constants share p. LLVM's loop strength reduction finds the same form, but takes half of the whole
/// compile time where a tile reads many elements.
#pragma once

#include <llvm/IR/Instructions.h>

#include <climits>
#include <vector>

#include "tensor/expr.h"

namespace tensmith {

/// `coefficient * value`, a part of an index that is no constant.
struct AddressTerm {
  Expr value;  ///< what is emitted
  int64_t coefficient = 1;
  int depth = kInPlace;          ///< loops around that must have been entered for `value` to exist; kInPlace: unknown
  const VarNode* var = nullptr;  ///< when the variable of loop `depth` is a factor and the rest does not change in it
  Expr scale;                    ///< the other factors, null: 1

  static constexpr int kInPlace = INT_MAX;  ///< to be emitted only where it is used
};

/// An element of a buffer: the sum of terms and a constant, in elements.
struct AddressSum {
  std::vector<AddressTerm> terms;
  int64_t constant = 0;
};

/// A loop around the code that is being emitted, and the pointers that it moves.
struct LoopFrame {
  struct Pointer {
    const BufferNode* buffer;
    std::vector<AddressTerm> terms;
    llvm::Value* value;
  };
  struct Moving {
    llvm::PHINode* pointer;
    llvm::Value* step;  ///< bytes a turn
  };

  const VarNode* var;
  Expr min;                  ///< null when only the value is known
  llvm::Value* begin;        ///< the value of `min`
  llvm::BasicBlock* before;  ///< the block that enters the loop
  llvm::BasicBlock* header;
  std::vector<Pointer> pointers = {};
  std::vector<Moving> moving = {};
};

}  // namespace tensmith
