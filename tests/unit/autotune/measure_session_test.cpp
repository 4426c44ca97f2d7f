#include "autotune/measure/session.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <set>

#include "runtime/timer.h"
#include "schedule/schedule.h"
#include "tests/support/workloads.h"
#include "tests/unit/autotune/measure_support.h"

namespace tensmith {
namespace {

MeasureCandidate scheduled(const MeasureTask& task, const std::function<void(Schedule&)>& steps) {
  Schedule schedule(task.workload);
  steps(schedule);
  MeasureCandidate candidate;
  candidate.steps = schedule.steps();
  return candidate;
}

TEST(MeasureSession, MeasuresADefaultScheduleWithAllItsFigures) {
  MeasureSession session(test_session_options());
  EXPECT_EQ(session.runner_info()["cpu"], host_cpu_model());
  const MeasureTask task = matmul_task(64, 64, 64);
  const Result<int> id = session.add_task(task);
  ASSERT_TRUE(id.ok()) << id.failure().message;
  const MeasureResult first = measure_one(session, *id, default_candidate(task));
  ASSERT_TRUE(first.valid()) << to_string(first.failure) << ": " << first.message;
  EXPECT_EQ(session.task_note(*id), "");
  EXPECT_EQ(first.id, 0);
  EXPECT_EQ(first.incumbent, -1);
  EXPECT_GT(first.timing.median_us, 0.5);
  EXPECT_LT(first.timing.median_us, 5000);
  EXPECT_LE(first.timing.min_us, first.timing.median_us);
  EXPECT_EQ(first.timing.windows_us.size(), first.timing.yardstick_us.size());
  EXPECT_GE(first.timing.windows_us.size(), 5u);
  EXPECT_GE(first.timing.yardstick_ratio, 0.9);
  EXPECT_GT(first.build.code_bytes, 500);
  EXPECT_EQ(first.build.code_sha256.size(), 64u);
  EXPECT_GT(first.build.codegen_ms, 0);
  EXPECT_EQ(session.incumbent(*id)->id, 0);

  // Plain loops: right, compared with the incumbent, and given up early since they are far slower.
  const MeasureResult plain = measure_one(session, *id, scheduled(task, [](Schedule&) {}));
  ASSERT_TRUE(plain.valid()) << to_string(plain.failure) << ": " << plain.message;
  EXPECT_EQ(plain.incumbent, 0);
  EXPECT_GT(plain.timing.ratio, 3);
  EXPECT_TRUE(plain.timing.dropped);
  EXPECT_LE(plain.timing.windows_us.size(), 2u);
  EXPECT_NEAR(plain.cost_us, plain.timing.ratio * first.cost_us, 1e-9 * plain.cost_us);
  EXPECT_EQ(session.incumbent(*id)->id, 0);

  // The same code again is not measured again.
  const MeasureResult again = measure_one(session, *id, default_candidate(task));
  EXPECT_EQ(again.same_code_as, 0);
  EXPECT_EQ(again.cost_us, first.cost_us);
  // A winner is, on a third set of inputs.
  MeasureCandidate winner = default_candidate(task);
  winner.thorough = true;
  const MeasureResult thorough = measure_one(session, *id, winner);
  ASSERT_TRUE(thorough.valid()) << thorough.message;
  EXPECT_EQ(thorough.same_code_as, -1);
  EXPECT_NEAR(thorough.timing.ratio, 1, 0.3);
  EXPECT_EQ(session.counts().valid, 4);
}

TEST(MeasureSession, IllegalAndUnknownStepsAreNamed) {
  MeasureSession session(test_session_options());
  const MeasureTask task = matmul_task(16, 16, 16);
  const int id = *session.add_task(task);
  MeasureCandidate candidate;
  candidate.steps = {{"vectorize", {{"stage", std::string("nobody")}, {"loop", std::string("i0")}}}};
  const MeasureResult result = measure_one(session, id, candidate);
  EXPECT_EQ(result.failure, MeasureFailure::kIllegalSchedule);
  EXPECT_NE(result.message.find("nobody"), std::string::npos) << result.message;
  candidate.steps = {{"no_such_step", {}}};
  EXPECT_EQ(measure_one(session, id, candidate).failure, MeasureFailure::kIllegalSchedule);
  EXPECT_EQ(measure_one(session, 77, candidate).failure, MeasureFailure::kTaskFailed);
}

/// Every workload of the tensor layer with fixed sizes: its default schedule agrees with its reference.
TEST(MeasureSession, DefaultSchedulesOfAllWorkloadsAreValid) {
  MeasureSession session(test_session_options());
  std::map<int64_t, std::string> names;
  for (const WorkloadCase& c : workload_cases()) {
    MeasureTask task;
    task.workload = c.workload;
    task.request = {Target::host(), 1, {}, {}};
    const Result<int> id = session.add_task(task);
    if (!c.workload.dims.empty()) {
      ASSERT_FALSE(id.ok()) << c.name;
      EXPECT_EQ(id.failure().id, "task-open-dims");
      continue;
    }
    ASSERT_TRUE(id.ok()) << c.name << ": " << id.failure().message;
    MeasureCandidate candidate = default_candidate(task);
    candidate.thorough = true;
    names[session.submit(*id, candidate)] = c.name + " (task " + std::to_string(*id) + ")";
  }
  ASSERT_GE(names.size(), 8u);
  while (const std::optional<MeasureResult> result = session.wait(120)) {
    EXPECT_TRUE(result->valid()) << names[result->id] << ": " << to_string(result->failure) << ": " << result->message;
    EXPECT_EQ(session.task_note(result->task), "") << names[result->id];
    names.erase(result->id);
  }
  EXPECT_TRUE(names.empty());
}

TEST(MeasureSession, BlockedLayoutsPackedConstantsColdWeightsAndTwoThreads) {
  const Tensor x = placeholder("X", {1, 20, 9, 9}, kFloat32), w = placeholder("W", {24, 20, 3, 3}, kFloat32, true);
  const Tensor y = sum("Y", {1, 24, 7, 7}, {20, 3, 3}, [&](const Indices& i, const Indices& r) {
    return x(i[0], r[0], i[2] + r[1], i[3] + r[2]) * w(i[1], r[0], r[1], r[2]);
  });
  MeasureTask task;
  task.workload = make_workload("conv", {x, w}, {y});
  const Layout blocked = Layout::blocked({0, 1, 2, 3}, 1, 16);
  task.request = {Target::host(), 2, {blocked, Layout()}, {blocked}};
  task.cold_bytes = 8 << 20;
  MeasureSession session(test_session_options());
  const Result<int> id = session.add_task(task);
  ASSERT_TRUE(id.ok()) << id.failure().message;
  const MeasureResult result = measure_one(session, *id, default_candidate(task));
  EXPECT_TRUE(result.valid()) << to_string(result.failure) << ": " << result.message << session.task_note(*id);
  // A schedule that leaves the output row-major does not fit into the surroundings.
  const MeasureResult other = measure_one(session, *id, scheduled(task, [](Schedule&) {}));
  EXPECT_EQ(other.failure, MeasureFailure::kIllegalSchedule);
  EXPECT_NE(other.message.find("layout"), std::string::npos) << other.message;
}

/// Copies of weights that are no floats hold what the kernel needs: random numbers would be indices out of bounds.
TEST(MeasureSession, ColdConstantsOfOtherTypesKeepTheirValues) {
  const Tensor x = placeholder("X", {2, 4096}, kFloat32), scale = placeholder("S", {4096}, kFloat32, true);
  const Tensor rows = placeholder("R", {512}, kInt64, true), q = placeholder("Q", {512, 4096}, kInt8, true);
  const Tensor y = compute("Y", {512, 4096}, [&](const Indices& i) {
    return x(rows(i[0]), i[1]) * scale(i[1]) * cast(kFloat32, q(i[0], i[1]));
  });
  MeasureTask task;
  task.workload = make_workload("gather", {x, scale, rows, q}, {y});
  task.request = {Target::host(), 1, {}, {}};
  task.cold_bytes = 24 << 20;
  MeasureSession session(test_session_options());
  const Result<int> id = session.add_task(task);
  ASSERT_TRUE(id.ok()) << id.failure().message;
  const MeasureResult result = measure_one(session, *id, default_candidate(task));
  EXPECT_TRUE(result.valid()) << to_string(result.failure) << ": " << result.message << session.task_note(*id);
  EXPECT_GT(result.timing.peak_gflops, 1);
  EXPECT_GT(result.timing.peak_cache_gbs, result.timing.peak_memory_gbs * 0.5);
}

/// Half again as slow, by repeating the work: the ratio says so on a busy machine too.
TEST(MeasureSession, RatiosToTheIncumbentAreRight) {
  const MeasureTask task = relu_task(1 << 14);
  const auto repeated = [&](int times) {
    return candidate_from_text(
        task,
        "func measured_kernel(X: f32[16384], Y: f32[16384]) -> Y {\n for t in " + std::to_string(times) +
            " { for i in 1024 { Y[ramp(i * 16, 1, 16)] = max(X[ramp(i * 16, 1, 16)], broadcast(0.0, 16)) } }\n}\n");
  };
  MeasureSession session(test_session_options());
  const int id = *session.add_task(task);
  ASSERT_TRUE(measure_one(session, id, repeated(20)).valid());
  MeasureCandidate slower = repeated(30), faster = repeated(10);
  slower.thorough = faster.thorough = true;
  const MeasureResult slow = measure_one(session, id, slower);
  ASSERT_TRUE(slow.valid()) << slow.message;
  EXPECT_NEAR(slow.timing.ratio, 1.5, 0.15);
  EXPECT_LE(slow.timing.ratio_low, slow.timing.ratio);
  EXPECT_GE(slow.timing.ratio_high, slow.timing.ratio);
  const MeasureResult fast = measure_one(session, id, faster);
  ASSERT_TRUE(fast.valid()) << fast.message;
  EXPECT_NEAR(fast.timing.ratio, 0.5, 0.1);
  // On a machine that other work disturbs too much it stays the incumbent that it is.
  if (!fast.timing.disturbed) {
    EXPECT_EQ(session.incumbent(id)->id, fast.id);
  }
  // The scale goes on from one incumbent to the next.
  const MeasureResult slow_again = measure_one(session, id, slower);
  EXPECT_NEAR(slow_again.cost_us / slow.cost_us, 1, 0.25);
}

TEST(MeasureSession, OnePassGivesEachIdOnceAndCancelEndsTheRest) {
  MeasureSession session(test_session_options());
  const MeasureTask task = matmul_task(16, 16, 16);
  const int id = *session.add_task(task);
  for (int k = 0; k < 30; ++k) EXPECT_EQ(session.submit(id, default_candidate(task)), k);
  EXPECT_EQ(session.pending(), 30);
  std::set<int64_t> seen;
  ASSERT_TRUE(session.wait(60));
  session.cancel();
  int cancelled = 0;
  while (const std::optional<MeasureResult> result = session.wait(60)) {
    EXPECT_TRUE(seen.insert(result->id).second);
    cancelled += result->failure == MeasureFailure::kCancelled;
  }
  EXPECT_EQ(seen.size(), 29u);
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(session.pending(), 0);
  EXPECT_FALSE(session.wait(10));  // at once: nothing is pending
  session.remove_task(id);
  EXPECT_EQ(measure_one(session, id, default_candidate(task)).failure, MeasureFailure::kTaskFailed);
}

/// Kilobytes of resident memory.
int64_t resident_kib(int pid) {
  int64_t kib = -1;
  if (std::FILE* file = std::fopen(("/proc/" + (pid ? std::to_string(pid) : "self") + "/status").c_str(), "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file))
      if (long long value = 0; std::sscanf(line, "VmRSS: %lld", &value) == 1) kib = value;
    std::fclose(file);
  }
  return kib;
}

TEST(MeasureSession, FiveHundredMeasurementsDoNotGrowMemory) {
  SessionOptions options = test_session_options();
  options.reuse_equal_code = false;
  options.timing.window_ms = 0.02;
  MeasureSession session(options);
  const MeasureTask task = matmul_task(8, 16, 8);
  const int id = *session.add_task(task);
  // Distinct candidates that are all built: splits of the reduction.
  std::vector<MeasureCandidate> candidates;
  for (int64_t factor : {2, 3, 4, 5, 8})
    candidates.push_back(scheduled(task, [&](Schedule& s) {
      s.split("C", "r0", factor, "ro", "ri"), s.reorder("C", {"i0", "ro", "i1", "ri"});
    }));
  // On a machine that is busy with something else, fewer.
  const auto run = [&](int most) {
    const Timer timer;
    int done = 0;
    for (; done < most && timer.ms() < 25e3; done += 50) {
      for (int k = 0; k < 50; ++k) session.submit(id, candidates[static_cast<size_t>(k) % candidates.size()]);
      while (const std::optional<MeasureResult> result = session.wait(60))
        EXPECT_TRUE(result->valid()) << to_string(result->failure) << ": " << result->message;
    }
    return done;
  };
  run(100);  // allocators settle
  const std::vector<int> pids = session.worker_pids();
  const int64_t builder = resident_kib(pids[0]), runner = resident_kib(pids[1]), own = resident_kib(0);
  const Timer timer;
  const SessionCounts before = session.counts();
  const int count = run(500);
  const double seconds = timer.ms() / 1e3;
  ASSERT_EQ(session.worker_pids(), pids);
  const int64_t grown[] = {resident_kib(pids[0]) - builder, resident_kib(pids[1]) - runner, resident_kib(0) - own};
  std::printf("growth over %d measurements: builder %lld KiB, runner %lld KiB, session %lld KiB; %.1f a second\n",
              count, static_cast<long long>(grown[0]), static_cast<long long>(grown[1]),
              static_cast<long long>(grown[2]), count / seconds);
  const SessionCounts after = session.counts();
  std::printf("busy: building %.1f ms a candidate, running %.1f ms a candidate\n",
              (after.build_busy_ms - before.build_busy_ms) / count, (after.run_busy_ms - before.run_busy_ms) / count);
  for (const int64_t kib : grown) EXPECT_LT(kib, 5 << 10);
}

}  // namespace
}  // namespace tensmith
