#include "apps/driver/reproducer.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/files.h"

namespace tensmith {

std::string reproducer_graph(const graph::Graph& graph) {
  constexpr int64_t kSmall = int64_t{16} << 20;
  int64_t bytes = 0;
  for (const auto& [digest, constant] : graph::large_constants(graph)) bytes += constant.num_bytes();
  graph::PrintOptions options;
  options.all_content = bytes < kSmall;
  return to_string(graph, options) + "\n";
}

Result<std::string> write_reproducer(const std::string& given, const ReproducerFiles& files) {
  std::string folder = given;
  std::error_code error;
  if (folder.empty()) {
    folder = (std::filesystem::temp_directory_path(error) / "tensmith-repro-XXXXXX").string();
    if (!mkdtemp(folder.data()))
      return Failure{"cannot-write", "reproducer: no folder can be made: " + std::string(std::strerror(errno))};
  }
  std::filesystem::create_directories(folder, error);
  for (const auto& [name, text] : files)
    if (const Result<void> written = write_file((std::filesystem::path(folder) / name).string(), text); !written)
      return Failure{written.failure().id, "reproducer: " + written.failure().message};
  return folder;
}

}  // namespace tensmith
