#include <sys/wait.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "autotune/measure/session_state.h"
#include "autotune/measure/worker_faults.h"

namespace tensmith {

namespace {

constexpr int kMostAttempts = 2;

std::string message_of(const Json& answer) {
  const auto it = answer.find("message");
  return it != answer.end() && it->is_string() ? it->get<std::string>() : std::string("no message");
}

bool is_ok(const Json& answer) {
  const auto it = answer.find("ok");
  return it != answer.end() && it->is_boolean() && it->get<bool>();
}

/// The failure that an answer states; `otherwise` for kinds that are none.
MeasureFailure failure_of(const Json& answer, MeasureFailure otherwise) {
  const auto it = answer.find("kind");
  if (it == answer.end() || !it->is_string()) return otherwise;
  const Result<MeasureFailure> failure = parse_measure_failure(it->get<std::string>());
  return failure.ok() && *failure != MeasureFailure::kNone ? *failure : otherwise;
}

int signal_of(const Json& answer) {
  const auto it = answer.find("signal");
  return it != answer.end() && it->is_number_integer() ? it->get<int>() : 0;
}

/// What happens to have failed and may go well the next time.
bool is_transient(MeasureFailure failure) {
  return failure == MeasureFailure::kWorkerLost || failure == MeasureFailure::kBadAnswer ||
         failure == MeasureFailure::kRunTimeout || failure == MeasureFailure::kBuildTimeout ||
         failure == MeasureFailure::kCancelled || failure == MeasureFailure::kTaskFailed;
}

}  // namespace

void MeasureSession::State::take_answer(WorkerSlot& slot, RequestKind kind, const Json& answer) {
  const bool ok = is_ok(answer);
  switch (kind) {
    case RequestKind::kHello: {
      const auto protocol = answer.find("protocol");
      const auto tool = answer.find("tool");
      if (!ok || protocol == answer.end() || *protocol != kMeasureProtocol || tool == answer.end() ||
          *tool != tool_version()) {
        break_down("worker-protocol", "worker: expected tool " + std::string(tool_version()) + " and protocol " +
                                          std::to_string(kMeasureProtocol) + ", got " + answer.dump().substr(0, 200));
        return;
      }
      slot.is_ready = true;
      slot.failed_starts = 0;
      slot.deadline = SessionClock::time_point::max();
      if (!slot.is_builder) {
        info = Json::object();
        for (const char* name : {"tool", "protocol", "target", "cpu"})
          if (answer.contains(name)) info[name] = answer[name];
      }
      changed.notify_all();
      return;
    }
    case RequestKind::kDrop: return;
    case RequestKind::kTask:
      if (!ok && slot.trial) slot.trial->fail(failure_of(answer, MeasureFailure::kTaskFailed), message_of(answer));
      return;
    case RequestKind::kBuild: finish_build(slot, answer); return;
    case RequestKind::kLoadReference:
      if (!ok) slot.kernels.erase(session_kernel_name(slot.trial->result.task, "reference"));
      if (!ok) slot.trial->fail(MeasureFailure::kTaskFailed, "reference: " + message_of(answer));
      return;
    case RequestKind::kReference:
      if (!ok) {
        slot.trial->fail(MeasureFailure::kTaskFailed, std::string("reference: ") +
                                                          to_string(failure_of(answer, MeasureFailure::kTaskFailed)) +
                                                          ": " + message_of(answer));
      } else if (slot.trial->is_reference) {
        const auto note = answer.find("note");
        if (note != answer.end() && note->is_string()) slot.trial->result.message = note->get<std::string>();
      }
      if (slot.trial->is_reference) finish_run(slot);
      return;
    case RequestKind::kLoadIncumbent:
    case RequestKind::kCheckIncumbent:
      // An incumbent that was right before and is not now: the candidate is not to blame, but cannot be compared.
      if (!ok)
        slot.trial->fail(MeasureFailure::kWorkerLost, "the incumbent could not be loaded again: " + message_of(answer));
      return;
    case RequestKind::kLoad:
    case RequestKind::kCheck:
      if (!ok) slot.trial->fail(failure_of(answer, MeasureFailure::kBadAnswer), message_of(answer), signal_of(answer));
      return;
    case RequestKind::kMeasure: {
      const auto timing = answer.find("timing");
      if (!ok) slot.trial->fail(failure_of(answer, MeasureFailure::kBadAnswer), message_of(answer), signal_of(answer));
      else if (timing == answer.end())
        slot.trial->fail(MeasureFailure::kBadAnswer, "the worker's answer has no timing");
      else slot.trial->result.timing = timing_report_from_json(*timing);
      if (!slot.trial->is_failed() && !(slot.trial->result.timing.median_us > 0))
        slot.trial->fail(MeasureFailure::kBadAnswer, "the worker's answer has no time");
      finish_run(slot);
      return;
    }
  }
}

void MeasureSession::State::finish_build(WorkerSlot& slot, const Json& answer) {
  std::unique_ptr<MeasureTrial> trial = std::move(slot.trial);
  slot.deadline = SessionClock::time_point::max();
  const double ms = std::chrono::duration<double, std::milli>(SessionClock::now() - trial->started).count();
  trial->result.build_wall_ms += ms;
  counts.build_busy_ms += ms;
  if (const auto report = answer.find("report"); report != answer.end())
    trial->result.build = build_report_from_json(*report);
  if (!is_ok(answer))
    trial->fail(failure_of(answer, MeasureFailure::kBuildFailed), message_of(answer), signal_of(answer));
  else if (const auto kernel = answer.find("kernel"); kernel != answer.end()) trial->kernel = *kernel;
  else trial->fail(MeasureFailure::kBadAnswer, "the builder's answer has no kernel");
  // What a compiler leaks in thousands of builds goes with its process.
  if (options.limits.builds_of_worker > 0 && slot.builds >= options.limits.builds_of_worker && slot.awaited.empty())
    slot.process.reset(), slot.is_ready = false;
  const auto task = tasks.find(trial->result.task);
  if (task == tasks.end()) trial->fail(MeasureFailure::kCancelled, "the task was removed");
  if (trial->is_failed()) {
    complete(std::move(trial));
    return;
  }
  if (options.reuse_equal_code && !trial->is_reference && !trial->candidate.thorough &&
      !trial->candidate.make_incumbent) {
    const auto known = task->second.by_code.find(trial->result.build.code_sha256);
    if (known != task->second.by_code.end()) {
      MeasureResult copy = known->second;
      copy.same_code_as = copy.same_code_as >= 0 ? copy.same_code_as : copy.id;
      copy.id = trial->result.id;
      copy.build = trial->result.build;
      copy.build_wall_ms = trial->result.build_wall_ms;
      copy.run_wall_ms = 0;
      trial->result = std::move(copy);
      complete(std::move(trial));
      return;
    }
  }
  if (trial->is_reference) built.push_front(std::move(trial));
  else built.push_back(std::move(trial));
}

void MeasureSession::State::finish_run(WorkerSlot& slot) {
  MeasureTrial& trial = *slot.trial;
  slot.deadline = SessionClock::time_point::max();
  const double ms = std::chrono::duration<double, std::milli>(SessionClock::now() - trial.started).count();
  trial.result.run_wall_ms += ms;
  counts.run_busy_ms += ms;
  const auto it = tasks.find(trial.result.task);
  if (trial.is_reference) {
    reference_done(trial);
    if (!trial.is_failed() && it != tasks.end())
      slot.kernels.insert(session_kernel_name(trial.result.task, "reference"));
    slot.trial.reset();
    return;
  }
  if (it == tasks.end()) trial.fail(MeasureFailure::kCancelled, "the task was removed");
  if (trial.result.failure == MeasureFailure::kWorkerLost && trial.result.attempts < kMostAttempts) {
    // The incumbent could not be had: without it then.
    forget_incumbent(trial.result.task);
    try_again(slot, std::move(slot.trial));
    return;
  }
  if (!trial.is_failed()) {
    const TimingReport& timing = trial.result.timing;
    trial.result.cost_us =
        timing.ratio > 0 && trial.incumbent_cost_us > 0 ? timing.ratio * trial.incumbent_cost_us : timing.median_us;
    update_incumbent(slot, trial);
  }
  const std::string name = "c" + std::to_string(trial.result.id);
  if (slot.process && it != tasks.end() && it->second.incumbent_kernel.name != name)
    request(slot, RequestKind::kDrop,
            Json{{"op", "drop"}, {"task", session_task_name(trial.result.task)}, {"kernel", name}});
  complete(std::move(slot.trial));
}

void MeasureSession::State::update_incumbent(WorkerSlot& slot, MeasureTrial& trial) {
  SessionTask& task = tasks.at(trial.result.task);
  const bool is_first = task.incumbent.id < 0;
  const bool is_better = trial.result.cost_us < task.incumbent.cost_us && trial.result.timing.ratio_high < 1 &&
                         trial.result.incumbent == task.incumbent.id && !trial.result.timing.disturbed;
  if (!is_first && !is_better && !trial.candidate.make_incumbent) return;
  const std::string before = task.incumbent_kernel.name;
  task.incumbent = {trial.result.id, trial.result.cost_us};
  task.incumbent_kernel = {"c" + std::to_string(trial.result.id), trial.code, trial.kernel};
  slot.kernels.insert(session_kernel_name(trial.result.task, task.incumbent_kernel.name));
  if (before.empty()) return;
  // Behind what uses it, if a runner is busy with that.
  for (auto& other : slots)
    if (other->process && other->kernels.erase(session_kernel_name(trial.result.task, before)) != 0)
      request(*other, RequestKind::kDrop,
              Json{{"op", "drop"}, {"task", session_task_name(trial.result.task)}, {"kernel", before}});
}

void MeasureSession::State::reference_done(MeasureTrial& trial) {
  const auto it = tasks.find(trial.result.task);
  if (it == tasks.end()) return;
  SessionTask& task = it->second;
  task.note = trial.result.message;
  if (trial.is_failed()) {
    task.reference = SessionTask::Reference::kFailed;
    return;
  }
  task.reference = SessionTask::Reference::kReady;
  task.reference_kernel = {"reference", trial.code, trial.kernel};
}

void MeasureSession::State::forget_incumbent(int task) {
  const auto it = tasks.find(task);
  if (it == tasks.end()) return;
  it->second.incumbent_kernel = {};
  it->second.incumbent = {};
}

void MeasureSession::State::try_again(const WorkerSlot& slot, std::unique_ptr<MeasureTrial> trial) {
  ++trial->result.attempts;
  trial->result.failure = MeasureFailure::kNone;
  trial->result.signal = 0;
  trial->result.message.clear();
  (slot.is_builder ? waiting : built).push_front(std::move(trial));
}

void MeasureSession::State::worker_ended(WorkerSlot& slot, bool by_deadline) {
  const int status = slot.process->finish(/*kill_first=*/by_deadline);
  const std::string tail = slot.process->error_tail();
  const bool was_ready = slot.is_ready;
  const RequestKind at = slot.awaited.empty() ? RequestKind::kDrop : slot.awaited.front().kind;
  slot.process.reset();
  slot.is_ready = false;
  slot.deadline = SessionClock::time_point::max();
  if (!was_ready) ++slot.failed_starts;
  slot.last_end = WIFEXITED(status)     ? "it ended with code " + std::to_string(WEXITSTATUS(status))
                  : WIFSIGNALED(status) ? std::string("it died: ") + strsignal(WTERMSIG(status))
                                        : std::string();
  if (!tail.empty()) slot.last_end += "; it wrote: " + tail;
  if (!slot.trial) return;
  std::unique_ptr<MeasureTrial> trial = std::move(slot.trial);
  const double ms = std::chrono::duration<double, std::milli>(SessionClock::now() - trial->started).count();
  (slot.is_builder ? trial->result.build_wall_ms : trial->result.run_wall_ms) += ms;
  (slot.is_builder ? counts.build_busy_ms : counts.run_busy_ms) += ms;
  const auto explained = [&](const std::string& text) { return tail.empty() ? text : text + "; it wrote: " + tail; };
  if (!trial->is_failed()) {
    if (by_deadline) {
      trial->fail(slot.is_builder ? MeasureFailure::kBuildTimeout : MeasureFailure::kRunTimeout,
                  "the worker did not answer in time and was killed");
    } else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM) {
      trial->fail(slot.is_builder ? MeasureFailure::kBuildCrashed : MeasureFailure::kCrashed,
                  explained(std::string("died: ") + strsignal(WTERMSIG(status))), WTERMSIG(status));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == kWorkerMemoryExit) {
      trial->fail(MeasureFailure::kOutOfMemory, explained("the worker's memory limit is reached"));
    } else {
      trial->fail(MeasureFailure::kWorkerLost,
                  explained(WIFSIGNALED(status) ? "the worker was killed from outside"
                                                : "the worker ended with code " + std::to_string(WEXITSTATUS(status))));
    }
  }
  // Candidates do not pay for faults of what ran before them.
  const bool is_incumbents = at == RequestKind::kLoadIncumbent || at == RequestKind::kCheckIncumbent;
  const bool is_others =
      is_incumbents || (!trial->is_reference && (at == RequestKind::kLoadReference || at == RequestKind::kReference));
  const auto task = tasks.find(trial->result.task);
  if (is_incumbents) forget_incumbent(trial->result.task);
  const bool again = trial->result.failure == MeasureFailure::kWorkerLost ||
                     trial->result.failure == MeasureFailure::kBadAnswer || is_others;
  if (again && trial->result.attempts < kMostAttempts && task != tasks.end() && !stopping) {
    try_again(slot, std::move(trial));
    return;
  }
  complete(std::move(trial));
}

void MeasureSession::State::complete(std::unique_ptr<MeasureTrial> trial) {
  if (trial->is_reference) {
    trial->result.message =
        std::string("reference: ") + to_string(trial->result.failure) + ": " + trial->result.message;
    reference_done(*trial);
    return;
  }
  MeasureResult& result = trial->result;
  ++counts.finished;
  counts.valid += result.valid();
  ++counts.failures[static_cast<size_t>(result.failure)];
  const auto task = tasks.find(result.task);
  if (task != tasks.end() && options.reuse_equal_code && result.same_code_as < 0 && !is_transient(result.failure) &&
      !result.build.code_sha256.empty()) {
    // The windows themselves would be most of the memory of a long session.
    MeasureResult brief = result;
    brief.timing.windows_us.clear();
    brief.timing.incumbent_us.clear();
    brief.timing.yardstick_us.clear();
    task->second.by_code.insert_or_assign(result.build.code_sha256, std::move(brief));
  }
  results.push_back(std::move(result));
  --unfinished;
  changed.notify_all();
}

void MeasureSession::State::break_down(const std::string& id, const std::string& why) {
  broken_id = id;
  broken = why;
  for (auto& slot : slots) {
    if (slot->trial) waiting.push_back(std::move(slot->trial));
    slot->process.reset();
    slot->is_ready = false;
  }
  for (auto* queue : {&waiting, &built})
    while (!queue->empty()) {
      std::unique_ptr<MeasureTrial> trial = std::move(queue->front());
      queue->pop_front();
      trial->fail(MeasureFailure::kWorkerLost, why);
      complete(std::move(trial));
    }
  changed.notify_all();
}

}  // namespace tensmith
