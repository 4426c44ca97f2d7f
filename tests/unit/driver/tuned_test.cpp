// Records in the driver: their schedules are taken where they fit, refused with a reason where not, and the results and
// bytes stay what they must be.
#include "apps/driver/tuned.h"

#include <gtest/gtest.h>

#include <cmath>

#include "apps/driver/export.h"
#include "autotune/records/record_index.h"
#include "autotune/space/space.h"
#include "runtime/base/files.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

/// x [12, 20] -> Gemm (33) -> Softmax -> Gemm (7) + Relu.
graph::Graph net() {
  graph::Graph g;
  graph::GraphEditor edit(g);
  Rng rng(7);
  const auto weights = [&](std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) v = rng.uniform(-0.5, 0.5);
    return edit.add_constant(graph::Constant::from_floats(kFloat32, shape, values));
  };
  const auto add = [&](const char* op, std::vector<graph::Value> inputs) {
    return graph::Value{edit.add(op, std::move(inputs), {}), 0};
  };
  graph::Value v = edit.add_input("x", graph::static_type(kFloat32, {12, 20}));
  v = add("Softmax", {add("Gemm", {v, weights({20, 33}), weights({33})})});
  v = add("Relu", {add("Gemm", {v, weights({33, 7}), weights({7})})});
  edit.set_outputs({v}, {"y"});
  return g;
}

CompileOptions options_with(std::shared_ptr<const RecordIndex> records = nullptr) {
  CompileOptions options;
  options.opt_level = 1;
  options.threads = 1;
  options.records = std::move(records);
  return options;
}

std::vector<float> run(const CompiledProgram& program) {
  const Module module = load_program(std::make_shared<const CompiledProgram>(program));
  InstanceOptions options;
  options.threads = 1;
  Instance instance = module.create(options).value();
  std::vector<HostTensor> inputs;
  inputs.emplace_back(std::vector<int64_t>{12, 20}, kFloat32);
  for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, std::sin(0.3 * static_cast<double>(k)));
  std::vector<HostTensor> outputs = instance.run(inputs).value();
  const auto data = outputs[0].data<float>();
  return {data.begin(), data.end()};
}

/// A record of a random schedule for each kernel of the net.
std::vector<TuningRecord> random_records(uint64_t seed) {
  graph::Graph g = net();
  std::vector<TuningRecord> records;
  Rng rng(seed);
  const CompiledProgram program = compile_graph(g, options_with());
  for (const CompiledKernel& kernel : program.kernels) {
    ScheduleRequest request;
    request.target = Target::host();
    request.threads = 1;
    const Workload& workload = kernel.schedule.workload();
    const Candidate drawn = sample(Space(workload, request), rng, Draw::kUniform).value();
    TuningRecord record;
    record.key = record_key(workload, request);
    record.origin = origin_here(request.target);
    record.steps = drawn.schedule.steps();
    record.decisions = drawn.decisions;
    record.times_us = {1};
    record.default_us = 2;
    record.standing = RecordStanding::kWinner;
    records.push_back(record);
  }
  return records;
}

std::shared_ptr<const RecordIndex> index_of(const std::vector<TuningRecord>& records) {
  auto index = std::make_shared<RecordIndex>();
  for (size_t k = 0; k < records.size(); ++k) index->add(records[k], "R:" + std::to_string(k + 1));
  return index;
}

TEST(Tuned, RecordsGiveTheSameResults) {
  graph::Graph plain = net();
  const std::vector<float> expected = run(compile_graph(plain, options_with()));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<TuningRecord> records = random_records(seed);
    CompileOptions options = options_with(index_of(records));
    options.require_tuned = true;
    graph::Graph g = net();
    const CompiledProgram program = compile_graph(g, options);
    ASSERT_EQ(program.kernels.size(), records.size());
    for (size_t k = 0; k < records.size(); ++k) {
      EXPECT_TRUE(program.kernels[k].is_tuned);
      EXPECT_EQ(program.kernels[k].schedule.steps(), records[k].steps);
    }
    const std::string count = std::to_string(records.size());
    EXPECT_EQ(tuning_summary(program), "records: " + count + " of " + count + " kernels as tuned");
    const std::vector<float> got = run(program);
    for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-5) << "seed " << seed;
  }
}

TEST(Tuned, TheSameRecordsGiveTheSameBytes) {
  const TempDir folder;
  const std::vector<TuningRecord> records = random_records(3);
  std::string first;
  for (int turn = 0; turn < 2; ++turn) {
    graph::Graph g = net();
    CompileOptions options = options_with(index_of(records));
    const std::string path = folder.file("libtuned.so");
    options.prefix = prefix_for(path);
    export_program(compile_graph(g, options), {path, WeightsHome::kEmbed});
    const std::string bytes = *read_file(path);
    if (turn == 0) first = bytes;
    else EXPECT_EQ(first, bytes);
  }
}

TEST(Tuned, WhatDoesNotFitFallsBackAndSaysWhy) {
  std::vector<TuningRecord> records = random_records(2);
  ASSERT_GE(records.size(), 2u);
  // Made elsewhere, illegal here, and none at all.
  records[0].origin.cpu = "Abacus 3000";
  records[1].steps.push_back(parse_step("split stage=nobody loop=i0 factor=4 outer=a inner=b").value());
  records.resize(2);
  graph::Graph g = net(), plain = net();
  const CompiledProgram program = compile_graph(g, options_with(index_of(records)));
  EXPECT_NE(program.kernels[0].tuning.find("measured on another CPU: Abacus 3000"), std::string::npos);
  EXPECT_EQ(program.kernels[1].tuning.rfind("refused: winner of 1 record", 0), 0u) << program.kernels[1].tuning;
  for (size_t k = 2; k < program.kernels.size(); ++k)
    EXPECT_EQ(program.kernels[k].tuning, "no record of this workload");
  const CompiledProgram usual = compile_graph(plain, options_with());
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    EXPECT_FALSE(program.kernels[k].is_tuned);
    EXPECT_EQ(program.kernels[k].schedule.steps(), usual.kernels[k].schedule.steps());
  }
  EXPECT_EQ(run(program), run(usual));
  EXPECT_NE(tuning_summary(program).find("; by default: "), std::string::npos);

  CompileOptions strict = options_with(index_of(records));
  strict.require_tuned = true;
  graph::Graph again = net();
  try {
    compile_graph(again, strict);
    FAIL() << "expected an error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.id(), "untuned-kernel");
    EXPECT_NE(e.message().find("Abacus 3000"), std::string::npos);
  }
}

// A schedule that lowers but whose registers the code generator refuses.
TEST(Tuned, WhatCannotBecomeCodeFallsBack) {
  std::vector<TuningRecord> records = random_records(2);
  for (TuningRecord& record : records) {
    ScheduleRequest request;
    request.target = Target::host();
    graph::Graph g = net();
    record.steps.clear();
    for (const CompiledKernel& kernel : compile_graph(g, options_with()).kernels)
      if (to_text(kernel.schedule.workload()) == record.key.workload)
        for (const StageState& s : kernel.schedule.state().stages)
          if (s.stage->stage_kind == StageKind::kCompute && record.steps.empty() &&
              !kernel.schedule.state().is_output(static_cast<int>(&s - kernel.schedule.state().stages.data())))
            record.steps.push_back(parse_step("set_scope stage=" + s.name + " scope=register").value());
  }
  graph::Graph g = net(), plain = net();
  const CompiledProgram program = compile_graph(g, options_with(index_of(records)));
  const std::vector<float> expected = run(compile_graph(plain, options_with()));
  const std::vector<float> got = run(program);
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-5);
  for (const CompiledKernel& kernel : program.kernels) EXPECT_TRUE(kernel.is_tuned || !kernel.tuning.empty());
}

}  // namespace
}  // namespace tensmith
