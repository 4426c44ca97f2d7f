#include "autotune/measure/session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/measure/session_state.h"
#include "runtime/base/error.h"

namespace tensmith {

namespace {

constexpr int kMostFailedStarts = 3;

std::string own_program() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "tensmith";
}

}  // namespace

MeasureSession::State::State(SessionOptions o) : options(std::move(o)) {
  TS_USER_CHECK(options.runner == "local" || (options.runner.rfind("cmd:", 0) == 0 && options.runner.size() > 4),
                "bad-runner")
      << "option --runner: expected local or cmd:COMMAND, got '" << options.runner << "'";
  is_remote = options.runner != "local";
  if (options.worker.empty()) options.worker = {own_program(), "worker", "--stdio"};
  if (options.builders <= 0) options.builders = std::max(1, Target::host().cores - 1);
  options.runners = std::max(1, options.runners);
  counts.failures.assign(static_cast<size_t>(MeasureFailure::kCancelled) + 1, 0);
  wake_file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  TS_CHECK(wake_file >= 0) << "eventfd";
  for (int k = 0; k < options.builders + options.runners; ++k) {
    slots.push_back(std::make_unique<WorkerSlot>());
    slots.back()->is_builder = k < options.builders;
  }
  thread = std::thread([this] { run(); });
  // Whoever starts a session wants to know at once that its workers answer.
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] {
    return !broken.empty() || std::all_of(slots.begin(), slots.end(), [](const auto& slot) { return slot->is_ready; });
  });
}

MeasureSession::State::~State() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  wake();
  thread.join();
  close(wake_file);
}

void MeasureSession::State::wake() {
  const uint64_t one = 1;
  const ssize_t unused = write(wake_file, &one, sizeof one);
  static_cast<void>(unused);
}

std::vector<std::string> MeasureSession::State::command_of(const WorkerSlot& slot) const {
  if (slot.is_builder || !is_remote) return options.worker;
  return {"/bin/sh", "-c", "exec " + options.runner.substr(4)};
}

void MeasureSession::State::start_worker(WorkerSlot& slot) {
  slot.is_ready = false;
  slot.tasks.clear();
  slot.kernels.clear();
  slot.awaited.clear();
  slot.builds = 0;
  slot.bad_lines = 0;
  ++(slot.is_builder ? counts.builders_started : counts.runners_started);
  auto started = WorkerProcess::start(
      command_of(slot), slot.is_builder || !is_remote ? options.cpus : std::vector<int>{}, options.limits.answer_bytes);
  if (!started) {
    break_down(started.failure().id, started.failure().message);
    return;
  }
  slot.process = std::move(started).value();
  request(slot, RequestKind::kHello,
          Json{{"op", "hello"}, {"memory_mib", slot.is_builder ? options.limits.build_mib : options.limits.run_mib}});
  slot.deadline = SessionClock::now() + std::chrono::seconds(10);
}

void MeasureSession::State::run() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (broken.empty()) {
      for (auto& slot : slots) {
        if (slot->process || !broken.empty()) continue;
        if (slot->failed_starts >= kMostFailedStarts)
          break_down("worker-start", "worker '" + command_of(*slot).back() +
                                         "': expected an answer to hello, got none, " +
                                         std::to_string(kMostFailedStarts) + " times; " + slot->last_end);
        else start_worker(*slot);
      }
      if (broken.empty()) schedule();
    }
    std::vector<pollfd> files = {{wake_file, POLLIN, 0}};
    std::vector<WorkerSlot*> owners;
    auto next = SessionClock::time_point::max();
    for (auto& slot : slots) {
      if (!slot->process) continue;
      next = std::min(next, slot->deadline);
      const short out = slot->process->wants_to_write() ? POLLOUT : 0;
      files.push_back({slot->process->out_file(), POLLIN, 0});
      files.push_back({slot->process->error_file(), POLLIN, 0});
      files.push_back({out ? slot->process->in_file() : -1, out, 0});
      owners.push_back(slot.get());
    }
    const auto now = SessionClock::now();
    const int64_t wait_ms =
        next == SessionClock::time_point::max()
            ? 60'000
            : std::clamp<int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count() + 1, 0,
                                  60'000);
    lock.unlock();
    ::poll(files.data(), files.size(), static_cast<int>(wait_ms));
    lock.lock();
    uint64_t count = 0;
    while (read(wake_file, &count, sizeof count) > 0) {
    }
    for (size_t k = 0; k < owners.size(); ++k) {
      WorkerSlot& slot = *owners[k];
      if (!slot.process) continue;
      const bool is_open = slot.process->pump();
      read_lines(slot);
      if (!slot.process) continue;
      if (!is_open) worker_ended(slot, /*by_deadline=*/false);
      else if (SessionClock::now() >= slot.deadline) worker_ended(slot, /*by_deadline=*/true);
    }
  }
  for (auto& slot : slots) slot->process.reset();
}

MeasureSession::MeasureSession(SessionOptions options) : state_(std::make_unique<State>(std::move(options))) {
  std::string id, why;
  {
    const std::lock_guard lock(state_->mutex);
    id = state_->broken_id;
    why = state_->broken;
  }
  if (why.empty()) return;
  state_.reset();
  throw UserError(id, why);
}

MeasureSession::~MeasureSession() = default;

Result<int> MeasureSession::add_task(const MeasureTask& task) {
  if (Result<void> ok = check_measure_task(task); !ok) return ok.failure();
  SessionTask added;
  added.task = task;
  added.json = to_json(task);
  const Schedule plain = plain_schedule(task.workload, task.request);
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_remote)
    if (const char* missing = task.request.target.missing_on_host())
      return Failure{"missing-cpu-feature", "task " + task.workload.name + ": target " +
                                                to_string(task.request.target) + " needs " + missing +
                                                ", which this machine lacks; use a runner that has it"};
  const int id = state_->next_task++;
  auto trial = std::make_unique<MeasureTrial>();
  trial->result.task = id;
  trial->is_reference = true;
  trial->candidate.steps = plain.steps();
  trial->candidate.use_guard = false;
  state_->tasks.emplace(id, std::move(added));
  state_->waiting.push_front(std::move(trial));
  state_->wake();
  return id;
}

void MeasureSession::remove_task(int task) {
  const std::lock_guard lock(state_->mutex);
  state_->tasks.erase(task);
  for (auto* queue : {&state_->waiting, &state_->built}) {
    std::deque<std::unique_ptr<MeasureTrial>> kept;
    for (auto& trial : *queue) {
      if (trial->result.task != task) {
        kept.push_back(std::move(trial));
        continue;
      }
      trial->fail(MeasureFailure::kCancelled, "the task was removed");
      state_->complete(std::move(trial));
    }
    *queue = std::move(kept);
  }
  for (auto& slot : state_->slots)
    if (slot->process && slot->tasks.erase(task) != 0) {
      slot->process->send(json_line(Json{{"id", -2}, {"op", "forget"}, {"task", "t" + std::to_string(task)}}));
      std::erase_if(slot->kernels,
                    [&](const std::string& name) { return name.rfind("t" + std::to_string(task) + "/", 0) == 0; });
    }
  state_->wake();
}

int64_t MeasureSession::submit(int task, MeasureCandidate candidate) {
  const std::lock_guard lock(state_->mutex);
  auto trial = std::make_unique<MeasureTrial>();
  const int64_t id = trial->result.id = state_->next_id++;
  trial->result.task = task;
  trial->candidate = std::move(candidate);
  ++state_->counts.submitted;
  ++state_->unfinished;
  if (!state_->broken.empty()) {
    trial->fail(MeasureFailure::kWorkerLost, state_->broken);
    state_->complete(std::move(trial));
  } else if (state_->tasks.count(task) == 0) {
    trial->fail(MeasureFailure::kTaskFailed, "task: expected one of the session, got another number");
    state_->complete(std::move(trial));
  } else {
    state_->waiting.push_back(std::move(trial));
    state_->wake();
  }
  return id;
}

std::optional<MeasureResult> MeasureSession::poll() {
  const std::lock_guard lock(state_->mutex);
  if (state_->results.empty()) return std::nullopt;
  MeasureResult result = std::move(state_->results.front());
  state_->results.pop_front();
  return result;
}

std::optional<MeasureResult> MeasureSession::wait(double seconds) {
  {
    std::unique_lock lock(state_->mutex);
    const auto done = [&] { return !state_->results.empty() || state_->unfinished == 0; };
    state_->changed.wait_for(lock, std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9)), done);
  }
  return poll();
}

void MeasureSession::cancel() {
  const std::lock_guard lock(state_->mutex);
  for (auto* queue : {&state_->waiting, &state_->built}) {
    std::deque<std::unique_ptr<MeasureTrial>> kept;
    for (auto& trial : *queue) {
      if (trial->is_reference) {
        kept.push_back(std::move(trial));
        continue;
      }
      trial->fail(MeasureFailure::kCancelled, "cancelled");
      state_->complete(std::move(trial));
    }
    *queue = std::move(kept);
  }
}

int64_t MeasureSession::pending() const {
  const std::lock_guard lock(state_->mutex);
  return state_->unfinished + static_cast<int64_t>(state_->results.size());
}

int64_t MeasureSession::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int64_t>(state_->waiting.size());
}

std::optional<MeasureSession::Incumbent> MeasureSession::incumbent(int task) const {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->tasks.find(task);
  if (it == state_->tasks.end() || it->second.incumbent.id < 0) return std::nullopt;
  return it->second.incumbent;
}

std::string MeasureSession::task_note(int task) const {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->tasks.find(task);
  return it == state_->tasks.end() ? std::string() : it->second.note;
}

SessionCounts MeasureSession::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

Json MeasureSession::runner_info() const {
  const std::lock_guard lock(state_->mutex);
  return state_->info;
}

std::vector<int> MeasureSession::worker_pids() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<int> pids;
  for (const auto& slot : state_->slots)
    if (slot->process) pids.push_back(slot->process->pid());
  return pids;
}

}  // namespace tensmith
