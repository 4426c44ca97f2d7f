/// The parts of the C libraries that exported code may use, with the oldest symbol versions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/target.h"

namespace tensmith {

/// A shared library of the system and the functions we may take from it.
struct SystemLibrary {
  struct Version {
    std::string name;  ///< "GLIBC_2.2.5"
    std::vector<std::string> functions;
  };
  std::string soname;
  std::vector<Version> versions;
};

/// libm, libc and libpthread as the target has them. Linking against these tables instead of the build machine's files
/// makes the result independent of that machine, loadable with glibc from 2014 on (musl ignores versions), and possible
/// for other CPUs.
std::vector<SystemLibrary> system_libraries(const Target& target);

/// Whether the library has the function.
bool provides(const SystemLibrary& library, std::string_view function);

}  // namespace tensmith
