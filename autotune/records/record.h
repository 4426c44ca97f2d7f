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

/// What the code generator may do to the arithmetic, as in CodegenOptions.
struct RecordArithmetic {
  bool fast_math = false, contract_fma = true;

  friend auto operator<=>(const RecordArithmetic&, const RecordArithmetic&) = default;
};

/// For what a schedule was measured: two records compare when this is equal.
struct RecordKey {
  std::string workload;  ///< its full text
  std::vector<std::string> input_layouts, output_layouts;
  int threads = 1;
  RecordArithmetic arithmetic;

  friend auto operator<=>(const RecordKey&, const RecordKey&) = default;
};
RecordKey record_key(const Workload& workload, const ScheduleRequest& request, const RecordArithmetic& arithmetic = {});

/// The machine and the tool that measured.
struct RecordOrigin {
  std::string target;  ///< to_string(Target): features, caches, cores
  std::string cpu;     ///< the CPU's own name
  std::string tool;    ///< version
  std::string build;   ///< build_id() of the tool

  friend bool operator==(const RecordOrigin&, const RecordOrigin&) = default;
};
/// Of measurements for that target on this machine by this tool.
RecordOrigin origin_here(const Target& target);
/// Why times from `from` say nothing about `here`, or "": `made for another CPU: X, this is Y`. The number of cores
/// may differ: how many of them a kernel uses is part of the key.
std::string origin_difference(const RecordOrigin& from, const RecordOrigin& here);
/// Whether they differ in nothing but the build of one version of the tool: such a schedule is still legal if it
/// replays, but its times were those of other code.
bool differs_by_build_alone(const RecordOrigin& from, const RecordOrigin& here);

/// Equal for origins whose times compare.
std::string origin_key(const RecordOrigin& origin);

/// How much a record's times are worth.
enum class RecordStanding : uint8_t {
  kTrial,     ///< measured once beside whatever was best then
  kCompared,  ///< compared in turns with the default at the end of a run, and not the best there
  kWinner,    ///< compared in the same way and best beyond noise; the default itself where nothing was
};
/// `trial`, `compared`, `winner`.
const char* to_string(RecordStanding standing);

/// What the machine could do while a record was measured, with as many threads; 0: unknown.
struct RecordPeak {
  double gflops = 0;      ///< Units: GFLOP/s, float32 FMAs
  double cache_gbs = 0;   ///< Units: GB/s read from L2
  double memory_gbs = 0;  ///< Units: GB/s read from behind L2

  friend bool operator==(const RecordPeak&, const RecordPeak&) = default;
};

/// A schedule, how long it took or why it failed; or a way that a pass over the graph may go (graph/choice.h), judged
/// in the whole model. Of such a record the key's workload is the name of the place, and the times are of all kernels
/// that depend on it.
struct TuningRecord {
  RecordKey key;
  RecordOrigin origin;
  std::string way;  ///< "" for a schedule
  std::vector<Step> steps;
  Decisions decisions;           ///< that led to the steps; empty when they were written by hand
  std::vector<double> times_us;  ///< all of them; empty when it failed
  /// Time of the default schedule in the same run, on the scale of `times_us`; 0: unknown. Clocks differ between runs,
  /// so that times of two records compare only by way of this.
  double default_us = 0;
  int64_t cold_bytes = 0;  ///< the weights around it, as in MeasureTask
  RecordPeak peak;
  std::string error;  ///< kind of failure: a word with dashes; empty when it was measured
  std::string error_text;
  uint64_t seed = 0;
  int64_t trial = 0;
  RecordStanding standing = RecordStanding::kTrial;
  std::string label;  ///< of the task, for people
  std::string date;   ///< UTC, ISO 8601

  bool is_choice() const { return !way.empty(); }
  bool ok() const { return error.empty() && !times_us.empty(); }
  /// Units: us. The median; 0 when it failed.
  double time_us() const;
  /// The distance of the quartiles in units of the median.
  double spread() const;
  /// The default's time to its own; 0 when either is unknown.
  double gain() const;
  /// The same with its time longer by its spread.
  double sure_gain() const;

  friend bool operator==(const TuningRecord&, const TuningRecord&) = default;
};
/// What a record tries for its key: the way, or the steps of the schedule, a line each.
std::string tried_text(const TuningRecord& record);
/// The same of the steps of a schedule.
std::string tried_text(const std::vector<Step>& steps);
/// Now, as `date` says it.
std::string record_date();

/// The record whose schedule is to be taken, of valid ones and failures for one key and origin in the order of their
/// file: of the winners the one with the largest gain, as its last comparison found it. A trial that came after all
/// comparisons, as an interrupted run leaves them, is taken only when it beats the default and the winner by more than
/// its own spread. Never a schedule that failed later. Null when there is none: the default is to be taken.
const TuningRecord* record_to_take(const std::vector<const TuningRecord*>& records);

/// Version of the form of a line.
inline constexpr int kRecordSchema = 2;

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
