#include "runtime/manifest.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/files.h"
#include "runtime/base/sha256.h"

namespace tensmith {

std::string manifest_path(const std::string& library) {
  return std::filesystem::path(library).replace_extension(".json").string();
}

Result<Json> manifest_file_entry(const std::string& path) {
  const Result<std::string> digest = sha256_file(path);
  if (!digest) return digest.failure();
  return manifest_file_entry(path, *digest);
}

Result<Json> manifest_file_entry(const std::string& path, const std::string& sha256) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) return Failure{"cannot-read", path + ": cannot be read: " + error.message()};
  return Json{{"name", std::filesystem::path(path).filename().string()}, {"bytes", bytes}, {"sha256", sha256}};
}

Result<bool> check_against_manifest(const std::string& path, const Json& manifest) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_array())
    return Failure{"bad-json", "manifest of " + path + ": expected a list 'files'"};
  for (const Json& entry : manifest["files"]) {
    if (!entry.is_object() || entry.value("name", Json()) != Json(name)) continue;
    Result<Json> actual = manifest_file_entry(path);
    if (!actual) return actual.failure();
    for (const char* key : {"bytes", "sha256"})
      if (entry.value(key, Json()) != (*actual)[key])
        return Failure{"manifest-mismatch", path + ": expected " + key + " " + entry.value(key, Json()).dump() +
                                                " as its manifest says, got " + (*actual)[key].dump() +
                                                "; export it again or remove the manifest"};
    return true;
  }
  return false;
}

Result<Json> read_manifest(const std::string& path) {
  Result<std::string> text = read_file(path, int64_t{64} << 20);
  if (!text) return text.failure();
  Result<Json> json = parse_json(*text);
  if (!json) return Failure{json.failure().id, path + ": " + json.failure().message};
  return json;
}

}  // namespace tensmith
