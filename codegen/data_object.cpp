#include "codegen/data_object.h"

#include <llvm/BinaryFormat/ELF.h>

#include <bit>
#include <cstring>

#include "runtime/base/files.h"

namespace tensmith {

namespace {

using namespace llvm::ELF;

struct Symbol {
  std::string name;
  uint64_t size;
  unsigned char type;
};

/// What stands before and behind the content of an object.
struct Frame {
  std::string before, behind;
};

/// Writes an ELF64 little-endian object with one content section; all symbols are global and lie at its start.
/// Layout: header, content, symbol table, names, section headers.
class ElfWriter {
 public:
  ElfWriter(const Target& target, const char* section, uint64_t flags, uint64_t content_size, uint64_t alignment)
      : machine_(target.arch == "aarch64" ? EM_AARCH64 : EM_X86_64),
        section_(section),
        flags_(flags),
        content_size_(content_size),
        alignment_(alignment) {}

  Frame frame(const std::vector<Symbol>& symbols) {
    std::string names(1, '\0'), section_names(1, '\0');
    std::vector<Elf64_Sym> table(1);
    std::memset(table.data(), 0, sizeof(Elf64_Sym));
    for (const Symbol& symbol : symbols) {
      Elf64_Sym entry = {};
      entry.st_name = add_name(names, symbol.name);
      entry.setBindingAndType(STB_GLOBAL, symbol.type);
      entry.st_other = STV_DEFAULT;
      entry.st_shndx = 1;
      entry.st_size = symbol.size;
      table.push_back(entry);
    }
    std::vector<Elf64_Shdr> headers(1);
    std::memset(headers.data(), 0, sizeof(Elf64_Shdr));
    uint64_t offset = sizeof(Elf64_Ehdr);
    auto add_section = [&](const char* name, unsigned type, uint64_t flags, uint64_t size,
                           uint64_t alignment) -> Elf64_Shdr& {
      offset = (offset + alignment - 1) / alignment * alignment;
      Elf64_Shdr header = {};
      header.sh_name = add_name(section_names, name);
      header.sh_type = type;
      header.sh_flags = flags;
      header.sh_offset = offset;
      header.sh_size = size;
      header.sh_addralign = alignment;
      headers.push_back(header);
      offset += size;
      return headers.back();
    };
    add_section(section_, SHT_PROGBITS, flags_, content_size_, alignment_);
    add_section(".note.GNU-stack", SHT_PROGBITS, 0, 0, 1);  // says that the stack need not be executable
    Elf64_Shdr& symtab = add_section(".symtab", SHT_SYMTAB, 0, table.size() * sizeof(Elf64_Sym), 8);
    symtab.sh_link = 4;  // .strtab
    symtab.sh_info = 1;  // first global symbol
    symtab.sh_entsize = sizeof(Elf64_Sym);
    add_section(".strtab", SHT_STRTAB, 0, names.size(), 1);
    const uint32_t own_name = add_name(section_names, ".shstrtab");
    add_section("", SHT_STRTAB, 0, section_names.size(), 1).sh_name = own_name;
    offset = (offset + 7) / 8 * 8;

    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ElfMagic, 4);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_REL;
    header.e_machine = machine_;
    header.e_version = EV_CURRENT;
    header.e_shoff = offset;
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(headers.size());
    header.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);

    static_assert(std::endian::native == std::endian::little, "structures are written as they lie in memory");
    Frame frame;
    const auto put = [](std::string& part, const void* data, size_t size, uint64_t at) {
      part.resize(at);
      part.append(static_cast<const char*>(data), size);
    };
    put(frame.before, &header, sizeof header, 0);
    frame.before.resize(headers[1].sh_offset);
    const uint64_t end = headers[1].sh_offset + content_size_;
    put(frame.behind, table.data(), table.size() * sizeof(Elf64_Sym), headers[3].sh_offset - end);
    put(frame.behind, names.data(), names.size(), headers[4].sh_offset - end);
    put(frame.behind, section_names.data(), section_names.size(), headers[5].sh_offset - end);
    put(frame.behind, headers.data(), headers.size() * sizeof(Elf64_Shdr), offset - end);
    return frame;
  }

 private:
  static uint32_t add_name(std::string& table, const std::string& name) {
    if (name.empty()) return 0;
    const auto at = static_cast<uint32_t>(table.size());
    table += name;
    table += '\0';
    return at;
  }

  uint16_t machine_;
  const char* section_;
  uint64_t flags_;
  uint64_t content_size_;
  uint64_t alignment_;
};

ObjectCode framed(const Frame& frame, std::span<const uint8_t> content) {
  ObjectCode object;
  object.bytes.reserve(frame.before.size() + content.size() + frame.behind.size());
  object.bytes.insert(object.bytes.end(), frame.before.begin(), frame.before.end());
  object.bytes.insert(object.bytes.end(), content.begin(), content.end());
  object.bytes.insert(object.bytes.end(), frame.behind.begin(), frame.behind.end());
  return object;
}

Frame data_frame(const std::string& symbol, uint64_t size, int64_t alignment, const Target& target) {
  constexpr uint64_t kLimit = uint64_t{1} << 31;
  TS_USER_CHECK(size < kLimit, "data-too-large")
      << "codegen: data " << symbol << ": expected less than " << kLimit << " bytes, got " << size
      << "; keep the weights in a file of their own";
  TS_CHECK(alignment > 0 && std::has_single_bit(static_cast<uint64_t>(alignment))) << "alignment " << alignment;
  return ElfWriter(target, ".rodata", SHF_ALLOC, size, static_cast<uint64_t>(alignment))
      .frame({{symbol, size, STT_OBJECT}});
}

}  // namespace

ObjectCode make_data_object(const std::string& symbol, std::span<const uint8_t> bytes, int64_t alignment,
                            const Target& target) {
  return framed(data_frame(symbol, bytes.size(), alignment, target), bytes);
}

Result<void> write_data_object(const std::string& path, const std::string& symbol, int64_t size, int64_t alignment,
                               const Target& target, const DataPieces& pieces) {
  const Frame frame = data_frame(symbol, static_cast<uint64_t>(size), alignment, target);
  Result<AtomicFile> created = AtomicFile::create(path);
  if (!created) return created.failure();
  AtomicFile file = std::move(created).value();
  Result<void> written = file.write(frame.before);
  int64_t left = size;
  pieces([&](std::span<const uint8_t> piece) {
    left -= static_cast<int64_t>(piece.size());
    if (written) written = file.write(piece.data(), piece.size());
  });
  TS_CHECK(left == 0) << symbol << ": " << left << " bytes missing";
  if (written) written = file.write(frame.behind);
  if (!written) return written;
  return file.commit();
}

ObjectCode make_stub_object(const std::vector<std::string>& functions, const Target& target) {
  const uint8_t content[16] = {};
  std::vector<Symbol> symbols;
  for (const std::string& name : functions) symbols.push_back({name, 0, STT_FUNC});
  return framed(ElfWriter(target, ".text", SHF_ALLOC | SHF_EXECINSTR, sizeof content, 16).frame(symbols), content);
}

}  // namespace tensmith
