// Tests generated from the samples in the primitives' definitions.
#include <gtest/gtest.h>

#include "schedule/primitive_def.h"
#include "tensor/parse.h"
#include "tests/support/golden.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

class PrimitiveTest : public testing::TestWithParam<const PrimitiveDef*> {};
INSTANTIATE_TEST_SUITE_P(All, PrimitiveTest, testing::ValuesIn(all_primitives().begin(), all_primitives().end()),
                         [](const auto& info) { return info.param->name; });

TEST_P(PrimitiveTest, SamplesComputeTheSame) {
  ASSERT_FALSE(GetParam()->samples.empty()) << "a primitive needs a sample";
  for (const PrimitiveSample& sample : GetParam()->samples) {
    ASSERT_EQ(parse_step(sample.steps.back()).value().primitive, GetParam()->name);
    expect_correct(sample_workload(sample.workload), sample.steps);
  }
}

TEST_P(PrimitiveTest, LoopsAreAsRecorded) {
  const PrimitiveSample& sample = GetParam()->samples.front();
  const Schedule schedule = make_schedule(sample_workload(sample.workload).workload, sample.steps);
  std::string text;
  for (const Step& step : schedule.steps()) text += "# " + to_string(step) + "\n";
  expect_golden("schedule/" + GetParam()->name + ".nests.txt", text + lowered_text(schedule, "loop_nests"));
  expect_golden("schedule/" + GetParam()->name + ".lowered.txt", text + lowered_text(schedule));
}

TEST_P(PrimitiveTest, DefinitionIsComplete) {
  const PrimitiveDef& def = *GetParam();
  EXPECT_NE(def.doc.find("Rewrite:"), std::string::npos) << def.name << " does not state its rewrite";
  EXPECT_FALSE(def.halide.empty());
  EXPECT_FALSE(def.tvm.empty());
  ASSERT_FALSE(def.args.empty());
  EXPECT_EQ(def.args[0].kind, ArgKind::kStage);
  EXPECT_EQ(find_primitive(def.name), &def);
}

TEST_P(PrimitiveTest, StepsReadBackFromTheirText) {
  for (const PrimitiveSample& sample : GetParam()->samples) {
    const Schedule schedule = make_schedule(sample_workload(sample.workload).workload, sample.steps);
    const std::vector<Step> read = parse_steps(schedule.to_string()).value();
    EXPECT_EQ(read, schedule.steps());
  }
}

TEST(PrimitiveListTest, IsInAlphabeticalOrder) {
  std::string last;
  for (const PrimitiveDef* def : all_primitives()) {
    EXPECT_LT(last, def->name);
    last = def->name;
  }
}

}  // namespace
}  // namespace tensmith
