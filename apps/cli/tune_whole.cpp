#include "apps/cli/tune_whole.h"

#include <algorithm>
#include <map>

#include "apps/driver/tuned.h"
#include "autotune/measure/timing.h"
#include "runtime/base/format.h"
#include "runtime/base/quantile.h"

namespace tensmith::cli {

namespace {

// Schedules of a task that are tried in the model: each asks for a program of its own, with weights of its own.
constexpr size_t kRivals = 3;
// For runs in turns, once there are enough of them to say something.
constexpr double kJudgeSeconds = 5, kCompareSeconds = 4;

double median_of(std::vector<double> values) { return median_interval(std::move(values)).median; }

}  // namespace

double whole_seconds(const LoadedModel& usual) {
  return kJudgeSeconds + kCompareSeconds + 1e-3 * usual.load_ms * static_cast<double>(kRivals + 1);
}

std::string judge_in_whole(const Options& options, const LoadedModel& usual, const RecordIndex& choices,
                           const std::vector<TuningTask>& tasks, const RecordOrigin& origin, double most_seconds,
                           RecordStore& store, TuningReport& report, const WholeListener& listener) {
  const RecordLines lines = take(read_records(options.output));
  std::map<RecordKey, std::vector<const TuningRecord*>> by_key;
  for (const TuningRecord& record : lines.records)
    if (origin_difference(record.origin, origin).empty()) by_key[record.key].push_back(&record);
  const size_t programs = programs_at_once(usual);
  struct Judged {
    size_t task, kernel;
    std::vector<const TuningRecord*> rivals;
    const TuningRecord* usual = nullptr;
  };
  std::map<RecordKey, size_t> kernels;
  for (size_t k = 0; k < usual.program->kernels.size(); ++k) {
    const CompiledKernel& kernel = usual.program->kernels[k];
    if (tasks.empty()) break;
    kernels.try_emplace(
        record_key(kernel.schedule.workload(), kernel.request, {tasks[0].fast_math, tasks[0].contract_fma}), k);
  }
  std::vector<Judged> judged;
  std::vector<std::shared_ptr<RecordIndex>> indices;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const RecordKey key = record_key(tasks[t]);
    const auto kernel = kernels.find(key);
    if (kernel == kernels.end()) continue;
    const std::vector<const TuningRecord*>& records = by_key[key];
    Judged entry{t, kernel->second, rivals_of_default(records, std::min(kRivals, programs)), nullptr};
    const Schedule& by_default = usual.program->kernels[entry.kernel].schedule;
    for (const TuningRecord* record : records)
      if (record->ok() && record->steps == by_default.steps()) entry.usual = record;
    // Without a record of the default there is nothing to fall back to.
    if (entry.rivals.empty() || !entry.usual) continue;
    for (size_t k = 0; k < entry.rivals.size(); ++k) {
      if (indices.size() <= k) indices.push_back(std::make_shared<RecordIndex>(choices));
      TuningRecord sure = *entry.rivals[k];
      sure.standing = RecordStanding::kWinner;
      indices[k]->add(std::move(sure), options.output);
    }
    judged.push_back(std::move(entry));
  }
  if (judged.empty()) return {};

  const std::string given_up = "in the model: given up; winners stand as they were compared alone";
  std::vector<LoadedModel> models;
  for (const auto& index : indices) {
    if (!listener(format_text("in the model: compiling program %zu of %zu", models.size() + 1, indices.size())))
      return given_up;
    models.push_back(load_tuned(options, index));
  }
  std::vector<InModelSide> sides;
  sides.push_back(side_of(usual, options));
  for (const LoadedModel& model : models) sides.push_back(side_of(model, options));
  InModelLimits limits;
  limits.seconds = kJudgeSeconds;
  limits.most_seconds = most_seconds;
  bool goes_on = true;
  const WholeListener heard = [&](const std::string& what) { return goes_on = listener(what); };
  limits.go_on = told_of(format_text("in the model, %zu programs in turns", sides.size()), heard);
  const std::vector<InModelTimes> times = take(time_in_model(sides, limits));
  if (!goes_on) return given_up;
  constexpr size_t kFewestRounds = 5;
  if (times[0].whole_us.size() < kFewestRounds)
    return format_text("in the model: too few rounds to judge (%zu); winners stand as they were compared alone",
                       times[0].whole_us.size());

  size_t held = 0, others = 0, dropped = 0;
  for (const Judged& entry : judged) {
    // A schedule that the compiler refused ran as the default: its verdict says nothing.
    size_t served = 0;
    while (served < entry.rivals.size() && models[served].program->kernels[entry.kernel].is_tuned) ++served;
    if (served < entry.rivals.size()) continue;
    const InModelVerdict verdict = judge_in_model(times, entry.kernel, entry.rivals.size());
    TaskProgress& progress = report.tasks[entry.task];
    for (const TuningRecord& record :
         verdict_records(verdict, entry.rivals, *entry.usual, times, entry.kernel, tasks[entry.task].weight))
      take(store.append(record));
    progress.in_model_ratio = verdict.taken > 0 ? verdict.ratios[verdict.taken - 1] : 1;
    progress.in_model_us = median_of(times[verdict.taken].kernel_us[entry.kernel]) / tasks[entry.task].weight;
    ++(verdict.taken == 0 ? dropped : verdict.taken == 1 ? held : others);
  }
  return format_text(
      "in the model, %zu rounds of %zu programs in turns: %zu winners hold, %zu give way to another "
      "schedule of their task, %zu to the default",
      times[0].whole_us.size(), times.size(), held, others, dropped);
}

std::string compare_whole(const Options& options, const LoadedModel& usual, double most_seconds,
                          const WholeListener& listener) {
  if (!listener("whole model: compiling it with the records")) return {};
  const LoadedModel tuned =
      load_tuned(options, std::make_shared<RecordIndex>(take(RecordIndex::read({options.output}))));
  const bool any = std::any_of(tuned.program->kernels.begin(), tuned.program->kernels.end(),
                               [](const CompiledKernel& kernel) { return kernel.is_tuned; });
  if (!any) return tuning_summary(*tuned.program);
  std::vector<InModelSide> sides;
  sides.push_back(side_of(usual, options));
  sides.push_back(side_of(tuned, options));
  InModelLimits limits;
  limits.seconds = kCompareSeconds;
  limits.min_rounds = 30;
  limits.time_calls = false;
  limits.most_seconds = most_seconds;
  bool goes_on = true;
  const WholeListener heard = [&](const std::string& what) { return goes_on = listener(what); };
  limits.go_on = told_of("whole model, default and tuned in turns", heard);
  std::vector<InModelTimes> times = take(time_in_model(sides, limits));
  if (!goes_on) return {};
  std::vector<double> ratios;
  for (size_t round = 0; round < times[0].whole_us.size(); ++round)
    ratios.push_back(times[0].whole_us[round] / times[1].whole_us[round]);
  for (InModelTimes& side : times) std::sort(side.whole_us.begin(), side.whole_us.end());
  std::sort(ratios.begin(), ratios.end());
  const auto text = [](const std::vector<double>& sorted) {
    return "min " + time_text(sorted.front()) + ", median " + time_text(quantile(sorted, 0.5));
  };
  return tuning_summary(*tuned.program) +
         format_text(
             "\nwhole model, %zu rounds in turns: default %s; tuned %s; default's time / tuned: %.3f by median "
             "of pairs (quartiles %.3f, %.3f)",
             ratios.size(), text(times[0].whole_us).c_str(), text(times[1].whole_us).c_str(), quantile(ratios, 0.5),
             quantile(ratios, 0.25), quantile(ratios, 0.75));
}

}  // namespace tensmith::cli
