#include "graph/import/external_data.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

/// Why a path may not be opened whatever the kernel says, or null.
const char* forbidden(const std::string& location) {
  if (location.empty()) return "it is empty";
  if (location.find('\0') != std::string::npos) return "it holds a zero byte";
  if (location[0] == '/') return "it is absolute";
  if (location.find('\\') != std::string::npos) return "it holds a backslash";
  size_t start = 0;
  while (start <= location.size()) {
    const size_t end = std::min(location.find('/', start), location.size());
    if (location.compare(start, end - start, "..") == 0) return "it leaves the folder by '..'";
    start = end + 1;
  }
  return nullptr;
}

/// For kernels without openat2: one component at a time, none of them a link.
int open_by_components(int folder, const std::string& location) {
  int at = dup(folder);
  size_t start = 0;
  while (at >= 0) {
    const size_t end = location.find('/', start);
    const std::string component = location.substr(start, end == std::string::npos ? end : end - start);
    const bool last = end == std::string::npos;
    const int next =
        component.empty() || component == "."
            ? dup(at)
            : openat(at, component.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
    const int error = errno;
    close(at);
    errno = error;
    if (last) return next;
    at = next;
    start = end + 1;
  }
  return -1;
}

int open_beneath(int folder, const std::string& location) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long file = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
  if (file >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(file);
  return open_by_components(folder, location);
}

}  // namespace

ExternalData::~ExternalData() {
  if (folder_fd_ >= 0) close(folder_fd_);
}

Result<ExternalBytes> ExternalData::open(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  const std::string what = "external data '" + location.substr(0, 200) + "': ";
  if (const char* why = forbidden(location))
    return Failure{"external-data-outside", what + "expected a path inside the model's folder, got one where " + why +
                                                "; put the file beside the model"};
  if (folder_.empty())
    return Failure{"external-data-outside", what + "expected no external data in a model without a folder"};
  if (folder_fd_ < 0) folder_fd_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd_ < 0)
    return Failure{"external-data-missing", what + "cannot open folder " + folder_ + ": " + std::strerror(errno)};
  const int file = open_beneath(folder_fd_, location);
  if (file < 0) {
    if (errno == ELOOP || errno == EXDEV)
      return Failure{"external-data-outside",
                     what + "expected a file inside the model's folder, got a link; replace the link by the file"};
    return Failure{"external-data-missing", what + std::strerror(errno) + "; it must lie in " + folder_};
  }
  struct stat info {};
  Result<ExternalBytes> result = ExternalBytes{};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    result = Failure{"external-data-outside", what + "expected a regular file"};
  } else if (info.st_nlink > 1) {
    result = Failure{"external-data-outside", what + "expected a file with one name, got one with " +
                                                  std::to_string(info.st_nlink) + " hard links; copy the file"};
  } else if (info.st_size > 0) {
    const size_t size = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      result = Failure{"external-data-missing", what + "cannot map: " + std::strerror(errno)};
    } else {
      std::shared_ptr<const void> owner(data, [size](const void* p) { munmap(const_cast<void*>(p), size); });
      result = ExternalBytes{std::move(owner), static_cast<const char*>(data), info.st_size};
    }
  }
  close(file);
  if (result) files_[location] = *result;
  return result;
}

Result<ExternalBytes> ExternalData::read(const std::string& location, int64_t offset, int64_t length) {
  auto file = open(location);
  if (!file) return file;
  if (length < 0) length = file->size - offset;
  int64_t end = 0;
  if (offset < 0 || length < 0 || !checked_add(offset, length, &end) || end > file->size)
    return Failure{"external-data-short", "external data '" + location + "': expected bytes " + std::to_string(offset) +
                                              " to " + std::to_string(offset) + " + " + std::to_string(length) +
                                              ", got a file of " + std::to_string(file->size) + " bytes"};
  return ExternalBytes{file->owner, file->data ? file->data + offset : nullptr, length};
}

}  // namespace tensmith::graph
