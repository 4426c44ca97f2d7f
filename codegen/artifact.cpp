#include "codegen/artifact.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/llvm_module.h"
#include "codegen/llvm_pipeline.h"
#include "codegen/llvm_target.h"

namespace tensmith {

ObjectCode compile(const LoopProgram& program, const Target& target, const CodegenOptions& options) {
  llvm::TargetMachine& machine = thread_target_machine(target);
  llvm::LLVMContext context;
  // LLVM would print to stderr and exit; it must not, and no exception may pass through its frames, so errors are kept for later.
  std::string problem;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* text) {
        if (info->getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
      },
      &problem);
  std::unique_ptr<llvm::Module> module = build_module(program, target, options, context, machine);
  run_passes(*module, machine);
  ObjectCode object = emit_object(*module, machine, options);
  TS_CHECK(problem.empty()) << "code generation failed: " << problem;
  return object;
}

}  // namespace tensmith
