/// Files of records: appended to by any number of processes, read whatever happened to them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/records/record.h"

namespace tensmith {

/// When a record counts as saved.
enum class RecordSync : uint8_t {
  kProcess,  ///< it survives the end of this process, however it ends
  kDisk,     ///< it survives a power failure as well: fsync, some ms a record
};

/// Appends records to a file. Threads and processes: any number at a time, each record stands as a whole line.
class RecordWriter {
 public:
  /// Opens or makes the file. Errors: cannot-write.
  static Result<RecordWriter> open(const std::string& path, RecordSync sync = RecordSync::kProcess);
  RecordWriter(RecordWriter&& other) noexcept;
  RecordWriter& operator=(RecordWriter&&) = delete;
  ~RecordWriter();

  /// Saves one record: when this returns ok, the record will be read. A line that another writer left torn is closed
  /// first. Errors: cannot-write (full disk and the like); then the file is as before.
  Result<void> append(const TuningRecord& record);

 private:
  RecordWriter() = default;
  std::string path_;
  RecordSync sync_ = RecordSync::kProcess;
  int file_ = -1;
};

/// A line that is no record.
struct BadLine {
  std::string file;
  int64_t line = 0;
  std::string id;  ///< record-torn, record-flipped, record-foreign, record-old, record-long
  std::string reason;
};
/// `R.jsonl:17: the record is cut off [record-torn]`.
std::string to_string(const BadLine& bad);

/// What a file held.
struct RecordLines {
  std::vector<TuningRecord> records;  ///< in the order of the file
  std::vector<int64_t> lines;         ///< by record
  std::vector<BadLine> bad;
};
/// Reads a file, skipping and naming what is no record. Errors: cannot-read.
Result<RecordLines> read_records(const std::string& path);

}  // namespace tensmith
