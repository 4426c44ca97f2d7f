#include <sched.h>

#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "apps/cli/tune_choices.h"
#include "apps/cli/tune_progress.h"
#include "apps/cli/tune_whole.h"
#include "apps/driver/choices.h"
#include "apps/driver/known_records.h"
#include "apps/driver/trials.h"
#include "apps/driver/tuned.h"
#include "apps/driver/tuning_tasks.h"
#include "autotune/measure/work_timer.h"
#include "autotune/search/model_scorer.h"
#include "runtime/base/format.h"

namespace tensmith::cli {

namespace {

std::atomic<bool> interrupted{false};

/// The first Ctrl-C ends the run in order, the second one at once.
void on_interrupt(int) {
  if (interrupted.exchange(true)) std::_Exit(130);
}

double parse_duration(const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(std::min(used, text.size()));
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  TS_USER_CHECK(used > 0 && factor > 0 && value > 0 && value < 1e9, "bad-duration")
      << "option --timeout: expected a time such as 90, 90s, 10m or 1h, got '" << text << "'";
  return value * factor;
}

/// `0,2-5` with numbers below `count`.
std::vector<int> parse_numbers(const char* flag, const std::string& text, int count) {
  std::vector<int> numbers;
  const auto refuse = [&] {
    throw UserError("bad-list", std::string("option ") + flag + ": expected numbers below " + std::to_string(count) +
                                    " such as 0,2-5, got '" + text + "'");
  };
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    int first = 0, last = 0, used = 0;
    if (std::sscanf(item.c_str(), "%d-%d%n", &first, &last, &used) < 2 || used != static_cast<int>(item.size())) {
      if (std::sscanf(item.c_str(), "%d%n", &first, &used) != 1 || used != static_cast<int>(item.size())) refuse();
      last = first;
    }
    if (first < 0 || last < first || last >= count) refuse();
    for (int n = first; n <= last; ++n) numbers.push_back(n);
    at = end + 1;
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Schedules of a task that --dry-run makes to count them, a millisecond each or more; larger spaces are estimated.
constexpr int64_t kCounted = 128;

void list_tasks(const std::vector<TuningTask>& tasks, bool spaces) {
  for (size_t t = 0; t < tasks.size(); ++t) {
    std::cout << "task " << t << ": " << tasks[t].label << ", " << tasks[t].weight << " calls, "
              << tasks[t].flops * 1e-6 << " MFLOP a call\n";
    if (spaces) std::cout << to_string(space_summary(Space(tasks[t].workload, tasks[t].request), kCounted));
  }
}

/// What orders candidates before they are measured: a model by name or file, told of what files of records hold of this
/// machine and other tasks. Those of the tasks at hand it learns as the search comes by them, so that a run that goes
/// on sees them in the same order as one that was never broken.
std::unique_ptr<ModelScorer> make_scorer(const Options& options, uint64_t seed, std::vector<CostSample> samples) {
  static constexpr const char* kNames[] = {"xgb", "analytic", "random"};
  const bool is_name =
      std::any_of(std::begin(kNames), std::end(kNames), [&](const char* name) { return options.cost_model == name; });
  std::unique_ptr<CostModel> model =
      take(is_name ? make_cost_model(options.cost_model == "xgb" ? "blend" : options.cost_model, seed)
                   : load_cost_model(options.cost_model));
  auto scorer = std::make_unique<ModelScorer>(std::move(model));
  scorer->prime(std::move(samples));
  return scorer;
}

SessionOptions session_options(const Options& options) {
  SessionOptions session;
  session.runner = options.runner;
  session.builders = options.workers;
  if (options.cpus.empty()) return session;
  session.cpus = parse_numbers("--cpus", options.cpus, CPU_SETSIZE);
  cpu_set_t usable;
  sched_getaffinity(0, sizeof usable, &usable);
  for (const int cpu : session.cpus)
    TS_USER_CHECK(CPU_ISSET(cpu, &usable), "bad-list")
        << "option --cpus: expected CPUs that this process may use, got " << cpu;
  return session;
}

/// Refuses to write into what is no file of records.
void check_record_file(const std::string& path) {
  if (!std::filesystem::exists(path)) return;
  const RecordLines lines = take(read_records(path));
  TS_USER_CHECK(!lines.records.empty() || lines.bad.empty() || lines.bad.front().id != "record-foreign",
                "record-foreign")
      << "option -o: " << path << ": expected a file of tuning records or a new one, got something else ("
      << to_string(lines.bad.front()) << "); give another name, so that nothing is written into it";
}

/// The ways of the graph, of which the trying takes a part of the tuner's time.
ChosenWays ways_in_time(const Options& options, const LoadedModel& usual, const RecordOrigin& origin,
                        ProgressStyle style, TunerOptions& tuner) {
  constexpr double kShare = 0.2;
  const std::vector<TuningTask> no_tasks;
  TuneProgress progress(style, no_tasks, tuner);
  const WholeListener listener = [&](const std::string& what) {
    progress.say(what);
    return !interrupted.load();
  };
  const auto begin = std::chrono::steady_clock::now();
  ChosenWays ways = choose_ways(options, usual, origin, kShare * tuner.seconds, listener);
  progress.finish();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  if (tuner.seconds > 0) tuner.seconds = std::max(1.0, tuner.seconds - spent.count());
  return ways;
}

}  // namespace

int tune(const Options& given) {
  // Records to start from are none to compile with: gains are measured against the default.
  Options options = given;
  const std::vector<std::string> start_from = std::exchange(options.records, {});
  TS_USER_CHECK(options.op.empty() != options.model.empty(), "bad-usage")
      << "command line: expected a model or --op, got " << (options.op.empty() ? "neither" : "both");
  TS_USER_CHECK(options.model.empty() || !is_library(options.model), "not-a-model")
      << "tune: expected an ONNX model, got the exported library " << options.model
      << ", which holds no schedules to search; give the model that it was made from";
  TunerOptions tuner;
  tuner.trials = options.trials;
  if (!options.timeout.empty()) tuner.seconds = parse_duration(options.timeout);
  constexpr double kUsualSeconds = 300;
  if (options.trials == 0 && options.timeout.empty()) tuner.seconds = kUsualSeconds;
  tuner.seed = static_cast<uint64_t>(options.seed);
  tuner.strategy = take(parse_search_strategy(options.search));
  tuner.interrupted = &interrupted;
  check_writable("--save-cost-model", options.save_cost_model);
  const ProgressStyle style = take(parse_progress_style(options.progress));

  const LoadedModel usual = load_tuned(options);
  const CompileOptions compile = compile_options(options);
  const bool measures = options.tasks != "list" && !options.dry_run;
  TS_USER_CHECK(!measures || !options.output.empty(), "bad-usage")
      << "command line: expected a file for the records, got none; add -o R.jsonl";
  if (measures) check_record_file(options.output);
  std::optional<SessionMeasurer> measurer;
  RecordOrigin origin = origin_here(compile.target);
  if (measures) {
    measurer.emplace(session_options(options));
    origin = measurer->origin(compile.target);
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    // A limit on the size of files is to end the run with its reason, as a full disk does.
    std::signal(SIGXFSZ, SIG_IGN);
  }
  const bool runs_here = origin.cpu == host_cpu_model();
  const ChosenWays ways = measures && runs_here && options.tasks.empty() && options.choices
                              ? ways_in_time(options, usual, origin, style, tuner)
                              : chosen_before(options, usual);
  // Tasks are those of the graph as it is going to be compiled.
  std::optional<LoadedModel> otherwise;
  if (ways.any) otherwise = load_tuned(options, ways.records);
  const LoadedModel& model = otherwise ? *otherwise : usual;
  std::vector<TuningTask> tasks = tuning_tasks(*model.program, compile.fast_math, compile.contract_fma);
  if (options.tasks == "list") {
    list_tasks(tasks, false);
    return 0;
  }
  if (!options.tasks.empty()) {
    std::vector<TuningTask> chosen;
    for (int t : parse_numbers("--tasks", options.tasks, static_cast<int>(tasks.size())))
      chosen.push_back(tasks[static_cast<size_t>(t)]);
    tasks = std::move(chosen);
  }
  if (options.dry_run) {
    std::cout << choice_list(model.program->choices);
    list_tasks(tasks, true);
    return 0;
  }

  RecordStore store = take(RecordStore::open(options.output, tasks, tuner.seed, origin.cpu));
  for (const BadLine& bad : store.bad()) std::cerr << "note: skipped " << to_string(bad) << "\n";
  if (store.known() > 0)
    std::cerr << "note: " << options.output << " has " << store.known()
              << " trials of these tasks, which are not measured again, but for the defaults\n";
  if (store.other_builds() > 0)
    std::cerr << "note: " << store.other_builds()
              << " records of these tasks are of another build of the tool, whose code may differ; they are measured "
                 "again as the search comes by them\n";
  if (store.foreign() > 0)
    std::cerr << "note: " << store.foreign() << " records are of other tasks, machines or versions\n";
  KnownRecords known = take(
      known_records(options.output, start_from, tasks, [&](const Target& target) { return measurer->origin(target); }));
  if (!known.samples.empty())
    std::cerr << "note: " << known.samples.size() << " records of other tasks teach the cost model, "
              << known.good.size() << " give first candidates\n";
  const std::unique_ptr<ModelScorer> scorer = make_scorer(options, tuner.seed, std::move(known.samples));
  tuner.known_good = std::move(known.good);
  tuner.scorer = scorer.get();
  // The limit of time holds for what follows too, as far as it leaves most of it for trials.
  constexpr double kWholeShare = 0.15;
  const double most_seconds = tuner.seconds > 0 ? std::max(2.0, kWholeShare * tuner.seconds) : 0;
  if (tuner.seconds > 0 && runs_here) tuner.seconds -= std::min(kWholeShare * tuner.seconds, whole_seconds(model));
  TuneProgress progress(style, tasks, tuner);
  tuner.on_comparison = [&](int task, size_t nth, size_t count) {
    progress.say(format_text("winner %zu of %zu against its default: task %d %s", nth, count, task,
                             tasks[static_cast<size_t>(task)].label.c_str()));
  };
  const WholeListener on_whole = [&](const std::string& what) {
    progress.say(what);
    return !interrupted.load();
  };
  TuningReport report = tune(tasks, tuner, *measurer, store, std::ref(progress));
  const bool any = std::any_of(report.tasks.begin(), report.tasks.end(),
                               [](const TaskProgress& task) { return task.trials > task.failures; });
  const bool ended = report.why_stopped != StopReason::kFailed && report.why_stopped != StopReason::kInterrupted;
  std::string in_model;
  if (ended && any && runs_here)
    in_model = judge_in_whole(options, model, *ways.records, tasks, origin, most_seconds, store, report, on_whole);
  progress.finish();
  if (!ways.text.empty()) std::cout << ways.text << "\n";
  std::cout << tuning_table(tasks, report);
  if (!in_model.empty()) std::cout << in_model << "\n";
  for (size_t t = 0; t < tasks.size(); ++t)
    if (!report.tasks[t].note.empty())
      std::cout << "note: task " << t << " (" << tasks[t].label << "): " << report.tasks[t].note << "\n";
  for (const auto& [kind, count] : progress.failures()) std::cout << "failed: " << kind << " " << count << "\n";
  std::printf("cost model %s: ordered %.1f %% of pairs rightly before it had seen them, %zu samples\n",
              scorer->model().name(), 100 * scorer->pairwise_accuracy(), scorer->samples());
  if (const std::string note = scorer->note(); !note.empty()) std::printf("note: %s\n", note.c_str());
  std::fflush(stdout);
  scorer->finish();
  if (!options.save_cost_model.empty()) take(save_cost_model(scorer->model(), options.save_cost_model));
  if (report.why_stopped == StopReason::kFailed) throw UserError(report.failure_id, report.failure);
  const std::string again = "the same command goes on from " + options.output;
  std::string whole;
  if (report.why_stopped != StopReason::kInterrupted && any && runs_here && !interrupted) {
    whole = compare_whole(options, usual, most_seconds, on_whole);
    progress.finish();
  }
  if (interrupted) {
    if (!whole.empty()) std::cout << whole << "\n";
    const bool is_found = report.why_stopped != StopReason::kInterrupted;
    std::cout << "interrupted; " << again
              << (is_found ? ", and compares the whole model" : ", and confirms what stands as unconfirmed above")
              << "\n";
    return 130;
  }
  if (!any)
    throw ScheduleError("no-valid-candidate", "tune: expected a valid candidate, got none in " +
                                                  std::to_string(report.trials) + " trials; tensmith records ls " +
                                                  options.output + " shows why each failed");
  if (runs_here) std::cout << whole << "\n";
  else std::cout << "the whole model is not compared here: its kernels were measured on " << origin.cpu << "\n";
  std::cout << again << "; use it by --records " << options.output << "\n";
  return 0;
}

}  // namespace tensmith::cli
