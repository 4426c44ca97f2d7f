/// Finds the best record of a task, or says why there is none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/records/record_file.h"

namespace tensmith {

/// What is known of a task.
struct RecordFound {
  const TuningRecord* record = nullptr;  ///< the best one; null: see reason
  std::string reason;                    ///< why none, or which one: `best of 12 records, 81.2 us, R.jsonl:17`
};

/// Records by workload. The pointers that it gives live as long as it does. Threads: any, once it is filled.
class RecordIndex {
 public:
  RecordIndex() = default;
  /// Reads all files. Errors: cannot-read.
  static Result<RecordIndex> read(const std::vector<std::string>& files);

  void add(TuningRecord record, const std::string& where);
  /// The fastest record for exactly this task on this machine by this tool; of equal ones the first.
  RecordFound best(const Workload& workload, const ScheduleRequest& request) const;
  /// The same with the machine and tool given.
  RecordFound best(const RecordKey& key, const RecordOrigin& here) const;

  size_t size() const { return count_; }
  const std::vector<BadLine>& bad() const { return bad_; }

 private:
  struct Entry {
    TuningRecord record;
    std::string where;
  };
  std::map<std::string, std::vector<Entry>> by_workload_;
  std::vector<BadLine> bad_;
  size_t count_ = 0;
};

/// The records that are best for their key and origin, in the order in which these first occur.
std::vector<const TuningRecord*> best_records(const std::vector<TuningRecord>& records);

}  // namespace tensmith
