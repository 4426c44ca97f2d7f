/// The JSON file beside an exported library: what belongs together, with sizes and digests.
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tensmith {

/// Path of the manifest that belongs to a library: its path with the suffix replaced by `.json`.
std::string manifest_path(const std::string& library);
/// Entry of a file for the manifest's list `files`: name without folder, bytes, SHA-256. Errors: cannot-read.
Result<Json> manifest_file_entry(const std::string& path);
/// The same of a file whose digest (64 hexadecimal digits) is known. Errors: cannot-read.
Result<Json> manifest_file_entry(const std::string& path, const std::string& sha256);
/// Compares a file with its entry in a manifest (`files`). True if it is listed and matches, false if it is not listed.
/// Errors: manifest-mismatch (the file was changed or replaced), bad-json, cannot-read.
Result<bool> check_against_manifest(const std::string& path, const Json& manifest);
/// Reads a manifest. Errors: cannot-read, bad-json.
Result<Json> read_manifest(const std::string& path);

}  // namespace tensmith
