/// Buffers of scope kRegister: each group of lanes that is accessed together is one LLVM value. Internal to codegen/.
#pragma once

#include <map>
#include <vector>

#include "codegen/llvm_values.h"
#include "tensor/stmt.h"

namespace tensmith {

/// Lanes [offset, offset + lanes) of a register buffer, accessed as one.
struct RegisterAccess {
  int64_t offset;
  int lanes;
};

/// The access that a flat index means: a constant, a broadcast constant (lanes 1) or a ramp of stride 1 with constant
/// base. Errors: ScheduleError "register-index" when it is neither.
RegisterAccess register_access(const Buffer& buffer, const Expr& index);

/// The storage of one register buffer: an alloca per slot, all of which mem2reg turns into values.
class RegisterTile {
 public:
  /// Finds the slots from the accesses in `body`: accesses inside a larger one share its slot.
  /// Errors: ScheduleError "register-overlap" when two accesses overlap otherwise; "register-index".
  RegisterTile(const Buffer& buffer, const Stmt& body, LlvmValues& values, llvm::BasicBlock* entry);

  llvm::Value* load(LlvmValues& values, RegisterAccess access) const;
  void store(LlvmValues& values, RegisterAccess access, llvm::Value* value) const;
  /// Whether all reads and writes of the access's slot stand under one and the same constant mask (the tail of a row of
  /// a tile): what the other lanes hold does not matter, so that writes may overwrite them.
  bool has_unseen_lanes(RegisterAccess access) const;

 private:
  struct Slot {
    int lanes;
    llvm::AllocaInst* storage;
  };
  const std::pair<const int64_t, Slot>& slot_of(RegisterAccess access) const;

  Buffer buffer_;
  std::map<int64_t, Slot> slots_;  // by first lane
  std::map<int64_t, Expr> masks_;  // by first lane of a slot: the mask of all its accesses, null where they differ
};

}  // namespace tensmith
