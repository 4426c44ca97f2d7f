/// Machine code for programs of loop IR.
///
/// Every function of the program becomes
///   int32_t NAME(const tensmith_context* ctx, void* buffer0, ..., scalar0, ...)       (see runtime/context.h)
/// with one pointer per buffer and one value per scalar parameter (bool as a byte, 16-bit floats as their bits). It
/// returns 0, the code of the assertion that failed, or the non-zero code of a function it called as a statement.
/// Buffers must be aligned to their stated alignment, and no buffer that is written may overlap another one, unless the
/// attribute kMayOverlap says so. Functions keep no state and may run concurrently.
///
/// A function with the attribute kDeclaration (see tensor/stmt.h) is defined by another object.
///
/// `call_extern` reaches, by symbol:
/// - a function of the same program: the context is put before the arguments (null inside a parallel loop);
/// - `tensmith_thread_index()` (i64): the number of the thread in the parallel loop, 0 outside;
///   `tensmith_num_threads()` (i64): how many thread numbers there may be (asked outside of parallel loops);
///   `tensmith_on_kernel(index, is_end)` (i32): tells the observer in the context, if there is one;
/// - any other name: a C function with exactly these argument types, to be found when loading or linking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/target.h"
#include "tensor/may_overlap.h"
#include "tensor/stmt.h"

namespace tensmith {

/// Returned by generated code when memory for an unplanned buffer cannot be had.
inline constexpr int32_t kOutOfMemoryCode = -12;

/// How code is generated; the target says what for.
struct CodegenOptions {
  bool contract_fma = true;              ///< a*b+c may be rounded once
  bool fast_math = false;                ///< cheaper exp, log, ... (see MathOptions::fast in codegen/math/expand.h)
  bool want_asm = false;                 ///< fill ObjectCode::assembly (generates code twice)
  bool want_llvm_ir = false;             ///< fill ObjectCode::llvm_ir
  bool verify = true;                    ///< have LLVM check the module before the passes
  std::string module_name = "tensmith";  ///< shows in the object's symbol table
};

/// A relocatable ELF object. Equal programs, targets and options give equal bytes.
struct ObjectCode {
  std::vector<uint8_t> bytes;
  std::string assembly;  ///< as the target's assembler reads it; empty unless asked for
  std::string llvm_ir;   ///< after our passes; empty unless asked for
};

/// Compiles all functions of the program into one object.
/// Errors: ScheduleError `register-index`, `register-overlap`, `register-captured`, `stack-too-large`; UnsupportedError
/// `codegen-scope`; TargetError `unknown-target`; InternalError for programs that are not lowered (vectorized loops,
/// several indices). Cost: 3 to 20 ms a kernel. Threads: any number at a time.
ObjectCode compile(const LoopProgram& program, const Target& target, const CodegenOptions& options = {});

/// The same as one object per function, in the program's order, compiled on up to `threads` threads; the number of
/// threads does not change a byte. The objects call each other by name, so they are loaded or linked together. Errors:
/// those of `compile`, of the first function that has one.
std::vector<ObjectCode> compile_parts(const LoopProgram& program, const Target& target, const CodegenOptions& options,
                                      int threads);

}  // namespace tensmith
