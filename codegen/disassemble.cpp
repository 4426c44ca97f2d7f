#include "codegen/disassemble.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <map>

#include "codegen/llvm_target.h"

namespace tensmith {

namespace {

struct Line {
  uint64_t address;
  std::string text;  // "\tmnemonic\toperands"
  bool branch = false;
  uint64_t target = 0;  // of a branch inside the section
};

/// LLVM's machine-code objects for one target, and the decoding of one section with them.
class Decoder {
 public:
  explicit Decoder(const Target& target) : triple_(target.triple) {
    initialize_llvm();
    std::string reason;
    const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(target.triple, reason);
    if (!llvm_target)
      throw TargetError("unknown-target",
                        "disassemble: triple: expected x86_64 or aarch64, got '" + target.triple + "'; " + reason);
    registers_.reset(llvm_target->createMCRegInfo(target.triple));
    asm_info_.reset(llvm_target->createMCAsmInfo(*registers_, target.triple, options_));
    subtarget_.reset(llvm_target->createMCSubtargetInfo(target.triple, target.cpu, target.features));
    instructions_.reset(llvm_target->createMCInstrInfo());
    context_ = std::make_unique<llvm::MCContext>(triple_, asm_info_.get(), registers_.get(), subtarget_.get());
    disassembler_.reset(llvm_target->createMCDisassembler(*subtarget_, *context_));
    analysis_.reset(llvm_target->createMCInstrAnalysis(instructions_.get()));
    printer_.reset(llvm_target->createMCInstPrinter(triple_, asm_info_->getAssemblerDialect(), *asm_info_,
                                                    *instructions_, *registers_));
    TS_CHECK(disassembler_ && analysis_ && printer_) << target.triple;
  }

  /// Decodes [begin, end) of a section; `names` has the symbols that relocations put in, by offset.
  std::vector<Line> decode(llvm::ArrayRef<uint8_t> bytes, uint64_t begin, uint64_t end,
                           const std::map<uint64_t, std::string>& names) {
    std::vector<Line> lines;
    for (uint64_t at = begin; at < end;) {
      llvm::MCInst instruction;
      uint64_t size = 0;
      llvm::raw_null_ostream comments;
      if (disassembler_->getInstruction(instruction, size, bytes.slice(at, end - at), at, comments) !=
          llvm::MCDisassembler::Success) {
        at += std::max<uint64_t>(size, 1);
        continue;
      }
      Line line{at, {}};
      llvm::raw_string_ostream stream(line.text);
      printer_->printInst(&instruction, at, "", *subtarget_, stream);
      const auto name = names.lower_bound(at);
      const bool relocated = name != names.end() && name->first < at + size;
      if (analysis_->isBranch(instruction) && !analysis_->isIndirectBranch(instruction) && !relocated)
        line.branch = analysis_->evaluateBranch(instruction, at, size, line.target);
      if (relocated && (analysis_->isCall(instruction) || analysis_->isBranch(instruction)))
        replace_last_operand(line.text, name->second);
      lines.push_back(std::move(line));
      at += size;
    }
    return lines;
  }

  static void replace_last_operand(std::string& text, const std::string& with) {
    const size_t comma = text.rfind(", "), tab = text.rfind('\t');
    const size_t begin = comma != std::string::npos && comma > tab ? comma + 2 : tab + 1;
    text = text.substr(0, begin) + with;
  }

 private:
  llvm::Triple triple_;
  llvm::MCTargetOptions options_;
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> asm_info_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> disassembler_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
};

[[noreturn]] void refuse(llvm::Error error) {
  throw UserError("bad-object",
                  "disassemble: object: expected an ELF object, got: " + llvm::toString(std::move(error)));
}
template <typename T>
T take(llvm::Expected<T> value) {
  if (!value) refuse(value.takeError());
  return std::move(*value);
}

struct Function {
  std::string name;
  uint64_t begin, size;
};

}  // namespace

std::string disassemble(const ObjectCode& object, const Target& target) {
  Decoder decoder(target);
  const llvm::StringRef content(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
  const std::unique_ptr<llvm::object::ObjectFile> file =
      take(llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(content, "object")));
  std::string text;
  int functions_seen = 0;
  for (const llvm::object::SectionRef& section : file->sections()) {
    if (!section.isText() || section.getSize() == 0) continue;
    std::vector<Function> functions;
    for (const llvm::object::ELFSymbolRef symbol : llvm::cast<llvm::object::ELFObjectFileBase>(*file).symbols()) {
      if (symbol.getELFType() != llvm::ELF::STT_FUNC || take(symbol.getSection()) == file->section_end() ||
          *take(symbol.getSection()) != section)
        continue;
      functions.push_back(
          {take(symbol.getName()).str(), take(symbol.getAddress()) - section.getAddress(), symbol.getSize()});
    }
    std::sort(functions.begin(), functions.end(),
              [](const Function& a, const Function& b) { return a.begin < b.begin; });
    std::map<uint64_t, std::string> names;
    for (const llvm::object::SectionRef& relocations : file->sections()) {
      const auto owner = take(relocations.getRelocatedSection());
      if (owner == file->section_end() || *owner != section) continue;
      for (const llvm::object::RelocationRef& relocation : relocations.relocations())
        if (relocation.getSymbol() != file->symbol_end())
          names[relocation.getOffset()] = take(relocation.getSymbol()->getName()).str();
    }
    const llvm::StringRef raw = take(section.getContents());
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(raw.data()), raw.size());
    for (const Function& function : functions) {
      const uint64_t end = std::min<uint64_t>(function.begin + function.size, bytes.size());
      std::vector<Line> lines = decoder.decode(bytes, function.begin, end, names);
      std::map<uint64_t, std::string> labels;
      for (const Line& line : lines)
        if (line.branch && line.target >= function.begin && line.target < end) labels[line.target];
      int count = 0;
      for (auto& [address, label] : labels)
        label = ".LBB" + std::to_string(functions_seen) + "_" + std::to_string(++count);
      ++functions_seen;
      text += function.name + ":\n";
      for (Line& line : lines) {
        if (const auto label = labels.find(line.address); label != labels.end()) text += label->second + ":\n";
        if (const auto label = labels.find(line.target); line.branch && label != labels.end())
          Decoder::replace_last_operand(line.text, label->second);
        text += line.text + "\n";
      }
    }
  }
  return text;
}

}  // namespace tensmith
