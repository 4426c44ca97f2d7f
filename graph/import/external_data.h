/// Files beside a model that hold its weights: opened only inside the model's folder, mapped, shared.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/base/result.h"

namespace tensmith::graph {

/// Bytes that stay valid as long as `owner` lives.
struct ExternalBytes {
  std::shared_ptr<const void> owner;
  const char* data = nullptr;
  int64_t size = 0;
};

/// The folder of a model as the only place from which external data may come.
class ExternalData {
 public:
  /// An empty folder name: no external data at all.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  /// `length` < 0: to the end of the file. The kernel resolves the path beneath the folder without following links, and
  /// the file must be a regular one with one name only, since names can be swapped but the opened file cannot. Errors:
  /// external-data-outside, external-data-missing, external-data-short.
  Result<ExternalBytes> read(const std::string& location, int64_t offset, int64_t length);

 private:
  Result<ExternalBytes> open(const std::string& location);

  std::string folder_;
  int folder_fd_ = -1;
  std::map<std::string, ExternalBytes> files_;
};

}  // namespace tensmith::graph
