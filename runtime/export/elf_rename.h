/// Small work on ELF objects: renaming symbols, listing them. Objects of both 64-bit architectures, little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tensmith {

/// A symbol of an object or shared library.
struct ElfSymbol {
  std::string name;
  bool defined = false;
  bool global = false;  ///< Global or weak.
  bool hidden = false;
};

/// The machine code of an ELF file: "x86_64", "aarch64" or "machine N". Errors: bad-object.
Result<std::string> elf_arch(std::string_view elf);
/// All named symbols of a relocatable object, in table order. Errors: bad-object.
Result<std::vector<ElfSymbol>> object_symbols(std::string_view object);
/// Names of the functions that a shared library exports. Errors: bad-object.
Result<std::vector<std::string>> exported_symbols(std::string_view library);
/// The object with symbols renamed by the map; symbols that are not in it keep their names. Sections, code and
/// relocations stay as they are: only the string table moves to the end. Errors: bad-object, name-collision.
Result<std::string> rename_symbols(std::string_view object, const std::map<std::string, std::string>& names);

}  // namespace tensmith
