/// What the tool carries to make exported libraries without a compiler: the compiled support code and the text of the C
/// interface.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tensmith {

/// The support object for an architecture, as compiled with the tool ("x86_64", "aarch64"). It defines
/// tensmith_support_X for the functions of the interface and needs tensmith_support_model; its other needs are in the C
/// library. Errors: no-support-object if the tool was built without a compiler for that architecture.
Result<std::string_view> support_object(std::string_view arch);

/// Names to give the support object's symbols for a library whose symbols all begin with that prefix, such as "net_":
/// {"tensmith_support_create", "net_create"}, ..., {"tensmith_support_model", "net_model"}. For `rename_symbols`.
std::map<std::string, std::string> support_names(const std::string& prefix);

/// The support object with its symbols renamed for a prefix. Errors: as support_object.
Result<std::string> support_object_for(std::string_view arch, const std::string& prefix);

/// The names that a library with that prefix exports besides its typed entries: net_get_api, net_create, ..., sorted.
std::vector<std::string> exported_names(const std::string& prefix);

/// C source text of the interface's types (abi.h with all it includes) to stand at the head of a library's header. C89
/// but for stdint.h; headers of several libraries may be included together.
std::string abi_header_text();
/// Prototypes of net_get_api, net_create, ... for a prefix, in extern "C" for C++.
std::string abi_prototypes(const std::string& prefix);

/// Digest of the support object and interface: part of what makes a library's bytes.
std::string support_digest(std::string_view arch);

}  // namespace tensmith
