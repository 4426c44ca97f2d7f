/// What LLVM needs to know of a target: instruction-set traits and the machine object. Internal to codegen/.
#pragma once

#include <llvm/IR/Attributes.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "runtime/base/target.h"

namespace tensmith {

/// The instruction sets that emission distinguishes.
struct Isa {
  bool x86 = false;
  bool aarch64 = false;
  bool sse41 = false;
  bool avx2 = false;
  bool avx512 = false;       ///< F, BW, DQ and VL
  bool fma = false;          ///< fused multiply-add in hardware
  bool f16c = false;         ///< half <-> float in hardware (always on AArch64)
  bool fp16 = false;         ///< arithmetic on halves in hardware
  bool avx512vnni = false;   ///< vpdpbusd on all widths with AVX-512 VL
  bool avxvnni = false;      ///< vpdpbusd on 128 and 256 bits
  bool avxvnniint8 = false;  ///< vpdpbssd on 128 and 256 bits
  bool dotprod = false;      ///< sdot and udot
  bool i8mm = false;         ///< usdot
  int vector_bits = 128;
};
Isa isa_of(const Target& target);

/// Registers the X86 and AArch64 code generators with LLVM, once. Threads: any.
void initialize_llvm();

/// A machine for that target, made once per thread and kept: making one costs about a millisecond.
/// Threads: belongs to the calling thread. Errors: TargetError "unknown-target" when LLVM does not know the triple.
llvm::TargetMachine& thread_target_machine(const Target& target);

/// The attributes that make LLVM use the target's instructions and full vector width (see llvm_target.cpp for why).
void add_target_attributes(const Target& target, llvm::AttrBuilder& attributes);

}  // namespace tensmith
