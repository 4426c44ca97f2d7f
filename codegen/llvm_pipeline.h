/// Passes and code generation for a finished module. Internal to codegen/.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/artifact.h"

namespace tensmith {

/// The short pipeline (see llvm_pipeline.cpp for what it holds and why).
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, const Target& target);

/// Object bytes, and the texts that the options ask for. Consumes the module's code.
ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine, const CodegenOptions& options);

}  // namespace tensmith
