#include "autotune/records/record_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace tensmith {

namespace {

// No workload's text comes near that; a longer line is no record.
constexpr size_t kLongestLine = size_t{16} << 20;

/// Holds the lock of an open file.
class FileLock {
 public:
  explicit FileLock(int file) : file_(file) {
    while (flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) {
        error_ = errno;
        return;
      }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (error_ == 0) flock(file_, LOCK_UN);
  }
  int error() const { return error_; }

 private:
  int file_;
  int error_ = 0;
};

Failure cannot_write(const std::string& path, const char* what, int error) {
  return {"cannot-write", path + ": " + what + ": " + std::strerror(error)};
}

}  // namespace

Result<RecordWriter> RecordWriter::open(const std::string& path, RecordSync sync) {
  RecordWriter writer;
  writer.path_ = path;
  writer.sync_ = sync;
  writer.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (writer.file_ < 0) return cannot_write(path, "the file of records cannot be opened", errno);
  return writer;
}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : path_(std::move(other.path_)), sync_(other.sync_), file_(std::exchange(other.file_, -1)) {}

RecordWriter::~RecordWriter() {
  if (file_ >= 0) close(file_);
}

Result<void> RecordWriter::append(const TuningRecord& record) {
  std::string line = record_line(record);
  if (line.size() > kLongestLine) return Failure{"cannot-write", path_ + ": the record is longer than 16 MiB"};
  const FileLock lock(file_);
  if (lock.error() != 0) return cannot_write(path_, "the file of records cannot be locked", lock.error());
  struct stat before {};
  if (fstat(file_, &before) != 0) return cannot_write(path_, "the file of records cannot be looked at", errno);
  // Whoever was killed while he wrote left a line without its end.
  char last = '\n';
  if (S_ISREG(before.st_mode) && before.st_size > 0 && pread(file_, &last, 1, before.st_size - 1) == 1 && last != '\n')
    line.insert(line.begin(), '\n');
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = write(file_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) {
      written += static_cast<size_t>(count);
      continue;
    }
    const int error = count == 0 ? ENOSPC : errno;
    // Nobody else writes while the lock is held: what stands behind the old end is the piece of this record.
    if (written > 0 && ftruncate(file_, before.st_size) != 0)
      return cannot_write(path_, "a record could not be saved, and its beginning stays in the file", error);
    return cannot_write(path_, "a record could not be saved", error);
  }
  if (sync_ == RecordSync::kDisk && fsync(file_) != 0)
    return cannot_write(path_, "a record may not survive a power failure", errno);
  return {};
}

std::string to_string(const BadLine& bad) {
  return bad.file + ":" + std::to_string(bad.line) + ": " + bad.reason + " [" + bad.id + "]";
}

Result<RecordLines> read_records(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  struct stat kind {};
  if (!file || stat(path.c_str(), &kind) != 0)
    return Failure{"cannot-read", path + ": cannot be read: " + std::strerror(errno)};
  if (S_ISDIR(kind.st_mode)) return Failure{"cannot-read", path + ": cannot be read: it is a folder"};
  RecordLines found;
  std::string line;
  std::vector<char> block(size_t{1} << 16);
  int64_t number = 1;
  bool too_long = false;
  const auto end_line = [&](bool closed) {
    if (too_long) {
      found.bad.push_back({path, number, "record-long", "the line is longer than 16 MiB"});
    } else if (!line.empty()) {
      Result<TuningRecord> record = parse_record_line(line);
      // The last line is whole only with its end: a record of which just that is missing was never acknowledged, but
      // nothing of it is missing either.
      if (record) {
        found.records.push_back(std::move(record).value());
        found.lines.push_back(number);
      } else {
        const bool torn = !closed && record.failure().id == "record-flipped";
        found.bad.push_back({path, number, torn ? "record-torn" : record.failure().id, record.failure().message});
      }
    }
    line.clear();
    too_long = false;
    ++number;
  };
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const std::string_view text(block.data(), static_cast<size_t>(file.gcount()));
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string_view piece = text.substr(at, std::min(end, text.size()) - at);
      if (line.size() + piece.size() > kLongestLine) {
        too_long = true;
        line.clear();
      }
      if (!too_long) line += piece;
      if (end == std::string_view::npos) break;
      end_line(true);
      at = end + 1;
    }
  }
  if (file.bad()) return Failure{"cannot-read", path + ": the file of records cannot be read to its end"};
  if (!line.empty() || too_long) end_line(false);
  return found;
}

}  // namespace tensmith
