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

/// What becomes of records that another build of the same version made.
enum class OtherBuilds : uint8_t {
  kRefuse,  ///< named as the reason
  kTake,    ///< where this build has none: the schedule still has to replay, its gain is a promise
};

/// Records by workload. The pointers that it gives live as long as it does. Threads: any, once it is filled.
class RecordIndex {
 public:
  RecordIndex() = default;
  /// Reads all files. Errors: cannot-read.
  static Result<RecordIndex> read(const std::vector<std::string>& files);

  void add(TuningRecord record, const std::string& where);
  /// The record to take (see record_to_take) for exactly this task on this machine by this tool.
  RecordFound best(const Workload& workload, const ScheduleRequest& request) const;
  /// The same with the machine and tool given.
  RecordFound best(const RecordKey& key, const RecordOrigin& here, OtherBuilds others = OtherBuilds::kRefuse) const;

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
