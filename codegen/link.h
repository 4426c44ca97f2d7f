/// Shared libraries, archives and combined objects, made in this process: no compiler, linker or C library of the
/// system is used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/artifact.h"

namespace tensmith {

/// What a linked file shows to the outside.
struct LinkOptions {
  std::string soname;                 ///< name by which programs ask for the library: "libnet.so"
  std::vector<std::string> exported;  ///< the only symbols visible outside
  /// Paths of further objects, for data that should not stand in memory too.
  std::vector<std::string> object_files = {};
};

/// Writes a shared library: position-independent, read-only after relocation, all symbols bound when loading, needing
/// only those of libc, libm and libpthread that it uses (see system_libraries.h). Equal objects and options give equal
/// bytes. Errors: UserError "undefined-symbol" naming all that neither the objects nor the C libraries define,
/// "undefined-export" for exported names that no object defines, "link-failed" with the linker's text. Cost: 5 ms and
/// the time to write the bytes twice. Threads: one link at a time, others wait.
void link_shared_library(std::span<const ObjectCode> objects, const Target& target, const LinkOptions& options,
                         const std::string& path);

/// All objects as one in which only the exported symbols are visible, so that two exported libraries fit into one
/// program. Errors: as link_shared_library, except that undefined symbols are left to the final link.
ObjectCode link_object(std::span<const ObjectCode> objects, const Target& target, const LinkOptions& options);

/// A static archive with a symbol table, without dates and owners. Members come in the given order under the given
/// names.
std::vector<uint8_t> make_archive(const std::vector<std::pair<std::string, ObjectCode>>& members);

}  // namespace tensmith
