/// One measured schedule as a line of a record file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/default_schedule.h"
#include "autotune/space/decisions.h"
#include "schedule/trace.h"

namespace tensmith {

/// For what a schedule was measured: two records compare when this is equal.
struct RecordKey {
  std::string workload;  ///< its full text
  std::vector<std::string> input_layouts, output_layouts;
  int threads = 1;

  friend auto operator<=>(const RecordKey&, const RecordKey&) = default;
};
RecordKey record_key(const Workload& workload, const ScheduleRequest& request);

/// The machine and the tool that measured.
struct RecordOrigin {
  std::string target;  ///< to_string(Target): features, caches, cores
  std::string cpu;     ///< the CPU's own name
  std::string tool;    ///< version

  friend bool operator==(const RecordOrigin&, const RecordOrigin&) = default;
};
/// Of measurements for that target on this machine by this tool.
RecordOrigin origin_here(const Target& target);
/// Why times from `from` say nothing about `here`, or "": `made for another CPU: X, this is Y`. The number of cores
/// may differ: how many of them a kernel uses is part of the key.
std::string origin_difference(const RecordOrigin& from, const RecordOrigin& here);

/// Equal for origins whose times compare.
std::string origin_key(const RecordOrigin& origin);

/// A schedule, how long it took or why it failed.
struct TuningRecord {
  RecordKey key;
  RecordOrigin origin;
  std::vector<Step> steps;
  Decisions decisions;           ///< that led to the steps; empty when they were written by hand
  std::vector<double> times_us;  ///< all of them; empty when it failed
  std::string error;             ///< kind of failure: a word with dashes; empty when it was measured
  std::string error_text;
  uint64_t seed = 0;
  int64_t trial = 0;
  /// Found best at the end of a run, in a thorough comparison with the default (or the default itself, when nothing
  /// beat it beyond noise): it is taken before faster-looking single trials, until a later winner.
  bool is_winner = false;
  std::string label;  ///< of the task, for people
  std::string date;   ///< UTC, ISO 8601

  bool ok() const { return error.empty() && !times_us.empty(); }
  /// Units: us. The median; 0 when it failed.
  double time_us() const;
  /// The distance of the quartiles in units of the median.
  double spread() const;

  friend bool operator==(const TuningRecord&, const TuningRecord&) = default;
};
/// Now, as `date` says it.
std::string record_date();

/// The record whose schedule is to be taken, of valid ones and failures for one key and origin in the order of their
/// file: the last winner, else the fastest; never a schedule that failed later. Null when there is none.
const TuningRecord* record_to_take(const std::vector<const TuningRecord*>& records);

/// Version of the form of a line.
inline constexpr int kRecordSchema = 1;

/// The check of a record's text.
std::string record_check(std::string_view body);
/// One line with its newline: `{"check":"<16 hexadecimal digits>","record":{"schema":1,...}}`. The check covers the
/// text of the record. Equal records give equal bytes.
std::string record_line(const TuningRecord& record);
/// Reads a line without its newline; it may come from anywhere.
/// Errors: record-torn (cut off), record-flipped (the check does not agree), record-foreign (something else),
/// record-old (another version of the form).
Result<TuningRecord> parse_record_line(std::string_view line);

}  // namespace tensmith
