/// Measures candidates in worker processes: builds some while others run, whatever they do to the process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/measure/limits.h"
#include "autotune/measure/result.h"
#include "autotune/measure/task.h"

namespace tensmith {

/// How a session works.
struct SessionOptions {
  /// The program that serves as a local worker: arguments, the first one its path. Empty: this program with
  /// `worker --stdio`.
  std::vector<std::string> worker;
  /// `local`, or `cmd:COMMAND`: a shell command that starts a worker somewhere, whose standard input and output are the
  /// connection. Builders are always local.
  std::string runner = "local";
  int builders = 0;       ///< 0: one less than the usable cores, at least one
  int runners = 1;        ///< candidates that run at a time; more than one only disturb each other on one machine
  std::vector<int> cpus;  ///< CPUs for local workers; empty: all that this process may use
  MeasureLimits limits;
  TimingOptions timing;
  GuardOptions guard;
  bool reuse_equal_code = true;  ///< equal bytes of code are measured once a task
};

/// Counts since the session began.
struct SessionCounts {
  int64_t submitted = 0, finished = 0, valid = 0;
  int64_t builds = 0, runs = 0;
  int64_t builders_started = 0, runners_started = 0;  ///< replacements included
  double build_busy_ms = 0, run_busy_ms = 0;          ///< sums over workers
  std::vector<int64_t> failures;                      ///< by MeasureFailure
};

/// Builds and runs candidates. Results come in order of completion; ids count up from 0 in order of submission. A
/// worker that dies, hangs or is lost is replaced; nothing that a candidate does ends the session.
/// Threads: one thread at a time calls; a thread of the session's own talks to the workers, so both cores stay busy
/// while the caller thinks.
class MeasureSession {
 public:
  /// Errors: UserError `bad-runner`, `worker-start` when no worker answers, `worker-protocol` when it is of another
  /// version; TargetError when the runner's machine cannot run code for a task (from `add_task`).
  explicit MeasureSession(SessionOptions options);
  ~MeasureSession();
  MeasureSession(const MeasureSession&) = delete;
  MeasureSession& operator=(const MeasureSession&) = delete;

  /// Registers a task and starts to make its reference: the plain schedule's outputs, checked at some points against
  /// the float64 interpreter. A reference that cannot be made fails all candidates of the task (kTaskFailed). Errors:
  /// those of check_measure_task; missing-cpu-feature.
  Result<int> add_task(const MeasureTask& task);
  /// Forgets a task; its candidates that wait are cancelled.
  void remove_task(int task);

  /// Hands over a candidate; returns its id at once.
  int64_t submit(int task, MeasureCandidate candidate);
  /// A finished result, if there is one.
  std::optional<MeasureResult> poll();
  /// Waits for one. Null when the time is over or nothing is pending. Units: seconds.
  std::optional<MeasureResult> wait(double seconds);
  /// Cancels what has not started to run; those results come as kCancelled.
  void cancel();
  /// Candidates without a result yet, and results that nobody took.
  int64_t pending() const;
  /// Candidates that wait for a builder: a caller keeps a few there.
  int64_t waiting() const;

  /// The best valid candidate so far with its cost; null before.
  struct Incumbent {
    int64_t id = -1;
    double cost_us = 0;
  };
  std::optional<Incumbent> incumbent(int task) const;

  /// What the reference of a task had to leave out or change; empty when nothing.
  std::string task_note(int task) const;

  SessionCounts counts() const;
  /// What the runner said of itself: `tool`, `protocol`, `target`, `cpu`.
  Json runner_info() const;
  /// Process ids of local workers, builders first; for tests and diagnosis.
  std::vector<int> worker_pids() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensmith
