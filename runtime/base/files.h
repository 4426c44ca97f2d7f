/// Reading and writing whole files: output appears complete or not at all; temporary folders that clean up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tensmith {

/// An output file that becomes visible under its name only when `commit` succeeds. Without it nothing remains.
/// Devices and pipes (`/dev/stdout`) are written directly.
class AtomicFile {
 public:
  /// Errors: cannot-write.
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends. Errors: cannot-write (full disk and the like).
  Result<void> write(const void* data, size_t size);
  Result<void> write(std::string_view text) { return write(text.data(), text.size()); }
  /// Makes the file executable for those who may read it (libraries do not need it, programs do).
  void set_executable() { executable_ = true; }
  /// Closes and renames. Whole or not at all if this process dies; after a power failure the file system decides (an
  /// fsync would cost more than a compilation). Errors: cannot-write; then the old file is still there.
  Result<void> commit();

 private:
  AtomicFile() = default;
  Failure failure(const char* what, int error) const;

  std::string path_;       // where it shall appear
  std::string temporary_;  // empty: written directly
  int file_ = -1;
  bool executable_ = false;
};

/// Writes a whole file as AtomicFile does. Errors: cannot-write.
Result<void> write_file(const std::string& path, std::string_view data);
/// Reads a whole file of at most `limit` bytes. Errors: cannot-read, file-too-large.
Result<std::string> read_file(const std::string& path, int64_t limit = int64_t{1} << 31);

/// A new folder that is removed with all it holds at the end of its life.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  const std::string& path() const { return path_; }
  /// Path of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tensmith
