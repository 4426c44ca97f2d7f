/// A loop program as an LLVM module. Internal to codegen/.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "codegen/artifact.h"

namespace tensmith {

/// Emits every function; see codegen/artifact.h for the form of their symbols. `machine` gives the data layout.
/// Errors: those of `compile`.
std::unique_ptr<llvm::Module> build_module(const LoopProgram& program, const Target& target, const CodegenOptions& options,
                                           llvm::LLVMContext& context, const llvm::TargetMachine& machine);

}  // namespace tensmith
