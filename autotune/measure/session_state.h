/// The inside of a session: trials, workers and the thread between them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "autotune/measure/session.h"
#include "autotune/measure/worker_process.h"

namespace tensmith {

using SessionClock = std::chrono::steady_clock;

/// What workers know tasks and kernels by.
inline std::string session_task_name(int task) { return "t" + std::to_string(task); }
inline std::string session_kernel_name(int task, const std::string& name) {
  return session_task_name(task) + "/" + name;
}

/// A candidate on its way, or the reference of a task.
struct MeasureTrial {
  MeasureResult result;
  MeasureCandidate candidate;
  bool is_reference = false;
  std::shared_ptr<SharedMemory> code;  ///< once built
  Json kernel;                         ///< everything but the code
  SessionClock::time_point started;    ///< in its present worker
  double incumbent_cost_us = 0;        ///< of the incumbent beside which it runs

  bool is_failed() const { return result.failure != MeasureFailure::kNone; }
  /// Sets the failure unless there is one.
  void fail(MeasureFailure failure, std::string message, int signal = 0);
};

/// Code that runners keep for a task: its reference, its incumbent.
struct KeptKernel {
  std::string name;  ///< empty: none
  std::shared_ptr<SharedMemory> code;
  Json kernel;
};

struct SessionTask {
  Json json;
  MeasureTask task;
  enum class Reference { kBuilding, kReady, kFailed } reference = Reference::kBuilding;
  std::string note;  ///< why it failed, or what its reference left out
  KeptKernel reference_kernel, incumbent_kernel;
  MeasureSession::Incumbent incumbent;
  std::map<std::string, MeasureResult> by_code;  ///< finished results by the code's digest
};

/// What an answer that is awaited belongs to.
enum class RequestKind {
  kHello,
  kTask,
  kBuild,
  kLoadReference,
  kReference,
  kLoadIncumbent,
  kCheckIncumbent,
  kLoad,
  kCheck,
  kMeasure,
  kDrop
};

struct WorkerSlot {
  bool is_builder = false;
  std::unique_ptr<WorkerProcess> process;
  bool is_ready = false;  ///< has answered hello
  std::set<int> tasks;
  std::set<std::string> kernels;  ///< loaded: references and incumbents
  struct Awaited {
    int64_t id = 0;
    RequestKind kind = RequestKind::kHello;
  };
  std::deque<Awaited> awaited;
  std::unique_ptr<MeasureTrial> trial;
  SessionClock::time_point deadline = SessionClock::time_point::max();
  int failed_starts = 0;
  int64_t builds = 0;
  int bad_lines = 0;
  std::string last_end;  ///< how the last process ended
};

struct MeasureSession::State {
  explicit State(SessionOptions o);
  ~State();

  // The thread (session.cpp).
  void run();
  void wake();
  void start_worker(WorkerSlot& slot);
  std::vector<std::string> command_of(const WorkerSlot& slot) const;

  // Trials (session_trials.cpp). All with the mutex held.
  void schedule();
  bool may_overlap(int threads) const;
  void start_build(WorkerSlot& slot, std::unique_ptr<MeasureTrial> trial);
  void start_run(WorkerSlot& slot, std::unique_ptr<MeasureTrial> trial);
  void request(WorkerSlot& slot, RequestKind kind, Json json);
  void give_task(WorkerSlot& slot, int task);
  void put_code(const WorkerSlot& slot, Json& json, const std::shared_ptr<SharedMemory>& code) const;
  void read_lines(WorkerSlot& slot);
  void take_answer(WorkerSlot& slot, RequestKind kind, const Json& answer);
  void finish_build(WorkerSlot& slot, const Json& answer);
  void finish_run(WorkerSlot& slot);
  void worker_ended(WorkerSlot& slot, bool by_deadline);
  void forget_incumbent(int task);
  void try_again(const WorkerSlot& slot, std::unique_ptr<MeasureTrial> trial);
  void reference_done(MeasureTrial& trial);
  void update_incumbent(WorkerSlot& slot, MeasureTrial& trial);
  void complete(std::unique_ptr<MeasureTrial> trial);
  void break_down(const std::string& id, const std::string& why);
  void take_ready_made();

  SessionOptions options;
  bool is_remote = false;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<WorkerSlot>> slots;
  std::map<int, SessionTask> tasks;
  int next_task = 0;
  int64_t next_id = 0, next_request = 0;
  std::deque<std::unique_ptr<MeasureTrial>> waiting, built;
  std::deque<MeasureResult> results;
  int64_t unfinished = 0;  ///< candidates without a result
  SessionCounts counts;
  Json info;
  std::string broken_id, broken;  ///< why no worker can be had any more
  bool stopping = false;
  int wake_file = -1;
  std::thread thread;
};

}  // namespace tensmith
