/// Passes and code generation for a finished module. Internal to codegen/.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/artifact.h"

namespace tensmith {

/// Who decides on the order of instructions.
enum class Order : uint8_t {
  kLlvm,       ///< LLVM's scheduler
  kAsWritten,  ///< the module, whose blocks are in the best order
};

/// The short pipeline (see llvm_pipeline.cpp for what it holds and why). Gives what code generation shall do.
Order run_passes(llvm::Module& module, llvm::TargetMachine& machine, const Target& target);

/// Object bytes, and the texts that the options ask for. Consumes the module's code.
ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine, const CodegenOptions& options, Order order);

}  // namespace tensmith
