// From a word or a program to tasks, trials in real workers and a file of records that the compiler applies.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/driver/compile.h"
#include "apps/driver/op_graph.h"
#include "apps/driver/trials.h"
#include "apps/driver/tuning_report.h"
#include "apps/driver/tuning_tasks.h"
#include "autotune/records/record_index.h"
#include "runtime/base/files.h"

namespace tensmith {
namespace {

CompileOptions one_thread() {
  CompileOptions options;
  options.threads = 1;
  return options;
}

CompiledProgram program_of(const std::string& op) {
  graph::Graph graph = graph_of_op(op).value();
  return compile_graph(graph, one_thread());
}

std::string temporary(const std::string& name) {
  const std::string path = testing::TempDir() + "tuning_" + std::to_string(getpid()) + "_" + name;
  std::filesystem::remove(path);
  return path;
}

TEST(OpGraph, EveryKindCompilesToAtLeastOneKernel) {
  for (const char* op :
       {"matmul:8x16x12", "batch_matmul:3x8x16x12:f32", "conv2d:1x8x10x10x16x3x1x1", "grouped_conv2d:1x8x6x6x8x3x1x1x2",
        "depthwise_conv2d:1x8x9x9x3x2x1", "max_pool2d:1x4x9x9x3x2x1", "average_pool2d:1x4x9x9x2x2x0", "softmax:7x33",
        "layer_norm:7x33", "reduce_sum:9x31", "reduce_rows:31x9", "attention:2x9x8", "gated_chain:5x19",
        "transpose:9x17"}) {
    const CompiledProgram program = program_of(op);
    EXPECT_GE(program.kernels.size(), 1u) << op;
    EXPECT_FALSE(program.kernels[0].is_plain) << op;
  }
}

TEST(OpGraph, RefusesWithWhatIsWanted) {
  const auto message = [](const char* text) {
    const Result<graph::Graph> graph = graph_of_op(text);
    EXPECT_EQ(graph.failure().id, "bad-op") << text;
    return graph.failure().message;
  };
  EXPECT_NE(message("matmull:1x2x3").find("conv2d:NxCxHxWxOxKxSxP"), std::string::npos);
  EXPECT_NE(message("matmul:1x2").find("3 sizes, MxNxK, got 2"), std::string::npos);
  EXPECT_NE(message("matmul").find("sizes such as 512x768, got ''"), std::string::npos);
  EXPECT_NE(message("matmul:1x2x3:i8").find("the type f32, got 'i8'"), std::string::npos);
  EXPECT_NE(message("matmul:1x-2x3").find("sizes such as"), std::string::npos);
  EXPECT_NE(message("matmul:1x2x99999999999").find("sizes such as"), std::string::npos);
  EXPECT_NE(message("matmul:0x2x3").find("sizes from 1 on"), std::string::npos);
  EXPECT_NE(message("grouped_conv2d:1x8x8x8x8x3x1x1x0").find("sizes from 1 on"), std::string::npos);
  EXPECT_NE(message("grouped_conv2d:1x8x8x8x8x3x1x1x3").find("sizes that fit together"), std::string::npos);
  EXPECT_NE(message("matmul:999999999x999999999x9").find("at most 1e13"), std::string::npos);
  EXPECT_NE(message("conv2d:1x8x2x2x16x9x1x0").find("sizes that fit together"), std::string::npos);
}

TEST(TuningTasks, KernelsOnceWeightedByTheirCalls) {
  // Twice the same convolution, as residual networks have them.
  graph::Graph graph;
  graph::GraphEditor edit(graph);
  graph::Value v = edit.add_input("x", graph::static_type(kFloat32, {1, 8, 6, 6}));
  std::vector<double> values(8 * 8 * 9, 0.1);
  for (int layer = 0; layer < 3; ++layer) {
    const graph::Value w = edit.add_constant(graph::Constant::from_floats(kFloat32, {8, 8, 3, 3}, values));
    graph::AttrMap attrs;
    attrs.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    v = {edit.add("Conv", {v, w}, attrs), 0};
    v = {edit.add("Relu", {v}), 0};
    values[0] += 1;  // other weights, the same kernel
  }
  edit.set_outputs({v}, {"y"});
  CompileOptions options = one_thread();
  options.opt_level = 1;
  const CompiledProgram program = compile_graph(graph, options);
  const std::vector<TuningTask> tasks = tuning_tasks(program, false, true);
  ASSERT_EQ(tasks.size(), program.kernels.size());
  double calls = 0;
  size_t convolutions = 0;
  for (const TuningTask& task : tasks) {
    EXPECT_EQ(task.request.threads, 1);
    if (task.label.find("conv+relu") == std::string::npos) continue;  // a border for the one that the caller sees
    ++convolutions;
    calls += task.weight;
    EXPECT_GT(task.flops, 0);
  }
  EXPECT_EQ(calls, 3);
  EXPECT_LT(convolutions, 3u);
}

TrialOutcome valid(double cost, double default_us = 40) {
  TrialOutcome outcome;
  outcome.cost_us = cost;
  outcome.default_us = default_us;
  outcome.times_us = {cost * 0.9, cost, cost * 1.2};
  return outcome;
}

TEST(RecordStore, FindsWhatItKeptAndTellsOfTheRest) {
  const std::vector<TuningTask> tasks = tuning_tasks(program_of("matmul:8x16x12"), false, true);
  const std::vector<TuningTask> others = tuning_tasks(program_of("matmul:8x16x13"), false, true);
  const std::string path = temporary("store.jsonl");
  Rng rng(1);
  const Space space(tasks[0].workload, tasks[0].request);
  const Candidate a = sample(space, rng, Draw::kUniform).value(), b = sample(space, rng, Draw::kUniform).value();
  TrialOutcome failed;
  failed.cost_us = std::numeric_limits<double>::infinity();
  failed.error = "run-timeout";
  failed.error_text = "longer than 10 s";
  {
    RecordStore store = RecordStore::open(path, tasks, 3).value();
    EXPECT_EQ(store.known(), 0);
    ASSERT_TRUE(store.save(0, 0, a, valid(40)).ok());
    ASSERT_TRUE(store.save(0, 1, b, failed).ok());
    // The first trial is what a search goes on with, not a comparison in the end.
    ASSERT_TRUE(store.save_winner(0, a, valid(44)).ok());
  }
  std::ofstream(path, std::ios::app) << "{\"check\":\"torn\n";
  RecordStore again = RecordStore::open(path, tasks, 3).value();
  EXPECT_EQ(again.known(), 2);
  EXPECT_EQ(again.foreign(), 0);
  ASSERT_EQ(again.bad().size(), 1u);
  EXPECT_EQ(again.bad()[0].line, 4);
  const std::optional<TrialOutcome> found = again.find(0, a);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cost_us, 40);
  EXPECT_EQ(again.find(0, b)->error, "run-timeout");
  EXPECT_TRUE(std::isinf(again.find(0, b)->cost_us));
  EXPECT_EQ(found->default_us, 40);
  const RecordStore foreign = RecordStore::open(path, others, 3).value();
  EXPECT_EQ(foreign.known(), 0);
  EXPECT_EQ(foreign.foreign(), 3);
  // Measured by a worker on another CPU, the records are that one's.
  const RecordStore elsewhere = RecordStore::open(path, tasks, 3, "Abacus 3000").value();
  EXPECT_EQ(elsewhere.known(), 0);
  EXPECT_EQ(elsewhere.foreign(), 3);
}

TEST(RecordStore, KeepsApartWhatDoesNotCompare) {
  const std::vector<TuningTask> tasks = tuning_tasks(program_of("matmul:8x16x12"), false, true);
  const std::string path = temporary("apart.jsonl");
  Rng rng(1);
  const Candidate a = sample(Space(tasks[0].workload, tasks[0].request), rng, Draw::kUniform).value();
  {
    RecordStore store = RecordStore::open(path, tasks, 3, "Abacus 3000").value();
    ASSERT_TRUE(store.save(0, 0, a, valid(40)).ok());
  }
  const TuningRecord record = read_records(path).value().records.at(0);
  EXPECT_EQ(record.origin.cpu, "Abacus 3000");
  EXPECT_EQ(record.gain(), 1);
  EXPECT_TRUE(RecordStore::open(path, tasks, 3, "Abacus 3000").value().find(0, a).has_value());
  // Other arithmetic, other weights around it, another build, no default beside it.
  std::vector<TuningTask> fast = tasks, cold = tasks;
  fast[0].fast_math = true;
  cold[0].cold_bytes = 100 << 20;
  EXPECT_EQ(RecordStore::open(path, fast, 3, "Abacus 3000").value().known(), 0);
  EXPECT_EQ(RecordStore::open(path, cold, 3, "Abacus 3000").value().known(), 0);
  TuningRecord rebuilt = record, alone = record;
  rebuilt.origin.build = "0123456789ab";
  alone.default_us = 0;
  std::ofstream(path) << record_line(rebuilt) << record_line(alone);
  const RecordStore left = RecordStore::open(path, tasks, 3, "Abacus 3000").value();
  EXPECT_EQ(left.known(), 0);
  EXPECT_EQ(left.other_builds(), 1);
  EXPECT_EQ(left.foreign(), 0);
}

TEST(TuningReport, ShowsCurvesGainsAndFailuresInOneFile) {
  const std::vector<TuningTask> tasks = tuning_tasks(program_of("matmul:8x16x12"), false, true);
  EXPECT_EQ(flops_of_workload(tasks[0].workload), 2.0 * 8 * 16 * 12);
  const std::string path = temporary("report.jsonl");
  Rng rng(1);
  const Space space(tasks[0].workload, tasks[0].request);
  std::vector<TuningTask> named = tasks;
  named[0].label = "a <b> & c";
  RecordStore store = RecordStore::open(path, named, 0).value();
  for (int64_t trial = 0; trial < 5; ++trial) {
    TrialOutcome outcome = valid(40 - 4 * static_cast<double>(trial));
    outcome.peak_gflops = 2;
    outcome.peak_cache_gbs = 1;
    outcome.peak_memory_gbs = 0.1;
    if (trial == 3) {
      outcome = {};
      outcome.error = "crashed";
    }
    ASSERT_TRUE(store.save(0, trial, sample(space, rng, Draw::kUniform).value(), outcome).ok());
  }
  // Of another day, with a faster clock: only its ratio to the default of that day counts.
  ASSERT_TRUE(store.save(0, 5, sample(space, rng, Draw::kUniform).value(), valid(20, 22)).ok());
  const RecordLines lines = read_records(path).value();
  const std::vector<TaskHistory> histories = task_histories(lines.records);
  ASSERT_EQ(histories.size(), 1u);
  EXPECT_EQ(histories[0].default_us, 40);
  EXPECT_EQ(histories[0].best_us(), 24);
  EXPECT_NEAR(histories[0].gain(), 40.0 / 24, 1e-12);
  EXPECT_FALSE(histories[0].is_confirmed());
  EXPECT_EQ(histories[0].flops, 2.0 * 8 * 16 * 12);
  const std::string page = tuning_report_html("T <1>", lines.records, lines.bad);
  EXPECT_NE(page.find("<h1>T &lt;1&gt;</h1>"), std::string::npos);
  EXPECT_NE(page.find("a &lt;b&gt; &amp; c"), std::string::npos);
  EXPECT_NE(page.find("5 valid, 1 crashed"), std::string::npos);
  EXPECT_NE(page.find("<td>40 us<td>24 us<td>1.667"), std::string::npos);
  EXPECT_NE(page.find("class=\"failed\""), std::string::npos);
  EXPECT_NE(page.find("unconfirmed</tr>"), std::string::npos);
  EXPECT_NE(page.find("2 GFLOP/s of float32 FMAs, 1 GB/s read from L2"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(Tuning, RecordsCarryTheCpuOfWhoMeasured) {
  const std::vector<TuningTask> tasks = tuning_tasks(program_of("matmul:8x16x12"), false, true);
  // As if the runner stood elsewhere.
  SessionOptions session;
  session.worker = {TS_TUNING_WORKER};
  session.runner =
      std::string("cmd:") + TS_TUNING_WORKER + R"( worker --stdio | sed -u 's/"cpu":"[^"]*"/"cpu":"Abacus 3000"/')";
  const std::string path = temporary("elsewhere.jsonl");
  {
    SessionMeasurer measurer(session);
    EXPECT_EQ(measurer.origin(tasks[0].request.target).cpu, "Abacus 3000");
    RecordStore store = RecordStore::open(path, tasks, 1, measurer.origin(tasks[0].request.target).cpu).value();
    TunerOptions options;
    options.trials = 4;
    EXPECT_EQ(tune(tasks, options, measurer, store).tasks[0].failures, 0);
  }
  const std::vector<TuningRecord> records = read_records(path).value().records;
  ASSERT_GE(records.size(), 4u);
  for (const TuningRecord& record : records) EXPECT_EQ(record.origin.cpu, "Abacus 3000");
  const RecordFound found = RecordIndex::read({path}).value().best(tasks[0].workload, tasks[0].request);
  EXPECT_NE(found.reason.find("measured on another CPU: Abacus 3000"), std::string::npos) << found.reason;
}

TEST(Tuning, MeasuresInWorkersAndTheCompilerTakesTheWinner) {
  SessionOptions session;
  session.worker = {TS_TUNING_WORKER};
  const std::vector<TuningTask> tasks = tuning_tasks(program_of("matmul:24x64x48"), false, true);
  ASSERT_EQ(tasks.size(), 1u);
  const std::string path = temporary("run.jsonl");
  TunerOptions options;
  options.trials = 12;
  options.seed = 2;
  int64_t listened = 0;
  const auto listener = [&](const TunerProgress& now) {
    ++listened;
    EXPECT_TRUE(now.outcome->ok()) << now.outcome->error << ": " << now.outcome->error_text;
    EXPECT_LE(now.model_best_us, now.model_default_us);
  };
  TuningReport report;
  {
    SessionMeasurer measurer(session);
    RecordStore store = RecordStore::open(path, tasks, options.seed).value();
    report = tune(tasks, options, measurer, store, listener);
  }
  EXPECT_EQ(report.trials, 12);
  EXPECT_EQ(report.measured, 12);
  EXPECT_EQ(listened, 12);
  EXPECT_EQ(report.tasks[0].failures, 0);
  EXPECT_GT(report.tasks[0].default_us, 0);
  // Again: nothing is left to measure but the default and the winner.
  {
    SessionMeasurer measurer(session);
    RecordStore store = RecordStore::open(path, tasks, options.seed).value();
    EXPECT_EQ(store.known(), 12);
    const TuningReport second = tune(tasks, options, measurer, store);
    EXPECT_EQ(second.measured, 1);
    EXPECT_EQ(second.tasks[0].from_store, 11);
  }
  double peak = 0;
  const RecordLines lines = read_records(path).value();
  for (const TuningRecord& record : lines.records) {
    EXPECT_GT(record.default_us, 0) << record.trial;
    if (record.standing == RecordStanding::kTrial) peak = std::max(peak, record.peak.gflops);
  }
  EXPECT_GT(peak, 1) << "what the machine can do stands beside the times";
  CompileOptions with = one_thread();
  with.records = std::make_shared<RecordIndex>(RecordIndex::read({path}).value());
  with.require_tuned = true;
  graph::Graph graph = graph_of_op("matmul:24x64x48").value();
  const CompiledProgram tuned = compile_graph(graph, with);
  EXPECT_TRUE(tuned.kernels[0].is_tuned) << tuned.kernels[0].tuning;
}

}  // namespace
}  // namespace tensmith
