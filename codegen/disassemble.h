/// Object code as text again.
#pragma once

#include <string>

#include "codegen/artifact.h"

namespace tensmith {

/// The functions of an object or of a shared library as assembly with local labels, in the form that inspect_assembly reads. Ten times cheaper
/// than having LLVM write assembly beside the object; constants are not shown and addresses of data stay numbers.
/// Errors: UserError "bad-object" when it is no ELF object; TargetError "unknown-target".
std::string disassemble(const ObjectCode& object, const Target& target);

}  // namespace tensmith
