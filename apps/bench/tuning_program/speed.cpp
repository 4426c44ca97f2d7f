#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/bench/tuning_program/bench_task.h"
#include "apps/bench/tuning_program/parts.h"
#include "autotune/search/model_scorer.h"

namespace tensmith::bench {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Units: MiB of resident memory; 0 when the process is gone.
double resident_mib(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// A session's measurements with the time that they took.
class WatchedMeasurer : public TrialMeasurer {
 public:
  WatchedMeasurer() : session(session_options()) {}
  Result<void> add_task(const TuningTask& task) override {
    const Result<int> number = session.add_task({task.workload, task.request, false, true, task.cold_bytes, 0});
    if (!number) return number.failure();
    return {};
  }
  void submit(int task, int64_t trial, const Schedule& schedule, bool thorough, bool as_incumbent) override {
    MeasureCandidate candidate;
    candidate.steps = schedule.steps();
    candidate.thorough = thorough;
    candidate.make_incumbent = as_incumbent;
    trials_[session.submit(task, std::move(candidate))] = trial;
  }
  std::optional<Finished> wait(double seconds) override {
    const auto start = Clock::now();
    const std::optional<MeasureResult> result = session.wait(seconds);
    wait_ms += ms_since(start);
    if (!result) return {};
    Finished finished{trials_.at(result->id), {}};
    trials_.erase(result->id);
    finished.outcome.cost_us = result->valid() ? result->cost_us : std::numeric_limits<double>::infinity();
    finished.outcome.ratio_high = result->timing.ratio_high;
    if (!result->valid()) finished.outcome.error = to_string(result->failure);
    lower_ms += result->build.replay_ms + result->build.lower_ms;
    codegen_ms += result->build.codegen_ms;
    guard_ms += result->build.guard_ms;
    if (result->same_code_as < 0) {
      run_ms += result->run_wall_ms;
      double windows_us = 0;
      for (const auto* list : {&result->timing.windows_us, &result->timing.incumbent_us})
        for (const double us : *list) windows_us += us * static_cast<double>(result->timing.calls);
      timing_ms += windows_us * 1e-3;
    } else {
      ++same_code;
    }
    return finished;
  }
  void cancel() override { session.cancel(); }

  MeasureSession session;
  double wait_ms = 0, lower_ms = 0, codegen_ms = 0, guard_ms = 0, run_ms = 0, timing_ms = 0;
  int64_t same_code = 0;

 private:
  std::map<int64_t, int64_t> trials_;
};

class Forgetful : public TrialStore {
 public:
  std::optional<TrialOutcome> find(int, const Candidate&) override { return {}; }
  Result<void> save(int, int64_t, const Candidate&, const TrialOutcome&) override { return {}; }
  Result<void> save_winner(int, const Candidate&, const TrialOutcome&) override { return {}; }
};

}  // namespace

Json speed(const PartOptions& options) {
  std::vector<TuningTask> tasks;
  for (const std::string& op : options.ops) tasks.push_back(task_of_op(op, options.threads));
  WatchedMeasurer measurer;
  Forgetful store;
  ModelScorer scorer(make_cost_model("blend", 1).value());
  TunerOptions tuner;
  tuner.trials = options.trials;
  tuner.scorer = &scorer;
  tuner.seed = 1;
  Json memory = Json::array();
  int64_t finished = 0;
  const int64_t every = std::max<int64_t>(1, options.trials / 10);
  const auto look = [&] {
    double workers = 0;
    for (const int pid : measurer.session.worker_pids()) workers += resident_mib(pid);
    memory.push_back({{"trials", finished}, {"tuner_mib", resident_mib(getpid())}, {"workers_mib", workers}});
  };
  const auto start = Clock::now();
  const TuningReport report = tune(tasks, tuner, measurer, store, [&](const TunerProgress&) {
    if (++finished % every == 0) look();
  });
  const double elapsed_ms = ms_since(start);
  look();
  const SessionCounts counts = measurer.session.counts();
  const auto n = static_cast<double>(std::max<int64_t>(1, report.measured));
  Json json;
  json["ops"] = options.ops;
  json["trials"] = report.trials;
  json["why_stopped"] = to_string(report.why_stopped);
  json["trials_a_second"] = 1e3 * static_cast<double>(report.trials) / elapsed_ms;
  json["failures"] = counts.finished - counts.valid;
  json["same_code"] = measurer.same_code;
  json["ms_a_trial"] = {{"all", elapsed_ms / n},
                        {"search_and_model", (elapsed_ms - measurer.wait_ms) / n},
                        {"builder_busy", counts.build_busy_ms / n},
                        {"replay_and_lower", measurer.lower_ms / n},
                        {"codegen", measurer.codegen_ms / n},
                        {"guard", measurer.guard_ms / n},
                        {"runner_busy", counts.run_busy_ms / n},
                        {"timing_windows", measurer.timing_ms / n}};
  json["workers_started"] = counts.builders_started + counts.runners_started;
  json["memory"] = memory;
  return json;
}

}  // namespace tensmith::bench
