#include "codegen/artifact.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include <atomic>
#include <exception>
#include <thread>

#include "codegen/llvm_module.h"
#include "codegen/llvm_pipeline.h"
#include "codegen/llvm_target.h"

namespace tensmith {

namespace {

ObjectCode compile_function(const LoopProgram& program, size_t index, const Target& target,
                            const CodegenOptions& options) {
  llvm::TargetMachine& machine = thread_target_machine(target);
  llvm::LLVMContext context;
  // LLVM would print to stderr and exit; it must not, and no exception may pass through its frames, so errors are kept
  // for later.
  std::string problem;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* text) {
        if (info->getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
      },
      &problem);
  std::unique_ptr<llvm::Module> module = build_module(program, index, target, options, context, machine);
  const Order order = run_passes(*module, machine, target);
  ObjectCode object = emit_object(*module, machine, options, order);
  TS_CHECK(problem.empty()) << "code generation failed: " << problem;
  return object;
}

}  // namespace

ObjectCode compile(const LoopProgram& program, const Target& target, const CodegenOptions& options) {
  return compile_function(program, kAllFunctions, target, options);
}

std::vector<ObjectCode> compile_parts(const LoopProgram& program, const Target& target, const CodegenOptions& options,
                                      int threads) {
  const size_t count = program.functions.size();
  std::vector<ObjectCode> objects(count);
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        objects[i] = compile_function(program, i, target, options);
      } catch (...) {  // carried over to the calling thread
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads && static_cast<size_t>(t) < count; ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return objects;
}

}  // namespace tensmith
