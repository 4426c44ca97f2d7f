#include "apps/driver/trials.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

namespace tensmith {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Whether weights that cold came from the same place: times of one are not those of the other.
bool equally_cold(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return a == b;
  // The sum of a model's weights depends a little on how they are packed.
  return std::max(a, b) <= 2 * std::min(a, b);
}

/// What says nothing about the candidate.
bool is_accident(MeasureFailure failure) {
  return failure == MeasureFailure::kWorkerLost || failure == MeasureFailure::kBadAnswer ||
         failure == MeasureFailure::kCancelled || failure == MeasureFailure::kTaskFailed;
}

}  // namespace

Result<void> SessionMeasurer::add_task(const TuningTask& task) {
  MeasureTask measured{task.workload, task.request, task.fast_math, task.contract_fma, task.cold_bytes, 0};
  const Result<int> number = session_.add_task(measured);
  tasks_.push_back(number ? *number : -1);
  if (!number) return number.failure();
  return {};
}

void SessionMeasurer::submit(int task, int64_t trial, const Schedule& schedule, bool thorough, bool as_incumbent) {
  MeasureCandidate candidate;
  candidate.steps = schedule.steps();
  candidate.thorough = thorough;
  candidate.make_incumbent = as_incumbent;
  trials_[session_.submit(tasks_[static_cast<size_t>(task)], std::move(candidate))] = trial;
}

std::optional<TrialMeasurer::Finished> SessionMeasurer::wait(double seconds) {
  std::optional<MeasureResult> result = session_.wait(seconds);
  if (!result) return {};
  const auto at = trials_.find(result->id);
  TS_CHECK(at != trials_.end()) << "a result for candidate " << result->id << " that nobody submitted";
  Finished finished{at->second, {}};
  trials_.erase(at);
  TrialOutcome& outcome = finished.outcome;
  if (result->valid()) {
    outcome.cost_us = result->cost_us;
    outcome.ratio_high = result->timing.ratio_high;
    outcome.peak_gflops = result->timing.peak_gflops;
    outcome.peak_cache_gbs = result->timing.peak_cache_gbs;
    outcome.peak_memory_gbs = result->timing.peak_memory_gbs;
    // On the scale of the run, where clocks do not change between candidates.
    const double scale = result->timing.median_us > 0 ? result->cost_us / result->timing.median_us : 1;
    for (const double window : result->timing.windows_us) outcome.times_us.push_back(window * scale);
    // Of code that was measured before only the cost is told again.
    if (outcome.times_us.empty()) outcome.times_us.push_back(result->cost_us);
  } else {
    outcome.cost_us = kNever;
    outcome.error = to_string(result->failure);
    outcome.error_text = result->message;
    outcome.is_kept = !is_accident(result->failure);
  }
  return finished;
}

std::string SessionMeasurer::note(int task) const {
  const int number = tasks_[static_cast<size_t>(task)];
  return number < 0 ? std::string() : session_.task_note(number);
}

RecordOrigin SessionMeasurer::origin(const Target& target) const {
  RecordOrigin origin = origin_here(target);
  const Json info = session_.runner_info();
  if (const auto cpu = info.find("cpu"); cpu != info.end() && cpu->is_string()) origin.cpu = cpu->get<std::string>();
  return origin;
}

RecordKey record_key(const TuningTask& task) {
  return record_key(task.workload, task.request, {task.fast_math, task.contract_fma});
}

RecordOrigin RecordStore::origin_of(const TuningTask& task) const {
  RecordOrigin origin = origin_here(task.request.target);
  if (!cpu_.empty()) origin.cpu = cpu_;
  return origin;
}

Result<RecordStore> RecordStore::open(const std::string& path, const std::vector<TuningTask>& tasks, uint64_t seed,
                                      const std::string& cpu) {
  RecordLines lines;
  if (std::filesystem::exists(path)) {
    Result<RecordLines> read = read_records(path);
    if (!read) return read.failure();
    lines = std::move(read).value();
  }
  Result<RecordWriter> writer = RecordWriter::open(path);
  if (!writer) return writer.failure();
  RecordStore store(std::move(writer).value());
  store.tasks_ = &tasks;
  store.seed_ = seed;
  store.cpu_ = cpu;
  store.bad_ = std::move(lines.bad);
  std::map<RecordKey, int> numbers;
  for (size_t t = 0; t < tasks.size(); ++t) numbers[record_key(tasks[t])] = static_cast<int>(t);
  for (const TuningRecord& record : lines.records) {
    const auto number = numbers.find(record.key);
    if (number == numbers.end()) {
      if (!record.is_choice()) ++store.foreign_;
      continue;
    }
    const TuningTask& task = tasks[static_cast<size_t>(number->second)];
    const RecordOrigin here = store.origin_of(task);
    if (!origin_difference(record.origin, here).empty() || !equally_cold(record.cold_bytes, task.cold_bytes)) {
      ++(differs_by_build_alone(record.origin, here) ? store.other_builds_ : store.foreign_);
      continue;
    }
    // Without the default's time beside it a time is on no scale that is known here.
    if (record.ok() && !(record.default_us > 0)) continue;
    TrialOutcome outcome;
    outcome.times_us = record.times_us;
    outcome.cost_us = record.ok() ? record.time_us() : kNever;
    outcome.default_us = record.default_us;
    outcome.error = record.error;
    outcome.error_text = record.error_text;
    // The first trial counts, so that the search goes on as it began; a failure counts whenever it is found.
    const auto [it, fresh] = store.known_.try_emplace({number->second, tried_text(record)}, outcome);
    if (!fresh && !record.ok()) it->second = outcome;
  }
  return store;
}

std::optional<TrialOutcome> RecordStore::find(int task, const Candidate& candidate) {
  const auto it = known_.find({task, tried_text(candidate.schedule.steps())});
  if (it == known_.end()) return {};
  return it->second;
}

Result<void> RecordStore::append(int task, int64_t trial, const Candidate& candidate, const TrialOutcome& outcome,
                                 RecordStanding standing) {
  const TuningTask& of = (*tasks_)[static_cast<size_t>(task)];
  TuningRecord record;
  record.key = record_key(of);
  record.origin = origin_of(of);
  record.steps = candidate.schedule.steps();
  record.decisions = candidate.decisions;
  record.times_us = outcome.times_us;
  record.default_us = outcome.default_us;
  record.cold_bytes = of.cold_bytes;
  record.peak = {outcome.peak_gflops, outcome.peak_cache_gbs, outcome.peak_memory_gbs};
  record.error = outcome.error;
  record.error_text = outcome.error_text;
  record.seed = seed_;
  record.trial = trial;
  record.label = of.label;
  record.date = record_date();
  record.standing = standing;
  return writer_.append(record);
}

Result<void> RecordStore::save(int task, int64_t trial, const Candidate& candidate, const TrialOutcome& outcome) {
  return append(task, trial, candidate, outcome, RecordStanding::kTrial);
}

Result<void> RecordStore::save_compared(int task, const Candidate& candidate, const TrialOutcome& outcome) {
  return append(task, -1, candidate, outcome, RecordStanding::kCompared);
}

Result<void> RecordStore::save_winner(int task, const Candidate& candidate, const TrialOutcome& outcome) {
  return append(task, -1, candidate, outcome, RecordStanding::kWinner);
}

}  // namespace tensmith
