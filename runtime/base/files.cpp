#include "runtime/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tensmith {

Failure AtomicFile::failure(const char* what, int error) const {
  return Failure{"cannot-write", path_ + ": " + what + ": " + std::strerror(error)};
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile out;
  out.path_ = path;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return out.failure("cannot be written", EISDIR);
    if (!S_ISREG(info.st_mode)) {
      out.file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (out.file_ < 0) return out.failure("cannot be written", errno);
      return out;
    }
    // A link stays a link: its target is replaced. An unwritable file is refused although its folder would allow a
    // rename.
    if (::access(path.c_str(), W_OK) != 0) return out.failure("cannot be written", errno);
    char real[PATH_MAX];
    if (::realpath(path.c_str(), real)) out.path_ = real;
  }
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    out.temporary_ = out.path_ + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1));
    out.file_ = ::open(out.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out.file_ >= 0 || errno != EEXIST) break;
  }
  if (out.file_ < 0) {
    const int error = errno;
    out.temporary_.clear();
    return out.failure("cannot be written", error);
  }
  return out;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(other.file_),
      executable_(other.executable_) {
  other.file_ = -1;
  other.temporary_.clear();
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> AtomicFile::write(const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = ::write(file_, p, std::min<size_t>(size, 1 << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failure("writing failed", errno);
    p += done;
    size -= static_cast<size_t>(done);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  TS_CHECK(file_ >= 0) << path_;
  if (executable_ && !temporary_.empty()) {
    struct stat info;
    if (::fstat(file_, &info) == 0) ::fchmod(file_, (info.st_mode & 0777) | (info.st_mode & 0444) >> 2);
  }
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) return failure("writing failed", errno);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("cannot be replaced", errno);
  temporary_.clear();
  return {};
}

Result<void> write_file(const std::string& path, std::string_view data) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.failure();
  AtomicFile out = std::move(file).value();
  if (Result<void> written = out.write(data); !written) return written;
  return out.commit();
}

Result<std::string> read_file(const std::string& path, int64_t limit) {
  auto failed = [&](int error) { return Failure{"cannot-read", path + ": cannot be read: " + std::strerror(error)}; };
  auto too_large = [&] {
    return Failure{"file-too-large", path + ": expected at most " + std::to_string(limit) + " bytes"};
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed(errno);
  struct Closer {
    int file;
    ~Closer() { ::close(file); }
  } closer{file};
  struct stat info;
  if (::fstat(file, &info) != 0) return failed(errno);
  if (S_ISDIR(info.st_mode)) return failed(EISDIR);
  if (S_ISREG(info.st_mode) && info.st_size > limit) return too_large();
  std::string data;
  data.reserve(S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1 : 4096);
  for (;;) {
    const size_t used = data.size(), step = std::max<size_t>(data.capacity() - used, 1 << 16);
    data.resize(used + step);
    const ssize_t got = ::read(file, data.data() + used, step);
    data.resize(used + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && errno != EINTR) return failed(errno);
    if (got == 0) return data;
    if (static_cast<int64_t>(data.size()) > limit) return too_large();
  }
}

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = std::string(base && *base ? base : "/tmp") + "/tensmith-XXXXXX";
  if (!::mkdtemp(pattern.data()))
    throw DeviceError("no-temp-dir", pattern + ": cannot make a folder: " + std::strerror(errno));
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a destructor has nobody to tell
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tensmith
