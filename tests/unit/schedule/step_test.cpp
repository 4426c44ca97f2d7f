// Steps as text.
#include <gtest/gtest.h>

#include "schedule/step.h"

namespace tensmith {
namespace {

TEST(StepTextTest, ReadsTypesFromTheSchema) {
  const Step step = parse_step("  split stage=C loop=i0  factor=6 outer=io inner=ii").value();
  EXPECT_EQ(step.number("factor"), 6);
  EXPECT_EQ(step.text("outer"), "io");
  EXPECT_EQ(step.find("tail"), nullptr);
  EXPECT_EQ(parse_step("fuse stage=C loops=a,b,c fused=f").value().texts("loops"),
            (std::vector<std::string>{"a", "b", "c"}));
  // A stage whose name looks like a number stays a name.
  EXPECT_EQ(parse_step("compute_root stage=12").value().text("stage"), "12");
}

TEST(StepTextTest, QuotesWhatWouldNotReadBack) {
  const std::vector<Step> steps = {
      {"transform_layout", {{"stage", "X"}, {"layout", "0,1;halo 1:1+1"}, {"output", int64_t{0}}}},
      {"compute_inline", {{"stage", "a \"b\" \\ c\nd\te"}}},
      {"compute_inline", {{"stage", ""}}},
      {"reorder", {{"stage", "s=t"}, {"loops", std::vector<std::string>{"x,y", "z w", "", "\"", "v"}}}},
      {"reorder", {{"stage", "C"}, {"loops", std::vector<std::string>{}}}},
  };
  std::string text;
  for (const Step& step : steps) {
    EXPECT_EQ(parse_step(to_string(step)).value(), step) << to_string(step);
    text += to_string(step) + "\n";
  }
  EXPECT_EQ(parse_steps(text).value(), steps);
  EXPECT_EQ(to_string(steps[0]), "transform_layout stage=X layout=\"0,1;halo 1:1+1\" output=0");
}

TEST(StepTextTest, SaysWhatIsWrong) {
  const auto id = [](const char* text) { return parse_step(text).ok() ? "ok" : parse_step(text).failure().id; };
  EXPECT_EQ(id("splitt stage=C"), "unknown-primitive");
  EXPECT_EQ(id(""), "unknown-primitive");
  EXPECT_EQ(id("split stage=C lop=i"), "unknown-step-argument");
  EXPECT_EQ(id("split stage=C factor=six"), "bad-step-argument");
  EXPECT_EQ(id("split stage=C factor=6x"), "bad-step-argument");
  EXPECT_EQ(id("split stage=C factor=99999999999999999999"), "bad-step-argument");
  EXPECT_EQ(id("split stage"), "bad-step-text");
  EXPECT_EQ(id("split stage=\"C"), "bad-step-text");
  EXPECT_EQ(id("split stage=\"C\"D"), "bad-step-text");
  EXPECT_EQ(id("split stage=C stage=D"), "bad-step-text");
  const auto steps = parse_steps("# a comment\n\nunroll stage=C loop=i\nunrol stage=C loop=i\n");
  ASSERT_FALSE(steps.ok());
  EXPECT_EQ(steps.failure().message.substr(0, 8), "line 4: ");
}

}  // namespace
}  // namespace tensmith
