#include "runtime/export/elf_rename.h"

#include <elf.h>

#include <cstring>
#include <set>

namespace tensmith {
namespace {

Failure bad(const std::string& what) { return Failure{"bad-object", "object file: " + what}; }

/// Bounds-checked views of an ELF file's parts. The file may come from outside.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {}

  Result<void> open() {
    if (!read(0, header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) return bad("expected an ELF file");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
      return bad("expected a 64-bit little-endian file");
    if (header_.e_shentsize != sizeof(Elf64_Shdr)) return bad("expected section headers of 64 bytes");
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr section;
      if (header_.e_shoff > bytes_.size() || !read(header_.e_shoff + i * sizeof section, section))
        return bad("the section table is cut off");
      const bool in_file = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
      if (in_file && (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset))
        return bad("section " + std::to_string(i) + " lies outside the file");
      sections_.push_back(section);
    }
    return {};
  }

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }

  /// The symbols of the first table of that type and the number of its section.
  Result<std::vector<Elf64_Sym>> symbols(uint32_t type, size_t* number) const {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type != type) continue;
      if (s.sh_entsize != sizeof(Elf64_Sym) || s.sh_link >= sections_.size() ||
          sections_[s.sh_link].sh_type != SHT_STRTAB)
        return bad("the symbol table is malformed");
      *number = i;
      std::vector<Elf64_Sym> list(s.sh_size / sizeof(Elf64_Sym));
      if (!list.empty()) std::memcpy(list.data(), bytes_.data() + s.sh_offset, list.size() * sizeof(Elf64_Sym));
      return list;
    }
    return bad("expected a symbol table");
  }

  Result<std::string> name(size_t table, const Elf64_Sym& symbol) const {
    const Elf64_Shdr& strings = sections_[sections_[table].sh_link];
    const std::string_view text = bytes_.substr(strings.sh_offset, strings.sh_size);
    if (symbol.st_name >= text.size()) return bad("a symbol's name lies outside the string table");
    const size_t end = text.find('\0', symbol.st_name);
    if (end == std::string_view::npos) return bad("a symbol's name has no end");
    return std::string(text.substr(symbol.st_name, end - symbol.st_name));
  }

 private:
  template <typename T>
  bool read(uint64_t at, T& out) const {
    if (at > bytes_.size() || sizeof out > bytes_.size() - at) return false;
    std::memcpy(&out, bytes_.data() + at, sizeof out);
    return true;
  }

  std::string_view bytes_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Shdr> sections_;
};

template <typename T>
void put(std::string& bytes, uint64_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

Result<std::string> elf_arch(std::string_view elf) {
  Elf file(elf);
  if (Result<void> opened = file.open(); !opened) return opened.failure();
  const int machine = file.header().e_machine;
  return std::string(machine == EM_X86_64    ? "x86_64"
                     : machine == EM_AARCH64 ? "aarch64"
                                             : "machine " + std::to_string(machine));
}

Result<std::vector<ElfSymbol>> object_symbols(std::string_view object) {
  Elf file(object);
  if (Result<void> opened = file.open(); !opened) return opened.failure();
  size_t table = 0;
  Result<std::vector<Elf64_Sym>> list = file.symbols(SHT_SYMTAB, &table);
  if (!list) return list.failure();
  std::vector<ElfSymbol> out;
  for (const Elf64_Sym& s : *list) {
    Result<std::string> name = file.name(table, s);
    if (!name) return name.failure();
    if (!name->empty())
      out.push_back({*name, s.st_shndx != SHN_UNDEF, ELF64_ST_BIND(s.st_info) != STB_LOCAL,
                     ELF64_ST_VISIBILITY(s.st_other) == STV_HIDDEN});
  }
  return out;
}

Result<std::vector<std::string>> exported_symbols(std::string_view library) {
  Elf file(library);
  if (Result<void> opened = file.open(); !opened) return opened.failure();
  size_t table = 0;
  Result<std::vector<Elf64_Sym>> list = file.symbols(SHT_DYNSYM, &table);
  if (!list) return list.failure();
  std::vector<std::string> out;
  for (const Elf64_Sym& s : *list) {
    if (s.st_shndx == SHN_UNDEF || ELF64_ST_BIND(s.st_info) == STB_LOCAL || ELF64_ST_TYPE(s.st_info) != STT_FUNC)
      continue;
    Result<std::string> name = file.name(table, s);
    if (!name) return name.failure();
    out.push_back(*name);
  }
  return out;
}

Result<std::string> rename_symbols(std::string_view object, const std::map<std::string, std::string>& names) {
  Elf file(object);
  if (Result<void> opened = file.open(); !opened) return opened.failure();
  if (file.header().e_type != ET_REL) return bad("expected a relocatable object");
  size_t table = 0;
  Result<std::vector<Elf64_Sym>> list = file.symbols(SHT_SYMTAB, &table);
  if (!list) return list.failure();

  const Elf64_Shdr& symtab = file.sections()[table];
  Elf64_Shdr strings = file.sections()[symtab.sh_link];
  std::string out(object);
  // The new table begins with the old one, so all other references into it (LLVM keeps section names there too) stay
  // valid.
  std::string text(object.substr(strings.sh_offset, strings.sh_size));
  std::set<std::string> global;
  for (size_t i = 0; i < list->size(); ++i) {
    Elf64_Sym symbol = (*list)[i];
    Result<std::string> name = file.name(table, symbol);
    if (!name) return name.failure();
    auto it = names.find(*name);
    const std::string& final_name = it == names.end() ? *name : it->second;
    if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && !final_name.empty() && !global.insert(final_name).second)
      return Failure{"name-collision", "object file: two global symbols would be called " + final_name};
    if (it == names.end() || it->first.empty()) continue;
    symbol.st_name = static_cast<uint32_t>(text.size());
    text += it->second;
    text += '\0';
    put(out, symtab.sh_offset + i * sizeof symbol, symbol);
  }
  out.resize((out.size() + 7) / 8 * 8);
  strings.sh_offset = out.size();
  strings.sh_size = text.size();
  out += text;
  put(out, file.header().e_shoff + symtab.sh_link * sizeof strings, strings);
  return out;
}

}  // namespace tensmith
