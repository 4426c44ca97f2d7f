// Writes the ELF object that holds a model's description and, if wanted, its weights. A hundred megabytes of weights
// would take an assembler or LLVM seconds; here they are copied once.
#include <elf.h>

#include <cstring>
#include <map>

#include "runtime/export/model_image.h"

namespace tensmith {
namespace {

struct Section {
  const char* name;
  uint32_t type;
  uint64_t flags;
  std::string own;                 // content, unless...
  std::span<const std::byte> far;  // ...it is somebody else's
  uint32_t link = 0, info = 0;
  uint64_t alignment = 1, entry_size = 0;

  uint64_t size() const { return own.empty() ? far.size() : own.size(); }
};

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class Strings {
 public:
  uint32_t add(const std::string& text) {
    const uint32_t at = static_cast<uint32_t>(bytes_.size());
    bytes_ += text;
    bytes_ += '\0';
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

Elf64_Sym symbol(uint32_t name, int binding, int type, uint16_t section, uint64_t size) {
  Elf64_Sym s = {};
  s.st_name = name;
  s.st_info = static_cast<uint8_t>(ELF64_ST_INFO(binding, type));
  s.st_other = binding == STB_GLOBAL ? STV_HIDDEN : STV_DEFAULT;
  s.st_shndx = section;
  s.st_size = size;
  return s;
}

}  // namespace

std::string model_object(const ModelDescription& description, std::string_view arch, const std::string& model_symbol,
                         const std::string& weights_symbol, std::span<const std::byte> weights) {
  TS_CHECK(arch == "x86_64" || arch == "aarch64") << arch;
  const ModelImage image = build_model_image(description);
  const uint32_t absolute = arch == "x86_64" ? R_X86_64_64 : R_AARCH64_ABS64;
  enum : uint16_t { kNull, kData, kRela, kWeights, kStack, kSymtab, kStrtab, kShstrtab };

  // Local symbols come first: the null symbol and the section's, which pointers within the image refer to.
  Strings names;
  std::string symbols;
  append(symbols, Elf64_Sym{});
  append(symbols, symbol(0, STB_LOCAL, STT_SECTION, kData, 0));
  uint32_t count = 2;
  append(symbols, symbol(names.add(model_symbol), STB_GLOBAL, STT_OBJECT, kData, image.bytes.size()));
  std::map<std::string, uint32_t> numbers = {{model_symbol, count++}};
  if (!weights_symbol.empty()) {
    append(symbols, symbol(names.add(weights_symbol), STB_GLOBAL, STT_OBJECT, kWeights, weights.size()));
    numbers.emplace(weights_symbol, count++);
  }
  std::string relocations;
  for (const ModelImage::Pointer& p : image.pointers) {
    Elf64_Rela r = {};
    r.r_offset = p.at;
    if (p.symbol.empty()) {
      r.r_info = ELF64_R_INFO(1, absolute);
      r.r_addend = static_cast<int64_t>(p.target);
    } else {
      auto [it, added] = numbers.try_emplace(p.symbol, count);
      if (added) {
        append(symbols, symbol(names.add(p.symbol), STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0));
        ++count;
      }
      r.r_info = ELF64_R_INFO(static_cast<uint64_t>(it->second), absolute);
    }
    append(relocations, r);
  }

  Section sections[] = {
      {"", SHT_NULL, 0, "", {}, 0, 0, 0, 0},
      {".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, image.bytes, {}, 0, 0, 64, 0},
      {".rela.data.rel.ro", SHT_RELA, SHF_INFO_LINK, relocations, {}, kSymtab, kData, 8, sizeof(Elf64_Rela)},
      {".rodata.weights", SHT_PROGBITS, SHF_ALLOC, "", weights, 0, 0, 64, 0},
      {".note.GNU-stack", SHT_PROGBITS, 0, "", {}, 0, 0, 1, 0},  // no executable stack
      {".symtab", SHT_SYMTAB, 0, symbols, {}, kStrtab, 2, 8, sizeof(Elf64_Sym)},
      {".strtab", SHT_STRTAB, 0, names.bytes(), {}, 0, 0, 1, 0},
      {".shstrtab", SHT_STRTAB, 0, "", {}, 0, 0, 1, 0},
  };
  Strings section_names;
  std::vector<Elf64_Shdr> headers;
  for (const Section& s : sections) {
    Elf64_Shdr h = {};
    h.sh_name = *s.name ? section_names.add(s.name) : 0;
    h.sh_type = s.type;
    h.sh_flags = s.flags;
    h.sh_link = s.link;
    h.sh_info = s.info;
    h.sh_addralign = s.alignment;
    h.sh_entsize = s.entry_size;
    headers.push_back(h);
  }
  sections[kShstrtab].own = section_names.bytes();

  std::string out(sizeof(Elf64_Ehdr), '\0');
  uint64_t total = out.size() + sizeof sections / sizeof *sections * (sizeof(Elf64_Shdr) + 64);
  for (const Section& s : sections) total += s.size();
  out.reserve(total);
  for (size_t i = 1; i < headers.size(); ++i) {
    const Section& s = sections[i];
    out.resize((out.size() + s.alignment - 1) / s.alignment * s.alignment);
    headers[i].sh_offset = out.size();
    headers[i].sh_size = s.size();
    if (!s.own.empty()) out += s.own;
    else out.append(reinterpret_cast<const char*>(s.far.data()), s.far.size());
  }
  out.resize((out.size() + 7) / 8 * 8);
  Elf64_Ehdr h = {};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_ident[EI_DATA] = ELFDATA2LSB;
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_type = ET_REL;
  h.e_machine = arch == "x86_64" ? EM_X86_64 : EM_AARCH64;
  h.e_version = EV_CURRENT;
  h.e_shoff = out.size();
  h.e_ehsize = sizeof h;
  h.e_shentsize = sizeof(Elf64_Shdr);
  h.e_shnum = static_cast<uint16_t>(headers.size());
  h.e_shstrndx = kShstrtab;
  for (const Elf64_Shdr& header : headers) append(out, header);
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

}  // namespace tensmith
