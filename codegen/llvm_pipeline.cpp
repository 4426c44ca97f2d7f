#include "codegen/llvm_pipeline.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/PassInfo.h>
#include <llvm/PassRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "codegen/llvm_interleave.h"
#include "runtime/base/error.h"

namespace tensmith {

// Our lowering has vectorised, unrolled and simplified already; LLVM's O2 and O3 cost 30 ms a kernel and have made
// kernels up to fifty times slower (their vectorisers and unrollers take the register tile apart).
Order run_passes(llvm::Module& module, llvm::TargetMachine& machine, const Target& target) {
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
  bool interleaved = false;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    pipeline.run(function, functions);
    interleaved |= interleave_copies(function, functions.getResult<llvm::AAManager>(function), target);
  }
  // With few registers LLVM's scheduler pulls the copies apart again (AVX2: tanh 0.33 instead of 0.37 of the cycles of
  // the notes, GELU 0.51 for 0.54). Windows over 16 registers need it, with 32 it does no harm.
  return interleaved && target.vector_registers < 32 ? Order::kAsWritten : Order::kLlvm;
}

namespace {

/// Takes the passes of LLVM's code generator one by one and leaves some out.
class ChosenPasses : public llvm::legacy::PassManagerBase {
 public:
  ChosenPasses(bool x86, Order order) : x86_(x86), order_(order) {}

  void add(llvm::Pass* pass) override {
    const llvm::PassInfo* info = llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    if (info && is_left_out(info->getPassArgument())) {
      delete pass;
    } else {
      passes_.add(pass);
    }
  }
  void run(llvm::Module& module) { passes_.run(module); }

 private:
  bool is_left_out(llvm::StringRef pass) const {
    // Loop strength reduction: addresses have the form that it looks for (llvm_addresses.h), which it took half of the
    // compile time to see. Elsewhere it also fits displacements to what an instruction can hold.
    if (pass == "loop-reduce") return x86_;
    // Large frames touch page after page in a loop that counts in r11. LLVM takes r11 for free there, which it is at
    // the start of a function but not where shrink-wrapping moves the prologue to (LLVM 19, found as a wrong address in
    // a softmax over 18,710 columns).
    if (pass == "shrink-wrap") return true;
    return pass == "machine-scheduler" && order_ == Order::kAsWritten;
  }

  const bool x86_;
  const Order order_;
  llvm::legacy::PassManager passes_;
};

void generate(llvm::Module& module, llvm::TargetMachine& machine, Order order, llvm::CodeGenFileType kind,
              llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  ChosenPasses passes(machine.getTargetTriple().isX86(), order);
  TS_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, kind, /*DisableVerify=*/true));
  passes.run(module);
}

}  // namespace

ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine, const CodegenOptions& options, Order order) {
  ObjectCode result;
  if (options.want_llvm_ir) {
    llvm::raw_string_ostream stream(result.llvm_ir);
    module.print(stream, nullptr);
  }
  if (options.want_asm) {  // code generation changes the module, so the text comes from a copy
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    llvm::SmallVector<char, 0> text;
    generate(*copy, machine, order, llvm::CodeGenFileType::AssemblyFile, text);
    result.assembly.assign(text.begin(), text.end());
  }
  llvm::SmallVector<char, 0> bytes;
  generate(module, machine, order, llvm::CodeGenFileType::ObjectFile, bytes);
  result.bytes.assign(bytes.begin(), bytes.end());
  return result;
}

}  // namespace tensmith
