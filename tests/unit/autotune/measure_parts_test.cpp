#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "autotune/measure/build.h"
#include "autotune/measure/check.h"
#include "autotune/measure/inputs.h"
#include "autotune/measure/line_protocol.h"
#include "autotune/measure/machine_work.h"
#include "autotune/measure/point_reference.h"
#include "autotune/measure/timing.h"
#include "autotune/measure/worker_process.h"
#include "autotune/measure/yardstick.h"
#include "runtime/base/rng.h"
#include "tests/support/workloads.h"
#include "tests/unit/autotune/measure_support.h"

namespace tensmith {
namespace {

TEST(WorkerProcess, StandsOnItsCpusFromTheFirstInstruction) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  const auto allowed = [](const std::vector<int>& cpus) {
    std::unique_ptr<WorkerProcess> worker =
        WorkerProcess::start({"grep", "Cpus_allowed_list", "/proc/self/status"}, cpus, 1 << 16).value();
    while (worker->pump()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text = worker->next_line().value().text;
    return text.substr(text.find_last_of(" \t") + 1);
  };
  for (int turn = 0; turn < 20; ++turn) EXPECT_EQ(allowed({cpu}), std::to_string(cpu));
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(MeasureYardstick, IsThePeakThatTheBenchmarksMeasure) {
  const Target target = Target::host();
  if (target.vector_bits < 256) GTEST_SKIP() << "no vectors to measure";
  ThreadPool pool(1);
  // Disturbed as the machine may be, their best windows agree.
  double ratio = 0;
  for (int turn = 0; turn < 10 && !(ratio > 0.8 && ratio < 1.25); ++turn) {
    MeasureYardstick yardstick(target, pool);
    ratio = yardstick.peak().gflops * 1e9 / peak_flops(target.vector_bits);
  }
  EXPECT_GT(ratio, 0.8);
  EXPECT_LT(ratio, 1.25);
}

TEST(LineBuffer, CutsLinesAndDropsThoseThatAreTooLong) {
  LineBuffer lines(10);
  lines.append("one\ntwo");
  EXPECT_EQ(lines.next()->text, "one");
  EXPECT_FALSE(lines.next());
  EXPECT_EQ(lines.rest(), "two");
  lines.append("\n12345678901\nshort\n");
  EXPECT_EQ(lines.next()->text, "two");
  EXPECT_TRUE(lines.next()->too_long);
  EXPECT_EQ(lines.next()->text, "short");
  // Told of once, while it is still coming; memory stays bounded.
  int told = 0;
  for (int k = 0; k < 100; ++k) {
    lines.append("aaaaaaa");
    while (const auto line = lines.next()) told += line->too_long;
  }
  EXPECT_EQ(told, 1);
  EXPECT_LT(lines.rest().size(), 20u);
  lines.append("\nnext\n");
  EXPECT_EQ(lines.next()->text, "next");
}

TEST(Base64, RoundTripsAndRefusesWhatIsNone) {
  Rng rng(1);
  for (size_t size = 0; size < 70; ++size) {
    std::vector<uint8_t> bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
    const Result<std::vector<uint8_t>> read = from_base64(to_base64(bytes));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.value(), bytes);
  }
  EXPECT_EQ(to_base64({'M', 'a', 'n', '!'}), "TWFuIQ==");
  for (const char* bad : {"A", "AAA", "AA=A", "A===", "AAA\n", "????"}) EXPECT_FALSE(from_base64(bad).ok()) << bad;
}

TEST(MeasureTaskJson, RoundTripsAndChecks) {
  MeasureTask task = matmul_task(8, 32, 4, 2);
  task.request.output_layouts = {Layout::blocked({0, 1}, 1, 16)};
  task.cold_bytes = 12345;
  task.seed = uint64_t{1} << 63;
  const Result<MeasureTask> read = measure_task_from_json(to_json(task));
  ASSERT_TRUE(read.ok()) << read.failure().message;
  EXPECT_EQ(to_json(read.value()).dump(), to_json(task).dump());
  EXPECT_TRUE(read->request.target == task.request.target);
  EXPECT_TRUE(check_measure_task(task).ok());
  // Axes that are called as a type is (`i4`), stages as a function.
  const Tensor z = placeholder("z", {1, 2, 3, 4, 5, 6}, kFloat32);
  const Tensor powers = compute("pow", {1, 2, 3, 4, 5, 6}, [&](const Indices& i) { return z(i) * z(i); });
  MeasureTask deep = task;
  deep.workload = make_workload("deep", {z}, {powers});
  deep.request.input_layouts = deep.request.output_layouts = {};
  const Result<void> checked = check_measure_task(deep);
  EXPECT_TRUE(checked.ok()) << checked.failure().message;
  const Tensor x = placeholder("a/b", {4}, kFloat32);
  task.workload = make_workload("w", {x}, {compute("y", {4}, [&](const Indices& i) { return x(i[0]); })});
  task.request.output_layouts = {};
  const Result<void> named = check_measure_task(task);
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.failure().id, "task-names");
}

TEST(MeasureFailureNames, RoundTrip) {
  for (int k = 0; k <= static_cast<int>(MeasureFailure::kCancelled); ++k) {
    const auto failure = static_cast<MeasureFailure>(k);
    EXPECT_EQ(*parse_measure_failure(to_string(failure)), failure);
  }
  EXPECT_FALSE(parse_measure_failure("fine").ok());
}

/// Single elements agree with the interpreter on the whole workload.
TEST(PointReference, GivesTheElementsOfTheWholeRun) {
  for (const WorkloadCase& c : workload_cases()) {
    if (!c.workload.dims.empty()) continue;
    const std::vector<InterpValue> inputs = random_inputs(c.workload, {}, 7);
    const std::vector<InterpValue> expected = c.expected(inputs);
    PointReference points(c.workload, inputs, 10'000'000);
    Rng rng(3);
    for (size_t k = 0; k < expected.size(); ++k) {
      const bool is_float = expected[k].dtype.is_float();
      const size_t count = is_float ? expected[k].f.size() : expected[k].i.size();
      for (int point = 0; point < 4; ++point) {
        const size_t element = rng.below(count);
        const Result<InterpValue> one = points.element(k, static_cast<int64_t>(element));
        ASSERT_TRUE(one.ok()) << c.name << ": " << one.failure().message;
        if (is_float) EXPECT_NEAR(one->f[0], expected[k].f[element], 1e-9) << c.name << " " << element;
        else EXPECT_EQ(one->i[0], expected[k].i[element]) << c.name << " " << element;
      }
    }
  }
}

TEST(PointReference, ComputesOnlyWhatAnElementNeeds) {
  // 2^30 multiplications as a whole, 1,024 for an element.
  const MeasureTask task = matmul_task(1024, 1024, 1024);
  std::vector<InterpValue> inputs;
  for (int k = 0; k < 2; ++k) {
    inputs.push_back(make_interp_value(kFloat32, 1 << 20));
    for (double& v : inputs.back().f) v = 0.5;
  }
  PointReference points(task.workload, inputs, 20'000);
  const Result<InterpValue> one = points.element(0, 777'777);
  ASSERT_TRUE(one.ok()) << one.failure().message;
  EXPECT_EQ(one->f[0], 256);
}

TEST(CompareOutputs, TakesRoundingAndRefusesTheRest) {
  const MeasureTask task = matmul_task(4, 4, 512);
  const OutputTolerance tolerance = output_tolerance(task.workload, 0);
  EXPECT_GT(tolerance.relative, 2e-6);
  EXPECT_LT(tolerance.relative, 5e-5);
  std::vector<float> expected = {1, -2, 3, 0, NAN, INFINITY}, got = expected;
  const auto compare = [&] {
    return compare_outputs(reinterpret_cast<const uint8_t*>(got.data()),
                           reinterpret_cast<const uint8_t*>(expected.data()), kFloat32, 6, tolerance);
  };
  EXPECT_EQ(compare(), "");
  got[0] = 1.000001F;
  EXPECT_EQ(compare(), "");
  got[0] = 1.001F;
  EXPECT_EQ(compare(), "1 of 6 elements differ, most of all [0]: expected 1, got 1.00100005");
  got = expected;
  for (const auto& [at, value] :
       {std::pair<size_t, float>{4, 0.0F}, {5, -INFINITY}, {5, 1e30F}, {1, NAN}, {3, INFINITY}}) {
    got = expected;
    got[at] = value;
    EXPECT_NE(compare(), "") << at << " " << value;
  }
  // Integers are exact where nothing comes from floats.
  const Workload product = int8_product_workload(4, 4, 8);
  EXPECT_EQ(output_tolerance(product, 0).differing, 0);
  const int32_t a[] = {1, 2}, b[] = {1, 3};
  EXPECT_EQ(compare_outputs(reinterpret_cast<const uint8_t*>(a), reinterpret_cast<const uint8_t*>(b), kInt32, 2,
                            output_tolerance(product, 0)),
            "1 of 2 elements differ, most of all [1]: expected 3, got 2");
}

TEST(Inputs, SetsDifferAndRepeat) {
  MeasureParameter p{"X", {64, 64}, kFloat32, Layout::row_major(2), false};
  const auto values = [&](InputSet set, InputDraw draw) {
    const std::vector<uint8_t> bytes = make_input(p, set, draw);
    std::vector<float> floats(bytes.size() / 4);
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  };
  const std::vector<float> random = values(InputSet::kRandom, {1}), edges = values(InputSet::kEdges, {1});
  EXPECT_EQ(random, values(InputSet::kRandom, {1}));
  EXPECT_NE(random, values(InputSet::kRandom, {2}));
  for (const float v : random) EXPECT_LE(std::fabs(v), 1);
  for (const float wanted : {0.0F, 1.0F, -1.0F, 4.0F, -4.0F})
    EXPECT_NE(std::count(edges.begin(), edges.end(), wanted), 0);
  int odd = 0;
  for (const float v : values(InputSet::kWinner, {1, false, true})) odd += !std::isfinite(v);
  EXPECT_GT(odd, 10);
  for (const float v : values(InputSet::kEdges, {1, true})) EXPECT_GE(v, 0.1F);
  EXPECT_TRUE(defined_for_non_finite(relu_task(4).workload));
  EXPECT_FALSE(defined_for_non_finite(matmul_task(4, 4, 4).workload));
}

TEST(MedianIntervals, CoverTheMedian) {
  EXPECT_EQ(median_interval({}).median, 0);
  EXPECT_EQ(median_interval({3}).low, 3);
  Rng rng(5);
  int covered = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<double> samples;
    for (int k = 0; k < 21; ++k) samples.push_back(rng.normal());
    const MedianInterval i = median_interval(samples);
    EXPECT_LE(i.low, i.median);
    covered += i.low <= 0 && 0 <= i.high;
  }
  EXPECT_GT(covered, 368);  // 92 % at least; 95 % are meant
}

TEST(AssemblyGuard, RefusesSpillsInDenseLoopsAlone) {
  const auto loop = [](int fmas, int spills) {
    std::string text = "f:\n.LBB0_1:\n";
    for (int k = 0; k < fmas; ++k) text += "\tvfmadd231ps\t(%rdi), %zmm0, %zmm1\n";
    for (int k = 0; k < spills; ++k) text += "\tvmovups\t64(%rsp), %zmm2\n\tvmovups\t%zmm2, 64(%rsp)\n";
    return text + "\tdecq\t%rax\n\tjne\t.LBB0_1\n\tretq\n";
  };
  std::string refused;
  EXPECT_TRUE(guard_findings(loop(24, 0), {}, &refused).empty());
  EXPECT_EQ(guard_findings(loop(24, 4), {}, &refused).size(), 1u);
  EXPECT_EQ(refused, "");
  guard_findings(loop(24, 24), {}, &refused);
  EXPECT_NE(refused.find("stack references: 48 beside 24 FMAs"), std::string::npos) << refused;
  refused.clear();
  guard_findings(loop(4, 24), {}, &refused);
  EXPECT_EQ(refused, "");
}

}  // namespace
}  // namespace tensmith
