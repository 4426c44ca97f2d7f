// Ways that passes over the graph may go: records choose among them, models of the same structure share them, and what
// they gain is judged by the kernels that they change.
#include "apps/driver/choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/driver/export.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

/// x [1, 32, 12, 12] -> Conv 3x3 to 32 -> Relu -> GlobalMaxPool. The weights are the seed's.
graph::Graph net(uint64_t seed, const std::string& name = "conv") {
  constexpr int64_t kChannels = 32;
  graph::Graph graph;
  graph::GraphEditor edit(graph);
  Rng rng(seed);
  std::vector<double> weights(static_cast<size_t>(kChannels * kChannels * 9));
  for (double& v : weights) v = rng.uniform(-0.1, 0.1);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {1, kChannels, 12, 12}));
  const graph::Value w =
      edit.add_constant(graph::Constant::from_floats(kFloat32, {kChannels, kChannels, 3, 3}, weights));
  graph::AttrMap attrs;
  attrs.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  graph::Value v{edit.add("Conv", {x, w}, std::move(attrs), name), 0};
  v = {edit.add("Relu", {v}), 0};
  edit.set_outputs({{edit.add("GlobalMaxPool", {v}), 0}}, {"y"});
  return graph;
}

CompileOptions options_with(std::shared_ptr<const RecordIndex> records = nullptr) {
  CompileOptions options;
  options.target = Target::host();
  options.threads = 1;
  options.records = std::move(records);
  return options;
}

CompiledProgram compile(graph::Graph graph, std::shared_ptr<const RecordIndex> records = nullptr) {
  return compile_graph(graph, options_with(std::move(records)));
}

const MadeChoice* algorithm_of(const CompiledProgram& program) {
  for (const MadeChoice& choice : program.choices.list)
    if (choice.site.name.rfind("algorithm of ", 0) == 0) return &choice;
  return nullptr;
}

std::shared_ptr<const RecordIndex> winner(const CompiledProgram& program, const std::string& way) {
  TuningRecord record;
  record.key = choice_key(program.choices.structure, algorithm_of(program)->site, 1, {});
  record.origin = origin_here(Target::host());
  record.way = way;
  record.times_us = {1};
  record.default_us = 2;
  record.standing = RecordStanding::kWinner;
  auto index = std::make_shared<RecordIndex>();
  index->add(record, "R.jsonl:1");
  return index;
}

std::vector<float> run(const CompiledProgram& program) {
  const Module module = load_program(std::make_shared<const CompiledProgram>(program));
  InstanceOptions options;
  options.threads = 1;
  Instance instance = module.create(options).value();
  std::vector<HostTensor> inputs;
  inputs.emplace_back(program.inputs[0].shape, kFloat32);
  for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, std::sin(0.3 * static_cast<double>(k)));
  const std::vector<HostTensor> outputs = instance.run(inputs).value();
  const auto data = outputs[0].data<float>();
  return {data.begin(), data.end()};
}

TEST(Choices, EachWayOfARecordIsTakenAndGivesTheSameResults) {
  const CompiledProgram usual = compile(net(1));
  const MadeChoice* by_estimate = algorithm_of(usual);
  ASSERT_NE(by_estimate, nullptr);
  EXPECT_EQ(by_estimate->taken, by_estimate->site.by_price);
  EXPECT_FALSE(by_estimate->is_tuned);
  const std::vector<float> expected = run(usual);
  for (const std::string& way : by_estimate->site.ways) {
    const CompiledProgram other = compile(net(1), winner(usual, way));
    const MadeChoice* choice = algorithm_of(other);
    ASSERT_NE(choice, nullptr);
    EXPECT_TRUE(choice->is_tuned);
    EXPECT_EQ(choice->site.ways[choice->taken], way);
    const bool is_usual = way == by_estimate->site.ways[by_estimate->taken];
    EXPECT_EQ(kernels_apart(usual, other).empty(), is_usual) << way;
    const std::vector<float> got = run(other);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-4) << way;
    EXPECT_NE(choice_list(other.choices).find(": " + way + " (not "), std::string::npos) << choice_list(other.choices);
  }
}

TEST(Choices, ServeModelsOfTheSameStructure) {
  const CompiledProgram usual = compile(net(1));
  EXPECT_TRUE(algorithm_of(compile(net(2, "renamed"), winner(usual, "winograd-2")))->is_tuned);
  // Another model, in which the convolution is the same.
  graph::Graph longer = net(1);
  graph::GraphEditor edit(longer);
  edit.set_outputs({{edit.add("Relu", {longer.outputs[0]}), 0}}, {"y"});
  const CompiledProgram elsewhere = compile(std::move(longer), winner(usual, "winograd-2"));
  EXPECT_FALSE(algorithm_of(elsewhere)->is_tuned);
  EXPECT_EQ(algorithm_of(elsewhere)->tuning, "no record of this choice in a model of this structure");
}

TEST(Choices, UnknownWaysAreRefusedWithTheReason) {
  const CompiledProgram usual = compile(net(1));
  const CompiledProgram other = compile(net(1), winner(usual, "by-magic"));
  const MadeChoice* choice = algorithm_of(other);
  EXPECT_FALSE(choice->is_tuned);
  EXPECT_EQ(choice->taken, choice->site.by_price);
  EXPECT_NE(choice->tuning.find("got by-magic"), std::string::npos) << choice->tuning;
}

TEST(Choices, AreJudgedByTheKernelsThatTheyChange) {
  const CompiledProgram usual = compile(net(1));
  const std::string way = algorithm_of(usual)->site.ways[algorithm_of(usual)->site.by_price == 0 ? 1 : 0];
  const CompiledProgram other = compile(net(1), winner(usual, way));
  const auto times_of = [](const CompiledProgram& program, const CompiledProgram& beside, double us) {
    InModelTimes times;
    times.kernel_us.resize(program.kernels.size());
    const std::vector<size_t> apart = kernels_apart(program, beside);
    for (int round = 0; round < 20; ++round) {
      times.whole_us.push_back(1000);
      for (size_t k = 0; k < program.kernels.size(); ++k) {
        const bool differs = std::find(apart.begin(), apart.end(), k) != apart.end();
        // What both have is disturbed and says nothing.
        times.kernel_us[k].push_back(differs ? us / static_cast<double>(apart.size()) : 100.0 * (round % 7));
      }
    }
    return times;
  };
  const InModelTimes slow = times_of(usual, other, 60), quick = times_of(other, usual, 40);
  const ChoiceVerdict better = judge_choice(usual, slow, other, quick);
  EXPECT_TRUE(better.is_better);
  EXPECT_NEAR(better.gain, 1.5, 1e-9);
  EXPECT_NEAR(better.saved_us, 20, 1e-9);
  EXPECT_FALSE(judge_choice(other, quick, usual, slow).is_better);
  EXPECT_FALSE(judge_choice(usual, slow, usual, slow).is_better) << "nothing differs";
}

}  // namespace
}  // namespace tensmith
