/// The functions of this process that generated code may call.
#pragma once

#include <map>
#include <string>

namespace tensmith {

/// Symbol names and addresses.
using SymbolTable = std::map<std::string, void*, std::less<>>;

/// What generated code needs of C: memcpy, memmove, memset, memcmp, aligned_alloc, free and libm's functions for float
/// and double. Nothing else of the process is visible to it.
const SymbolTable& host_symbols();

}  // namespace tensmith
