#include "codegen/llvm_pipeline.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "runtime/base/error.h"

namespace tensmith {

// Our lowering has vectorised, unrolled and simplified already; LLVM's O2 and O3 cost 30 ms a kernel and have made
// kernels up to fifty times slower (their vectorisers and unrollers take the register tile apart).
void run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager pipeline;
  // Register tiles and small stack buffers become values.
  pipeline.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  // Rows of a tile read the same vectors, each written out once per use.
  pipeline.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  // Reads of weights, bias and scales that an inner loop repeats; addresses.
  pipeline.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  pipeline.addPass(llvm::SimplifyCFGPass());
  pipeline.addPass(llvm::DCEPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) pipeline.run(function, functions);
  }
}

namespace {

void generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind,
              llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  TS_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, kind, /*DisableVerify=*/true));
  passes.run(module);
}

}  // namespace

ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine, const CodegenOptions& options) {
  ObjectCode result;
  if (options.want_llvm_ir) {
    llvm::raw_string_ostream stream(result.llvm_ir);
    module.print(stream, nullptr);
  }
  if (options.want_asm) {  // code generation changes the module, so the text comes from a copy
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    llvm::SmallVector<char, 0> text;
    generate(*copy, machine, llvm::CodeGenFileType::AssemblyFile, text);
    result.assembly.assign(text.begin(), text.end());
  }
  llvm::SmallVector<char, 0> bytes;
  generate(module, machine, llvm::CodeGenFileType::ObjectFile, bytes);
  result.bytes.assign(bytes.begin(), bytes.end());
  return result;
}

}  // namespace tensmith
