/// Trials of a tuning run, measured by workers and kept in a file of records.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/session.h"
#include "autotune/records/record_file.h"
#include "autotune/search/tuner.h"

namespace tensmith {

/// Measures in the workers of a session.
class SessionMeasurer : public TrialMeasurer {
 public:
  /// Errors: those of MeasureSession.
  explicit SessionMeasurer(const SessionOptions& options) : session_(options) {}

  Result<void> add_task(const TuningTask& task) override;
  void submit(int task, int64_t trial, const Schedule& schedule, bool thorough, bool as_incumbent) override;
  std::optional<Finished> wait(double seconds) override;
  void cancel() override { session_.cancel(); }
  std::string note(int task) const override;

  /// Of measurements for that target: the CPU is the runner's, which may stand elsewhere.
  RecordOrigin origin(const Target& target) const;
  const MeasureSession& session() const { return session_; }

 private:
  MeasureSession session_;
  std::vector<int> tasks_;             ///< the session's number of each; -1: refused
  std::map<int64_t, int64_t> trials_;  ///< by the session's id of a candidate
};

/// The key of the task's records.
RecordKey record_key(const TuningTask& task);

/// Keeps trials in a file of records, and finds those that it holds from earlier runs on one machine by this tool.
class RecordStore : public TrialStore {
 public:
  /// Reads the file if it exists. `tasks` outlive the store. `cpu`: of who measures, as SessionMeasurer::origin has it;
  /// empty: this machine's. Errors: cannot-read, cannot-write.
  static Result<RecordStore> open(const std::string& path, const std::vector<TuningTask>& tasks, uint64_t seed,
                                  const std::string& cpu = {});

  std::optional<TrialOutcome> find(int task, const Candidate& candidate) override;
  Result<void> save(int task, int64_t trial, const Candidate& candidate, const TrialOutcome& outcome) override;
  Result<void> save_compared(int task, const Candidate& candidate, const TrialOutcome& outcome) override;
  Result<void> save_winner(int task, const Candidate& candidate, const TrialOutcome& outcome) override;
  /// What was found in another way than by a trial. Errors: cannot-write.
  Result<void> append(const TuningRecord& record) { return writer_.append(record); }

  /// Records of these tasks that were found; records of other machines, versions and tasks; and those of other builds
  /// of this version.
  int64_t known() const { return static_cast<int64_t>(known_.size()); }
  int64_t foreign() const { return foreign_; }
  int64_t other_builds() const { return other_builds_; }
  /// Lines that are no records.
  const std::vector<BadLine>& bad() const { return bad_; }

 private:
  explicit RecordStore(RecordWriter writer) : writer_(std::move(writer)) {}
  RecordOrigin origin_of(const TuningTask& task) const;
  Result<void> append(int task, int64_t trial, const Candidate& candidate, const TrialOutcome& outcome,
                      RecordStanding standing);

  RecordWriter writer_;
  const std::vector<TuningTask>* tasks_ = nullptr;
  uint64_t seed_ = 0;
  std::string cpu_;
  std::map<std::pair<int, std::string>, TrialOutcome> known_;  ///< by task and steps
  int64_t foreign_ = 0, other_builds_ = 0;
  std::vector<BadLine> bad_;
};

}  // namespace tensmith
