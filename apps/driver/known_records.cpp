#include "apps/driver/known_records.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "apps/driver/trials.h"
#include "autotune/records/record_file.h"
#include "autotune/search/model_scorer.h"
#include "schedule/trace.h"
#include "tensor/parse.h"

namespace tensmith {

namespace {

std::optional<std::vector<Layout>> layouts_of(const std::vector<std::string>& texts,
                                              const std::vector<Tensor>& tensors) {
  std::vector<Layout> layouts;
  for (size_t k = 0; k < texts.size() && k < tensors.size(); ++k) {
    if (texts[k].empty()) {
      layouts.emplace_back();
      continue;
    }
    const Result<Layout> layout = Layout::parse(texts[k], tensors[k].rank());
    if (!layout) return std::nullopt;
    layouts.push_back(*layout);
  }
  return layouts;
}

/// A task of the records, read once.
struct KnownTask {
  Workload workload;
  ScheduleRequest request;
  double default_us = 0;  ///< of its first record: runs have scales of their own, its times are put on that one
  std::vector<KnownGood> good;
};

std::optional<KnownTask> known_task(const TuningRecord& record, const Target& target) {
  const Result<Workload> workload = parse_workload(record.key.workload);
  if (!workload) return std::nullopt;
  std::optional<std::vector<Layout>> inputs = layouts_of(record.key.input_layouts, workload->inputs),
                                     outputs = layouts_of(record.key.output_layouts, workload->outputs);
  if (!inputs || !outputs) return std::nullopt;
  return KnownTask{
      *workload, {target, record.key.threads, std::move(*inputs), std::move(*outputs)}, record.default_us, {}};
}

}  // namespace

Result<KnownRecords> known_records(const std::string& output, const std::vector<std::string>& others,
                                   const std::vector<TuningTask>& tasks,
                                   const std::function<RecordOrigin(const Target&)>& here) {
  KnownRecords known;
  std::set<RecordKey> own;
  for (const TuningTask& task : tasks) own.insert(record_key(task));
  std::vector<std::string> files;
  if (std::filesystem::exists(output)) files.push_back(output);
  files.insert(files.end(), others.begin(), others.end());
  std::map<RecordKey, std::optional<KnownTask>> known_tasks;
  for (const std::string& file : files) {
    const Result<RecordLines> lines = read_records(file);
    if (!lines) return lines.failure();
    for (const TuningRecord& record : lines->records) {
      const bool is_own = own.count(record.key) > 0;
      if (!record.ok() || !(record.default_us > 0) || (is_own && file == output)) continue;
      const Result<Target> target = Target::parse(record.origin.target);
      if (!target) continue;
      const RecordOrigin origin = here(*target);
      if (!origin_difference(record.origin, origin).empty() && !differs_by_build_alone(record.origin, origin)) continue;
      const auto [at, is_new] = known_tasks.try_emplace(record.key);
      if (is_new) at->second = known_task(record, *target);
      if (!at->second) continue;
      KnownTask& task = *at->second;
      if (!record.decisions.empty())
        task.good.push_back({task.workload, task.request, record.decisions, record.gain()});
      if (is_own || record.standing != RecordStanding::kTrial) continue;
      const Result<Schedule> schedule = replay(task.workload, {record.key.workload, record.steps});
      if (!schedule) continue;
      if (Result<CostSample> sample =
              cost_sample(*schedule, task.request, record.time_us() * task.default_us / record.default_us))
        known.samples.push_back(std::move(sample).value());
    }
  }
  // Of a task the best two tell as much as all of them.
  constexpr size_t kOfATask = 2;
  for (auto& [key, task] : known_tasks) {
    if (!task) continue;
    std::stable_sort(task->good.begin(), task->good.end(),
                     [](const KnownGood& a, const KnownGood& b) { return a.gain > b.gain; });
    task->good.resize(std::min(task->good.size(), kOfATask));
    known.good.insert(known.good.end(), task->good.begin(), task->good.end());
  }
  return known;
}

}  // namespace tensmith
