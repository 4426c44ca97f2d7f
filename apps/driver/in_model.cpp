#include "apps/driver/in_model.h"

#include <algorithm>
#include <chrono>

#include "autotune/measure/timing.h"
#include "autotune/measure/work_timer.h"
#include "runtime/base/error.h"
#include "runtime/base/quantile.h"

namespace tensmith {

namespace {

/// Runs of a turn that are timed.
constexpr int kTimedRuns = 2;

/// Gathers times of calls by kernel while a program runs.
class CallClock {
 public:
  CallClock(const CompiledProgram& program, int threads) : program_(program), threads_(threads), timer_(threads) {}

  static void hook(void* clock, int32_t call, int32_t is_end) {
    auto& self = *static_cast<CallClock*>(clock);
    if (!is_end) {
      self.timer_ = WorkTimer(self.threads_);
      return;
    }
    const double us = self.timer_.us();
    if (call < 0 || static_cast<size_t>(call) >= self.program_.calls.size()) return;
    self.us_[static_cast<size_t>(self.program_.calls[static_cast<size_t>(call)].kernel)] += us;
  }
  void clear() { us_.assign(program_.kernels.size(), 0); }
  const std::vector<double>& us() const { return us_; }

 private:
  const CompiledProgram& program_;
  const int threads_;
  WorkTimer timer_;
  std::vector<double> us_;
};

}  // namespace

Result<std::vector<InModelTimes>> time_in_model(std::span<InModelSide> sides, const InModelLimits& limits) {
  using Clock = std::chrono::steady_clock;
  std::vector<InModelTimes> times(sides.size());
  std::vector<std::unique_ptr<CallClock>> clocks;
  for (size_t s = 0; s < sides.size(); ++s) {
    clocks.push_back(std::make_unique<CallClock>(*sides[s].program, sides[s].instance.threads()));
    if (limits.time_calls) times[s].kernel_us.resize(sides[s].program->kernels.size());
  }
  const auto begin = Clock::now();
  const auto seconds_so_far = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (int round = 0; round < limits.max_rounds; ++round) {
    for (size_t turn = 0; turn < sides.size(); ++turn) {
      const size_t s = (turn + static_cast<size_t>(round)) % sides.size();
      InModelSide& side = sides[s];
      if (Result<void> ran = side.instance.run_into(side.inputs, side.outputs); !ran) return ran.failure();
      clocks[s]->clear();
      struct Unhook {
        Instance& instance;
        ~Unhook() { instance.set_on_kernel(nullptr, nullptr); }
      } const unhook{side.instance};
      if (limits.time_calls) side.instance.set_on_kernel(CallClock::hook, clocks[s].get());
      const WorkTimer timer(side.instance.threads());
      for (int k = 0; k < kTimedRuns; ++k)
        if (Result<void> ran = side.instance.run_into(side.inputs, side.outputs); !ran) return ran.failure();
      times[s].whole_us.push_back(timer.us() / kTimedRuns);
      for (size_t k = 0; k < times[s].kernel_us.size(); ++k)
        times[s].kernel_us[k].push_back(clocks[s]->us()[k] / kTimedRuns);
      const auto rounds = static_cast<size_t>(round) + (turn + 1 == sides.size() ? 1 : 0);
      if (limits.go_on && !limits.go_on(rounds, seconds_so_far())) {
        for (InModelTimes& side : times) {
          side.whole_us.resize(rounds);
          for (std::vector<double>& us : side.kernel_us) us.resize(rounds);
        }
        return times;
      }
    }
    const double seconds = seconds_so_far();
    if (round + 1 >= limits.min_rounds && seconds > limits.seconds) break;
    if (limits.most_seconds > 0 && seconds > limits.most_seconds) break;
  }
  return times;
}

std::vector<const TuningRecord*> rivals_of_default(const std::vector<const TuningRecord*>& records, size_t count) {
  std::map<std::string, const TuningRecord*> compared;
  for (const TuningRecord* record : records) {
    const std::string steps = tried_text(*record);
    if (!record->ok()) compared.erase(steps);
    else if (record->standing != RecordStanding::kTrial) compared[steps] = record;
  }
  std::vector<const TuningRecord*> rivals;
  for (const auto& [steps, record] : compared)
    if (record->gain() > 1) rivals.push_back(record);
  // Winners of earlier runs in front: what is not judged here keeps its standing.
  std::sort(rivals.begin(), rivals.end(), [](const TuningRecord* a, const TuningRecord* b) {
    return std::pair(a->standing == RecordStanding::kWinner, a->gain()) >
           std::pair(b->standing == RecordStanding::kWinner, b->gain());
  });
  // First of all what would be taken, which may be a trial that nobody compared.
  const TuningRecord* taken = record_to_take(records);
  if (taken && taken->gain() > 1) {
    const std::string steps = tried_text(*taken);
    std::erase_if(rivals, [&](const TuningRecord* rival) { return tried_text(*rival) == steps; });
    rivals.insert(rivals.begin(), taken);
  }
  if (rivals.size() > count) rivals.resize(count);
  return rivals;
}

InModelVerdict judge_in_model(const std::vector<InModelTimes>& times, size_t kernel, size_t rivals) {
  InModelVerdict verdict;
  double best = 1;
  const std::vector<double>& usual = times[0].kernel_us[kernel];
  for (size_t rival = 1; rival <= rivals; ++rival) {
    std::vector<double> ratios;
    for (size_t round = 0; round < usual.size(); ++round)
      if (const double us = times[rival].kernel_us[kernel][round]; us > 0) ratios.push_back(usual[round] / us);
    const MedianInterval ratio = median_interval(std::move(ratios));
    verdict.ratios.push_back(ratio.median);
    if (ratio.low <= 1 || ratio.median <= best) continue;
    best = verdict.ratios.back();
    verdict.taken = rival;
  }
  return verdict;
}

std::vector<double> few_times(const std::vector<double>& us, double calls) {
  constexpr size_t kMost = 20;
  std::vector<double> sorted = us, few;
  std::sort(sorted.begin(), sorted.end());
  const size_t count = std::min(kMost, sorted.size());
  for (size_t k = 0; k < count; ++k)
    few.push_back(quantile(sorted, (static_cast<double>(k) + 0.5) / static_cast<double>(count)) / calls);
  return few;
}

std::vector<TuningRecord> verdict_records(const InModelVerdict& verdict, const std::vector<const TuningRecord*>& rivals,
                                          const TuningRecord& usual, const std::vector<InModelTimes>& times,
                                          size_t kernel, double calls) {
  std::vector<TuningRecord> records;
  // Gains are those of pairs of runs, so the default's time beside each is by way of its own.
  const auto add = [&](const TuningRecord& from, size_t program, double gain) {
    TuningRecord record = from;
    record.times_us = few_times(times[program].kernel_us[kernel], calls);
    record.default_us = record.time_us() * gain;
    record.standing = verdict.taken == program ? RecordStanding::kWinner : RecordStanding::kCompared;
    record.trial = -1;
    record.date = record_date();
    records.push_back(std::move(record));
  };
  for (size_t rival = 1; rival <= rivals.size(); ++rival) add(*rivals[rival - 1], rival, verdict.ratios[rival - 1]);
  if (!rivals.empty() && verdict.taken == 0) add(usual, 0, 1);
  return records;
}

}  // namespace tensmith
