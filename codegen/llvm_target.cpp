#include "codegen/llvm_target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

#include <map>
#include <mutex>

#include "runtime/base/error.h"

namespace tensmith {

Isa isa_of(const Target& target) {
  Isa isa;
  isa.x86 = target.arch == "x86_64";
  isa.aarch64 = target.arch == "aarch64";
  isa.vector_bits = target.vector_bits;
  isa.sse41 = isa.aarch64 || target.has("sse4.1");
  isa.avx2 = target.has("avx2");
  isa.avx512 = target.has("avx512f") && target.has("avx512bw") && target.has("avx512dq") && target.has("avx512vl");
  isa.fma = target.fma;
  isa.f16c = isa.aarch64 || target.has("f16c");
  isa.fp16 = target.fp16 && isa.f16c;
  isa.avx512vnni = isa.avx512 && target.has("avx512vnni");
  isa.avxvnni = target.has("avxvnni");
  isa.avxvnniint8 = target.has("avxvnniint8");
  isa.dotprod = target.has("dotprod");
  isa.i8mm = target.has("i8mm");
  return isa;
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeX86Disassembler();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    LLVMInitializeAArch64Disassembler();
  });
}

llvm::TargetMachine& thread_target_machine(const Target& target) {
  initialize_llvm();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[target.triple + '|' + target.cpu + '|' + target.features];
  if (machine) return *machine;
  std::string reason;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(target.triple, reason);
  if (!llvm_target)
    throw TargetError("unknown-target",
                      "codegen: triple: expected x86_64 or aarch64, got '" + target.triple + "'; " + reason);
  llvm::TargetOptions options;
  // Contraction is decided operation by operation through the `contract` flag; nothing else may be fused.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.NoTrappingFPMath = true;
  // Code goes into shared libraries and into the process at any address. Default is the level at which the register
  // tiles reach the peak; level 0 gives 0.15 of it.
  machine.reset(llvm_target->createTargetMachine(target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  TS_CHECK(machine != nullptr) << target.triple;
  return *machine;
}

void add_target_attributes(const Target& target, llvm::AttrBuilder& attributes) {
  // Without target-cpu every FMA becomes a call of fmaf.
  attributes.addAttribute("target-cpu", target.cpu);
  if (!target.tune_cpu.empty()) attributes.addAttribute("tune-cpu", target.tune_cpu);
  if (!target.features.empty()) attributes.addAttribute("target-features", target.features);
  // Tunings of Intel's server cores prefer 256 bits; the tile was chosen for vector_bits, so say so. The attribute
  // "min-legal-vector-width" stays absent: with "0", which clang writes, 512-bit values are split in halves and
  // spilled.
  attributes.addAttribute("prefer-vector-width", std::to_string(target.vector_bits));
  attributes.addAttribute("no-trapping-math", "true");
  // Frames larger than a page touch each page, so that a stack that is too small ends in a fault and not in other
  // memory.
  attributes.addAttribute("probe-stack", "inline-asm");
  attributes.addAttribute(llvm::Attribute::NoUnwind);
  attributes.addAttribute(llvm::Attribute::MustProgress);
}

}  // namespace tensmith
