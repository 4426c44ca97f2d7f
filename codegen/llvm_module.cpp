#include "codegen/llvm_module.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "codegen/llvm_function.h"
#include "codegen/math/expand.h"

namespace tensmith {

namespace {

/// Bytes of a buffer of constant shape; 0 when symbolic or empty.
uint64_t known_bytes(const Buffer& buffer) {
  int64_t bytes = buffer->dtype.bytes();
  for (const Expr& extent : buffer->shape) {
    int64_t n = 0;
    if (!as_const_int(extent, &n) || n <= 0 || __builtin_mul_overflow(bytes, n, &bytes)) return 0;
  }
  return static_cast<uint64_t>(bytes);
}

llvm::AttributeList function_attributes(const Target& target, llvm::LLVMContext& context) {
  llvm::AttrBuilder attributes(context);
  add_target_attributes(target, attributes);
  return llvm::AttributeList::get(context, llvm::AttributeList::FunctionIndex, attributes);
}

llvm::Function* declare(const LoopFunction& f, ModuleContext& module) {
  llvm::LLVMContext& context = module.module.getContext();
  LlvmBuilder builder(context, llvm::TargetFolder(module.module.getDataLayout()));
  LlvmValues values(builder, module.isa);
  std::vector<llvm::Type*> types(1 + f.buffers.size(), llvm::PointerType::getUnqual(context));
  for (const Var& var : f.scalars) types.push_back(abi_type(values, var.dtype()));
  llvm::FunctionType* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), types, /*isVarArg=*/false);
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, f.name, module.module);
  function->setAttributes(module.attributes);
  function->getArg(0)->setName("ctx");
  for (unsigned i = 0; i < f.buffers.size(); ++i) {
    const Buffer& buffer = f.buffers[i];
    const bool written =
        std::any_of(f.outputs.begin(), f.outputs.end(), [&](const Buffer& b) { return b.same_as(buffer); });
    llvm::AttrBuilder attributes(context);
    if (!may_overlap(f, i)) attributes.addAttribute(llvm::Attribute::NoAlias);
    attributes.addAttribute(llvm::Attribute::NoUndef);
    attributes.addAlignmentAttr(llvm::Align(std::max<uint64_t>(buffer->alignment, 1)));
    if (const uint64_t bytes = known_bytes(buffer)) {
      attributes.addAttribute(llvm::Attribute::NonNull);
      attributes.addDereferenceableAttr(bytes);
    }
    if (!written && !f.outputs.empty()) attributes.addAttribute(llvm::Attribute::ReadOnly);
    function->addParamAttrs(1 + i, attributes);
  }
  return function;
}

llvm::StructType* make_context_type(llvm::LLVMContext& context) {
  llvm::Type *i32 = llvm::Type::getInt32Ty(context), *pointer = llvm::PointerType::getUnqual(context);
  return llvm::StructType::create(context, {i32, i32, pointer, pointer, pointer, pointer}, "tensmith_context");
}

}  // namespace

std::unique_ptr<llvm::Module> build_module(const LoopProgram& program, size_t index, const Target& target,
                                           const CodegenOptions& options, llvm::LLVMContext& context,
                                           const llvm::TargetMachine& machine) {
  auto result = std::make_unique<llvm::Module>(options.module_name, context);
  result->setTargetTriple(target.triple);
  result->setDataLayout(machine.createDataLayout());
  result->setPICLevel(llvm::PICLevel::BigPIC);
  ModuleContext module{*result,
                       target,
                       isa_of(target),
                       options.contract_fma,
                       function_attributes(target, context),
                       {},
                       make_context_type(context)};
  for (const LoopFunction& f : program.functions)
    TS_CHECK(module.program.emplace(f.name, declare(f, module)).second) << "two functions are named " << f.name;
  for (size_t i = 0; i < program.functions.size(); ++i) {
    if (index != kAllFunctions && index != i) continue;
    if (program.functions[i].attrs.count(kDeclaration)) continue;  // defined by another object
    LoopFunction expanded = program.functions[i];
    expanded.body =
        expand_math(expanded.body, {.fast = options.fast_math, .fma = target.fma, .avx512 = module.isa.avx512});
    llvm::Function* function = module.program.at(expanded.name);
    function->setDSOLocal(true);  // calls of it within the object need no table
    FunctionEmitter(module, function).emit_function(expanded);
  }
  if (options.verify) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    TS_CHECK(!llvm::verifyModule(*result, &stream)) << "generated LLVM IR is malformed: " << text;
  }
  return result;
}

}  // namespace tensmith
