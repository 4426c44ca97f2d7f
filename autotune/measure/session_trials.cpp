#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/measure/session_state.h"
#include "runtime/base/error.h"

namespace tensmith {

namespace {

/// Built candidates that wait for a runner: enough that it never waits, few enough that a better incumbent is known
/// early.
constexpr size_t kMostBuilt = 8;
constexpr int kMostBadLines = 1000;
/// Limits are for candidates; a reference just has to run.
constexpr int64_t kReferenceCodeBytes = int64_t{64} << 20;
/// Beyond what workers keep to themselves. Units: seconds.
constexpr double kGrace = 5;

SessionClock::time_point in_seconds(double seconds) {
  return SessionClock::now() +
         std::chrono::duration_cast<SessionClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void MeasureTrial::fail(MeasureFailure failure, std::string message, int signal) {
  if (is_failed()) return;
  result.failure = failure;
  result.message = std::move(message);
  result.signal = signal;
}

void MeasureSession::State::request(WorkerSlot& slot, RequestKind kind, Json json) {
  const int64_t id = next_request++;
  Json whole{{"id", id}};
  for (auto& [key, value] : json.items()) whole[key] = std::move(value);
  slot.process->send(json_line(whole));
  slot.process->pump();
  slot.awaited.push_back({id, kind});
}

void MeasureSession::State::give_task(WorkerSlot& slot, int task) {
  if (!slot.tasks.insert(task).second) return;
  request(slot, RequestKind::kTask,
          Json{{"op", "task"}, {"task", session_task_name(task)}, {"value", tasks.at(task).json}});
}

void MeasureSession::State::put_code(const WorkerSlot& slot, Json& json,
                                     const std::shared_ptr<SharedMemory>& code) const {
  if (is_remote && !slot.is_builder) json["code"] = to_base64(code->read());
  else json["from"] = code->path();
}

bool MeasureSession::State::may_overlap(int threads) const {
  return is_remote || threads + options.builders <= std::max(1, Target::host().cores);
}

/// Ends candidates of tasks that are lost, and takes those with code of their own past the builders.
void MeasureSession::State::take_ready_made() {
  for (auto* queue : {&waiting, &built}) {
    std::deque<std::unique_ptr<MeasureTrial>> left;
    for (auto& trial : *queue) {
      const SessionTask& task = tasks.at(trial->result.task);
      if (!trial->is_reference && task.reference == SessionTask::Reference::kFailed) {
        trial->fail(MeasureFailure::kTaskFailed, task.note);
        complete(std::move(trial));
      } else {
        left.push_back(std::move(trial));
      }
    }
    *queue = std::move(left);
  }
  // Each holds a file descriptor, so only a few at a time.
  std::deque<std::unique_ptr<MeasureTrial>> left;
  for (auto& trial : waiting) {
    if (!trial->candidate.built || built.size() >= kMostBuilt) {
      left.push_back(std::move(trial));
      continue;
    }
    const std::vector<uint8_t>& bytes = trial->candidate.built->object.bytes;
    trial->kernel = to_json(*trial->candidate.built);
    trial->code = std::make_shared<SharedMemory>();
    trial->code->write(bytes);
    trial->result.build.code_bytes = static_cast<int64_t>(bytes.size());
    trial->candidate.built.reset();
    built.push_back(std::move(trial));
  }
  waiting = std::move(left);
}

void MeasureSession::State::schedule() {
  const auto busy = [&](bool builder) {
    return std::any_of(slots.begin(), slots.end(),
                       [&](const auto& slot) { return slot->is_builder == builder && slot->trial; });
  };
  take_ready_made();
  const auto next_run = [&] {
    return std::find_if(built.begin(), built.end(), [&](const auto& trial) {
      return trial->is_reference || tasks.at(trial->result.task).reference == SessionTask::Reference::kReady;
    });
  };
  for (auto& slot : slots) {
    if (slot->is_builder || !slot->is_ready || slot->trial) continue;
    const auto it = next_run();
    if (it == built.end()) break;
    if (!may_overlap(tasks.at((*it)->result.task).task.request.threads)) {
      // The kernel needs the builders' cores: those finish what they have, and build a few ahead first.
      if (busy(true) || (!waiting.empty() && built.size() < kMostBuilt / 2 && !(*it)->is_reference)) break;
    }
    std::unique_ptr<MeasureTrial> trial = std::move(*it);
    built.erase(it);
    start_run(*slot, std::move(trial));
  }
  for (auto& slot : slots) {
    if (!slot->is_builder || !slot->is_ready || slot->trial) continue;
    const auto next_build =
        std::find_if(waiting.begin(), waiting.end(), [](const auto& trial) { return !trial->candidate.built; });
    if (next_build == waiting.end()) break;
    if (built.size() >= kMostBuilt) break;
    const bool blocked = std::any_of(slots.begin(), slots.end(), [&](const auto& other) {
      return !other->is_builder && other->trial &&
             !may_overlap(
                 tasks.count(other->trial->result.task) ? tasks.at(other->trial->result.task).task.request.threads : 1);
    });
    if (blocked) break;
    std::unique_ptr<MeasureTrial> trial = std::move(*next_build);
    waiting.erase(next_build);
    start_build(*slot, std::move(trial));
  }
}

void MeasureSession::State::start_build(WorkerSlot& slot, std::unique_ptr<MeasureTrial> trial) {
  give_task(slot, trial->result.task);
  trial->code = std::make_shared<SharedMemory>();
  Json steps = Json::array();
  for (const Step& step : trial->candidate.steps) steps.push_back(to_string(step));
  Json json{{"op", "build"},
            {"task", session_task_name(trial->result.task)},
            {"steps", std::move(steps)},
            {"to", trial->code->path()},
            {"seconds", options.limits.build_s},
            {"code_bytes", trial->is_reference ? kReferenceCodeBytes : options.limits.code_bytes},
            {"max_unroll", options.limits.max_unroll}};
  if (trial->candidate.use_guard) json["guard"] = to_json(options.guard);
  trial->started = SessionClock::now();
  slot.deadline = in_seconds(3 * options.limits.build_s + kGrace);
  slot.trial = std::move(trial);
  ++slot.builds;
  ++counts.builds;
  request(slot, RequestKind::kBuild, std::move(json));
}

void MeasureSession::State::start_run(WorkerSlot& slot, std::unique_ptr<MeasureTrial> trial) {
  const int id = trial->result.task;
  const SessionTask& task = tasks.at(id);
  double seconds = 0;
  const auto load = [&](RequestKind kind, const std::string& name, const Json& kernel,
                        const std::shared_ptr<SharedMemory>& code) {
    Json json{{"op", "load"},
              {"task", session_task_name(id)},
              {"kernel", name},
              {"value", kernel},
              {"seconds", options.limits.run_s}};
    put_code(slot, json, code);
    seconds += options.limits.run_s;
    request(slot, kind, std::move(json));
  };
  const auto make_reference = [&] {
    seconds += options.limits.reference_s;
    request(slot, RequestKind::kReference,
            Json{{"op", "reference"},
                 {"task", session_task_name(id)},
                 {"kernel", "reference"},
                 {"seconds", options.limits.reference_s}});
  };
  trial->started = SessionClock::now();
  slot.trial = std::move(trial);
  MeasureTrial& run = *slot.trial;
  ++counts.runs;
  give_task(slot, id);
  if (run.is_reference) {
    load(RequestKind::kLoadReference, "reference", run.kernel, run.code);
    make_reference();
  } else {
    if (slot.kernels.insert(session_kernel_name(id, "reference")).second) {
      load(RequestKind::kLoadReference, "reference", task.reference_kernel.kernel, task.reference_kernel.code);
      make_reference();
    }
    const KeptKernel& kept = task.incumbent_kernel;
    if (!kept.name.empty() && slot.kernels.insert(session_kernel_name(id, kept.name)).second) {
      load(RequestKind::kLoadIncumbent, kept.name, kept.kernel, kept.code);
      seconds += options.limits.run_s;
      request(slot, RequestKind::kCheckIncumbent,
              Json{{"op", "check"},
                   {"task", session_task_name(id)},
                   {"kernel", kept.name},
                   {"sets", {0}},
                   {"seconds", options.limits.run_s}});
    }
    run.result.incumbent = task.incumbent.id;
    run.incumbent_cost_us = task.incumbent.cost_us;
    const std::string name = "c" + std::to_string(run.result.id);
    load(RequestKind::kLoad, name, run.kernel, run.code);
    seconds += 2 * options.limits.run_s;
    Json sets = run.candidate.thorough ? Json{0, 1, 2} : Json{0, 1};
    request(slot, RequestKind::kCheck,
            Json{{"op", "check"},
                 {"task", session_task_name(id)},
                 {"kernel", name},
                 {"sets", std::move(sets)},
                 {"seconds", options.limits.run_s}});
    request(slot, RequestKind::kMeasure,
            Json{{"op", "measure"},
                 {"task", session_task_name(id)},
                 {"kernel", name},
                 {"incumbent", kept.name},
                 {"timing", to_json(options.timing)},
                 {"to_the_cap", run.candidate.thorough},
                 {"seconds", options.limits.run_s}});
  }
  slot.deadline = in_seconds(3 * seconds + kGrace);
}

void MeasureSession::State::read_lines(WorkerSlot& slot) {
  while (slot.process) {
    std::optional<LineBuffer::Line> line = slot.process->next_line();
    if (!line) return;
    const Result<Json> answer = line->too_long ? Result<Json>(Failure{"line-too-long", ""})
                                               : parse_json(line->text, options.limits.answer_bytes);
    int64_t id = -1;
    if (answer && answer->is_object())
      if (const auto it = answer->find("id"); it != answer->end() && it->is_number_integer()) id = it->get<int64_t>();
    if (id == -2) continue;
    // A login's greeting, a library's chatter: skipped, as long as it ends.
    if (slot.awaited.empty() || slot.awaited.front().id != id) {
      if (++slot.bad_lines < kMostBadLines && !line->too_long) continue;
      if (slot.trial)
        slot.trial->fail(MeasureFailure::kBadAnswer,
                         "the worker writes what is no answer: " + line->text.substr(0, 80));
      worker_ended(slot, /*by_deadline=*/true);
      return;
    }
    const RequestKind kind = slot.awaited.front().kind;
    slot.awaited.pop_front();
    take_answer(slot, kind, answer.value());
  }
}

}  // namespace tensmith
