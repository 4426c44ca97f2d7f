#include "autotune/measure/worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "autotune/measure/build.h"
#include "autotune/measure/line_protocol.h"
#include "autotune/measure/worker_faults.h"
#include "autotune/measure/worker_task.h"
#include "runtime/base/error.h"
#include "runtime/base/files.h"

namespace tensmith {

namespace {

/// What a request asks wrongly.
struct BadRequest {
  std::string message;
};

Json failure_answer(const std::string& kind, const std::string& message) {
  return Json{{"ok", false}, {"kind", kind}, {"message", message}};
}

const Json& field(const Json& request, const char* name) {
  const auto it = request.find(name);
  if (it == request.end()) throw BadRequest{std::string("expected the field '") + name + "', got none"};
  return *it;
}

std::string text_of(const Json& request, const char* name, const std::optional<std::string>& fallback = {}) {
  const auto it = request.find(name);
  if ((it == request.end() || it->is_null()) && fallback) return *fallback;
  const Json& value = field(request, name);
  if (!value.is_string()) throw BadRequest{std::string("field '") + name + "': expected a text, got another type"};
  return value.get<std::string>();
}

template <typename T>
T number_of(const Json& request, const char* name, T fallback) {
  const auto it = request.find(name);
  if (it == request.end() || it->is_null()) return fallback;
  if (!it->is_number() && !it->is_boolean())
    throw BadRequest{std::string("field '") + name + "': expected a number, got another type"};
  return it->get<T>();
}

template <typename T>
T value_or_bad(Result<T> result) {
  if (!result) throw BadRequest{result.failure().message + " [" + result.failure().id + "]"};
  return std::move(result).value();
}

/// The code of a `load`, or where a `build` puts it.
std::vector<uint8_t> code_of(const Json& request, int64_t limit) {
  if (request.contains("code")) return value_or_bad(from_base64(text_of(request, "code")));
  const std::string text = value_or_bad(read_file(text_of(request, "from"), limit));
  return {text.begin(), text.end()};
}

/// Writes into a file that exists (shared memory that the session made), from its start.
void write_code(const std::string& path, const std::vector<uint8_t>& bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0) throw BadRequest{"file '" + path + "': expected one that can be written, got none"};
  const bool written = write_all(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  close(file);
  if (!written) throw MeasureFault(MeasureFailure::kOutOfMemory, "shared memory: no room for the code");
}

class Worker {
 public:
  /// The answer without its id.
  Json answer(const Json& request) {
    const std::string op = text_of(request, "op");
    if (op == "hello") return hello(request);
    if (op == "task") return task(request);
    if (op == "forget") {
      tasks_.erase(text_of(request, "task"));
      runners_.erase(text_of(request, "task"));
      return Json{{"ok", true}};
    }
    if (op == "build") return build(request);
    if (op == "load") return load(request);
    if (op == "reference") {
      RunnerTask& runner = runner_of(request);
      arm(request, runner);
      return Json{{"ok", true}, {"note", runner.make_reference(text_of(request, "kernel"))}};
    }
    if (op == "check") {
      RunnerTask& runner = runner_of(request);
      arm(request, runner);
      std::vector<int> sets;
      for (const Json& set : field(request, "sets"))
        sets.push_back(set.is_number_integer() ? set.get<int>() : throw BadRequest{"field 'sets': expected numbers"});
      runner.check(text_of(request, "kernel"), sets);
      return Json{{"ok", true}};
    }
    if (op == "measure") {
      RunnerTask& runner = runner_of(request);
      arm(request, runner);
      const auto timing = request.find("timing");
      return Json{{"ok", true},
                  {"timing",
                   to_json(runner.measure(text_of(request, "kernel"), text_of(request, "incumbent", ""),
                                          timing == request.end() ? TimingOptions{} : timing_options_from_json(*timing),
                                          number_of(request, "to_the_cap", false)))}};
    }
    if (op == "drop") {
      runner_of(request).drop(text_of(request, "kernel"));
      return Json{{"ok", true}};
    }
    if (op == "bye") return Json{{"ok", true}};
    throw BadRequest{"expected an op of hello, task, forget, build, load, reference, check, measure, drop, bye; got '" +
                     op + "'"};
  }

 private:
  static Json hello(const Json& request) {
    if (const auto mib = number_of<int64_t>(request, "memory_mib", 0); mib > 0) limit_memory(mib);
    return Json{{"ok", true},
                {"tool", tool_version()},
                {"protocol", kMeasureProtocol},
                {"target", to_string(Target::host())},
                {"cpu", host_cpu_model()},
                {"pid", static_cast<int64_t>(getpid())}};
  }

  Json task(const Json& request) {
    const std::string name = text_of(request, "task");
    MeasureTask task = value_or_bad(measure_task_from_json(field(request, "value")));
    if (const char* missing = task.request.target.missing_on_host())
      throw MeasureFault(MeasureFailure::kTaskFailed, "task: the target " + to_string(task.request.target) + " needs " +
                                                          missing + ", which this machine lacks");
    runners_.erase(name);
    tasks_.insert_or_assign(name, std::move(task));
    return Json{{"ok", true}};
  }

  const MeasureTask& task_of(const Json& request) const {
    const auto it = tasks_.find(text_of(request, "task"));
    if (it == tasks_.end()) throw BadRequest{"field 'task': expected a task that was given, got another name"};
    return it->second;
  }

  RunnerTask& runner_of(const Json& request) {
    const MeasureTask& task = task_of(request);
    std::unique_ptr<RunnerTask>& runner = runners_[text_of(request, "task")];
    if (!runner) runner = std::make_unique<RunnerTask>(task);
    return *runner;
  }

  static void arm(const Json& request, const RunnerTask& runner) {
    arm_watchdog(number_of(request, "seconds", 10.0), runner.task().request.threads);
  }

  Json build(const Json& request) const {
    const MeasureTask& task = task_of(request);
    std::string text;
    const Json& lines = field(request, "steps");
    if (!lines.is_array()) throw BadRequest{"field 'steps': expected a list of texts, got another type"};
    for (const Json& line : lines) {
      if (!line.is_string()) throw BadRequest{"field 'steps': expected a list of texts, got another type inside"};
      text += line.get<std::string>() + "\n";
    }
    MeasureLimits limits;
    limits.code_bytes = number_of(request, "code_bytes", limits.code_bytes);
    limits.max_unroll = number_of(request, "max_unroll", limits.max_unroll);
    arm_watchdog(number_of(request, "seconds", limits.build_s), 1);
    const Result<std::vector<Step>> steps = parse_steps(text);
    if (!steps) throw MeasureFault(MeasureFailure::kIllegalSchedule, steps.failure().message);
    const auto guard = request.find("guard");
    const bool use_guard = guard != request.end() && guard->is_object();
    const GuardOptions options = use_guard ? guard_options_from_json(*guard) : GuardOptions{};
    BuildOutcome outcome = build_candidate(task, steps.value(), limits, use_guard ? &options : nullptr);
    Json answer{{"ok", outcome.failure == MeasureFailure::kNone}, {"report", to_json(outcome.report)}};
    if (outcome.failure != MeasureFailure::kNone) {
      answer["kind"] = to_string(outcome.failure);
      answer["message"] = outcome.message;
      return answer;
    }
    answer["kernel"] = to_json(outcome.kernel);
    if (const std::string to = text_of(request, "to", ""); !to.empty()) write_code(to, outcome.kernel.object.bytes);
    else answer["code"] = to_base64(outcome.kernel.object.bytes);
    return answer;
  }

  Json load(const Json& request) {
    RunnerTask& runner = runner_of(request);
    BuiltKernel kernel = value_or_bad(built_kernel_from_json(field(request, "value")));
    kernel.object.bytes = code_of(request, int64_t{1} << 30);
    arm(request, runner);
    runner.load(text_of(request, "kernel"), kernel);
    return Json{{"ok", true}};
  }

  std::map<std::string, MeasureTask> tasks_;
  std::map<std::string, std::unique_ptr<RunnerTask>> runners_;
};

Json answer_safely(Worker& worker, const Json& request) {
  try {
    return worker.answer(request);
  } catch (const BadRequest& e) {
    return failure_answer("bad-request", "request: " + e.message);
  } catch (const MeasureFault& e) {
    return failure_answer(to_string(e.failure()), e.what());
  } catch (const Error& e) {
    return failure_answer(e.id() == "out-of-memory" ? "out-of-memory" : "bad-request", e.what());
  } catch (const std::exception& e) {
    return failure_answer("bad-request", e.what());
  }
}

}  // namespace

int serve_worker(const WorkerOptions& options) {
  if (options.die_with_parent) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = fcntl(options.out, F_DUPFD_CLOEXEC, 3);
  if (out < 0) return 1;
  if (options.out == 1) dup2(2, 1);
  install_worker_faults(out);
  Worker worker;
  LineReader reader(options.in, options.max_request_bytes);
  while (const std::optional<LineBuffer::Line> line = reader.next()) {
    if (line->text.empty() && !line->too_long) continue;
    const Result<Json> request =
        line->too_long
            ? Result<Json>(Failure{"line-too-long", "expected at most " + std::to_string(options.max_request_bytes) +
                                                        " bytes in a line, got more"})
            : parse_json(line->text, options.max_request_bytes);
    int64_t id = -1;
    Json answer;
    if (!request || !request->is_object()) {
      answer = failure_answer("bad-request",
                              "request: " + (request ? std::string("expected an object, got another value")
                                                     : request.failure().message + " [" + request.failure().id + "]"));
    } else {
      if (const auto it = request->find("id"); it != request->end() && it->is_number_integer()) id = it->get<int64_t>();
      const auto op = request->find("op");
      const bool is_build = op != request->end() && op->is_string() && op->get<std::string>() == "build";
      begin_request(id, is_build ? MeasureFailure::kBuildCrashed : MeasureFailure::kCrashed);
      answer = answer_safely(worker, *request);
      disarm_watchdog();
      // The watchdog has answered and is about to end the process.
      if (!end_request())
        for (;;) pause();
    }
    Json whole{{"id", id}};
    for (const auto& [key, value] : answer.items()) whole[key] = value;
    if (!write_all(out, json_line(whole))) return 0;
    if (request && request->is_object() && request->value("op", Json()) == "bye") return 0;
  }
  return 0;
}

}  // namespace tensmith
