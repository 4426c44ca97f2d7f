/// A loop program as an LLVM module. Internal to codegen/.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "codegen/artifact.h"

namespace tensmith {

/// Emits the function with that index, or all when it is kAllFunctions; the others are declared, so that they can be
/// called. See codegen/artifact.h for the form of the symbols. `machine` gives the data layout. Errors: those of
/// `compile`.
std::unique_ptr<llvm::Module> build_module(const LoopProgram& program, size_t index, const Target& target,
                                           const CodegenOptions& options, llvm::LLVMContext& context,
                                           const llvm::TargetMachine& machine);
inline constexpr size_t kAllFunctions = static_cast<size_t>(-1);

}  // namespace tensmith
