// The space of schedules: the default is the preferred point, every drawn point is legal and right, decisions replay,
// mutate, mix and count.
#include "autotune/space/space.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "schedule/trace.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

struct Case {
  std::string name;
  Workload workload;
  ScheduleRequest request;
  std::vector<int64_t> dims = {};
};

Expr f32(double value) { return make_const(kFloat32, value); }

Workload chain_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32), y = placeholder("Y", {columns}, kFloat32);
  const Tensor a = compute("A", {rows, columns}, [&](const Indices& i) { return x(i) * f32(2) + y(i[1]); });
  const Tensor b = compute("B", {rows, columns}, [&](const Indices& i) { return call(Intrinsic::kExp, {a(i)}); });
  const Tensor c = compute("C", {rows, columns}, [&](const Indices& i) { return b(i) / (b(i) + f32(1)) + a(i); });
  return make_workload("chain", {x, y}, {c});
}

Workload transpose_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  return make_workload("transpose", {x},
                       {compute("T", {columns, rows}, [&](const Indices& i) { return x(i[1], i[0]) + f32(1); })});
}

Workload reduce_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  return make_workload(
      "reduce", {x}, {sum("S", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); })});
}

Workload column_sum_workload(int64_t rows, int64_t columns) {
  const Tensor x = placeholder("X", {rows, columns}, kFloat32);
  return make_workload(
      "column_sum", {x},
      {sum("S", {columns}, {rows}, [&](const Indices& i, const Indices& r) { return x(r[0], i[0]); })});
}

Workload pool_workload(int64_t channels, int64_t size) {
  const Tensor x = placeholder("X", {channels, size, size}, kFloat32);
  const int64_t out = (size - 3) / 2 + 1;
  return make_workload(
      "pool", {x},
      {reduce("P", {channels, out, out}, {3, 3}, max_reducer(kFloat32),
              [&](const Indices& i, const Indices& r) { return x(i[0], i[1] * 2 + r[0], i[2] * 2 + r[1]); })});
}

Workload grouped_conv_workload(int64_t groups, int64_t in, int64_t out, int64_t size) {
  const Tensor x = placeholder("X", {groups, in, size, size}, kFloat32),
               w = placeholder("W", {groups, out, in, 3, 3}, kFloat32, true);
  const int64_t to = size - 2;
  const Tensor y = sum("Y", {groups, out, to, to}, {in, 3, 3}, [&](const Indices& i, const Indices& r) {
    return x(i[0], r[0], i[2] + r[1], i[3] + r[2]) * w(i[0], i[1], r[0], r[1], r[2]);
  });
  return make_workload("grouped", {x, w},
                       {compute("R", {groups, out, to, to}, [&](const Indices& i) { return max(y(i), f32(0)); })});
}

Workload batched_product_workload(int64_t b, int64_t m, int64_t n, int64_t k) {
  const Tensor x = placeholder("A", {b, m, k}, kFloat32), y = placeholder("B", {b, k, n}, kFloat32);
  return make_workload("batched", {x, y}, {sum("C", {b, m, n}, {k}, [&](const Indices& i, const Indices& r) {
                         return x(i[0], i[1], r[0]) * y(i[0], r[0], i[2]);
                       })});
}

/// A padded copy that several taps read: worth its own stage, or a place in the loops of its reader.
Workload padded_conv_workload(int64_t channels, int64_t out, int64_t size) {
  const Tensor x = placeholder("X", {channels, size, size}, kFloat32),
               w = placeholder("W", {out, channels, 3, 3}, kFloat32, true);
  const Tensor p = compute("P", {channels, size + 2, size + 2}, [&](const Indices& i) {
    const Expr inside = i[1] >= 1 && i[1] < size + 1 && i[2] >= 1 && i[2] < size + 1;
    return select(inside, x(i[0], max(min(i[1] - 1, size - 1), 0), max(min(i[2] - 1, size - 1), 0)), f32(0));
  });
  const Tensor y = sum("Y", {out, size, size}, {channels, 3, 3}, [&](const Indices& i, const Indices& r) {
    return p(r[0], i[1] + r[1], i[2] + r[2]) * w(i[0], r[0], r[1], r[2]);
  });
  return make_workload("padded", {x, w},
                       {compute("R", {out, size, size}, [&](const Indices& i) { return max(y(i), f32(0)); })});
}

ScheduleRequest request_for(const char* target, int threads) {
  ScheduleRequest request;
  request.target = Target::parse(target).value();
  request.threads = threads;
  return request;
}

std::vector<Case> cases(const char* target, int threads) {
  const ScheduleRequest plain = request_for(target, threads);
  ScheduleRequest last = plain;
  const Layout channels_last = Layout::permuted({0, 2, 3, 1});
  last.input_layouts = {channels_last, Layout()};
  last.output_layouts = {channels_last};
  return {{"product", dense_workload(29, 70, 33), plain},
          {"one row", dense_workload(1, 40, 50), plain},
          {"conv", conv_workload({1, 5, 9, 8, 18, 3, 1, 1}), last},
          {"conv 1x1", conv_workload({1, 33, 5, 5, 16, 1, 1, 0}), last},
          {"conv rows", conv_workload({1, 3, 7, 9, 5, 3, 2, 1}), plain},
          {"depthwise", depthwise_workload({1, 20, 9, 10, 0, 3, 1, 1}), last},
          {"softmax", softmax_workload(12, 37), plain},
          {"layer norm", layer_norm_workload(6, 40), plain},
          {"chain", chain_workload(13, 50), plain},
          {"transpose", transpose_workload(37, 45), plain},
          {"reduce", reduce_workload(4, 600), plain},
          {"column sum", column_sum_workload(300, 21), plain},
          {"pool", pool_workload(6, 13), plain},
          {"grouped", grouped_conv_workload(2, 4, 17, 7), plain},
          {"batched", batched_product_workload(3, 7, 19, 11), plain},
          {"padded", padded_conv_workload(3, 17, 6), plain},
          {"expand", expand_depthwise_project_workload(3, 18, 5, 6, 7), plain},
          {"max plus", max_plus_workload(5, 23, 7), plain},
          {"arg max", arg_max_workload(6, 19), plain},
          {"complex", complex_product_workload(4, 19, 9), plain},
          {"int8", int8_product_workload(5, 19, 30), plain},
          {"one by one", dense_workload(1, 1, 1), plain},
          {"dense of M", dense_workload(Var("M"), 19, 13), plain, {11}}};
}

/// TENSMITH_SPACE_POINTS=N draws more.
int points_to_draw() {
  const char* text = std::getenv("TENSMITH_SPACE_POINTS");
  return text ? std::atoi(text) : 4;
}

class SpaceOf : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(SpaceOf, DefaultIsThePreferredPoint) {
  for (const Case& c : cases(GetParam().first, GetParam().second)) {
    const Space space(c.workload, c.request);
    PreferredChooser chooser;
    const Result<Candidate> candidate = space.make(chooser);
    ASSERT_TRUE(candidate.ok()) << c.name;
    EXPECT_EQ(candidate->schedule.steps(), default_schedule(c.workload, c.request).steps()) << c.name;
    for (const ChosenPoint& chosen : candidate->points)
      for (const ChoiceOption& option : chosen.point.options)
        EXPECT_LE(chosen.point.options[chosen.taken].cost, option.cost) << c.name << " " << chosen.point.name();
  }
}

TEST_P(SpaceOf, DrawnPointsAreRight) {
  int drawn = 0, different = 0;
  for (const Case& c : cases(GetParam().first, GetParam().second)) {
    const Space space(c.workload, c.request);
    Rng rng(7, c.name);
    std::set<std::string> seen;
    for (int k = 0; k < points_to_draw(); ++k) {
      const Result<Candidate> candidate = sample(space, rng, k % 2 ? Draw::kByCost : Draw::kUniform);
      ASSERT_TRUE(candidate.ok()) << c.name << ": " << candidate.failure().message;
      ++drawn;
      if (!seen.insert(candidate->schedule.to_string()).second) continue;
      ++different;
      std::string wrong;
      try {
        wrong = difference(candidate->schedule, c.dims).value_or("");
      } catch (const Error& e) {
        wrong = e.what();
      }
      EXPECT_EQ(wrong, "") << c.name << "\n" << to_string(candidate->decisions) << candidate->schedule.to_string();
    }
  }
  RecordProperty("drawn", drawn);
  EXPECT_GT(different, drawn / 3);  // some spaces are small
}

// The same as machine code of this machine.
TEST(SpaceOfHost, DrawnPointsAreRightAsCode) {
  RunOptions run;
  run.code = true;
  for (const Case& c : cases("host", 2)) {
    const Space space(c.workload, c.request);
    Rng rng(23, c.name);
    for (int k = 0; k < (points_to_draw() + 3) / 4; ++k) {
      const Result<Candidate> candidate = sample(space, rng, k % 2 ? Draw::kUniform : Draw::kByCost);
      ASSERT_TRUE(candidate.ok()) << c.name << ": " << candidate.failure().message;
      std::string wrong;
      try {
        wrong = difference(candidate->schedule, c.dims, run).value_or("");
      } catch (const Error& e) {
        wrong = e.what();
      }
      EXPECT_EQ(wrong, "") << c.name << "\n" << to_string(candidate->decisions) << candidate->schedule.to_string();
    }
  }
}

TEST_P(SpaceOf, ChildrenAreRight) {
  for (const Case& c : cases(GetParam().first, GetParam().second)) {
    const Space space(c.workload, c.request);
    Rng rng(11, c.name);
    Result<Candidate> a = sample(space, rng, Draw::kByCost), b = sample(space, rng, Draw::kUniform);
    ASSERT_TRUE(a.ok() && b.ok()) << c.name;
    for (int k = 0; k < 6; ++k) {
      const Result<Candidate> child =
          k % 3 == 2 ? crossover(space, a.value(), b.value(), rng) : mutate(space, a.value(), rng, 1 + k % 2);
      ASSERT_TRUE(child.ok()) << c.name << ": " << child.failure().message;
      if (k == 5) {
        std::string wrong;
        try {
          wrong = difference(child->schedule, c.dims).value_or("");
        } catch (const Error& e) {
          wrong = e.what();
        }
        EXPECT_EQ(wrong, "") << c.name << "\n" << to_string(child->decisions) << child->schedule.to_string();
      }
      a = child;
    }
  }
}

TEST_P(SpaceOf, DecisionsReplay) {
  for (const Case& c : cases(GetParam().first, GetParam().second)) {
    const Space space(c.workload, c.request);
    Rng rng(3, c.name);
    for (int k = 0; k < 3; ++k) {
      const Result<Candidate> candidate = sample(space, rng, Draw::kUniform);
      ASSERT_TRUE(candidate.ok()) << c.name;
      const Result<Json> text = parse_json(json_text(to_json(candidate->decisions)));
      const Result<Decisions> read = decisions_from_json(text.value());
      ASSERT_TRUE(read.ok());
      EXPECT_EQ(read.value(), candidate->decisions);
      EXPECT_EQ(read.value().hash(), candidate->decisions.hash());
      std::string notes;
      const Result<Candidate> again = replay_decisions(space, read.value(), &notes);
      ASSERT_TRUE(again.ok()) << c.name;
      EXPECT_EQ(trace_of(again->schedule), trace_of(candidate->schedule)) << c.name;
      EXPECT_EQ(notes, "") << c.name;
      const Result<Schedule> replayed = replay(c.workload, trace_of(candidate->schedule));
      EXPECT_TRUE(replayed.ok()) << c.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SpaceOf, testing::Values(std::pair{"sapphirerapids", 2}, std::pair{"znver3", 1}),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(Space, MutationChangesWhatItSays) {
  const Space space(dense_workload(64, 64, 64), request_for("sapphirerapids", 1));
  PreferredChooser chooser;
  const Candidate usual = space.make(chooser).value();
  Rng rng(5);
  int changed = 0;
  for (int k = 0; k < 20; ++k) {
    const Candidate child = mutate(space, usual, rng, 1).value();
    int differing = 0;
    for (const auto& [name, value] : usual.decisions.items()) {
      const ChoiceValue* now = child.decisions.find(name);
      differing += now && *now != value;
    }
    EXPECT_GE(differing, 1);
    changed += differing == 1;
  }
  // Most decisions have no others that depend on them.
  EXPECT_GT(changed, 8);
}

TEST(Space, DecisionsOfAnotherSizeGoToTheNearestLegalOnes) {
  const ScheduleRequest request = request_for("sapphirerapids", 1);
  Decisions decisions;
  decisions.set("C.tile.vectors", int64_t{2});
  decisions.set("C.tile.rows", int64_t{14});
  decisions.set("Nobody.tile.rows", int64_t{14});
  std::string notes;
  const Result<Candidate> candidate = replay_decisions(Space(dense_workload(6, 64, 64), request), decisions, &notes);
  ASSERT_TRUE(candidate.ok());
  EXPECT_EQ(*candidate->decisions.find("C.tile.rows"), ChoiceValue(int64_t{6}));
  EXPECT_EQ(notes,
            "C.tile.rows: 14 is not legal here; 6 is the nearest that is\n"
            "Nobody.tile.rows: nothing asks for it here; 14 has no effect\n");
}

TEST(Space, CountingVisitsEveryPointOnce) {
  const Workload workload = dense_workload(2, 3, 2);
  // Brute force: all answers, by hand, of a space whose second question depends on the first.
  const Space declared(workload, request_for("znver3", 1), [](ScheduleDraft& draft) {
    const int64_t outer =
        draft.decide_number(std::move(Question("C", "a").offer(int64_t{1}).offer(int64_t{2}).offer(int64_t{3})));
    Question inner("C", "b");
    for (int64_t k = 0; k < outer; ++k) inner.offer(k);
    draft.decide_number(std::move(inner));
    if (outer == 2) draft.decide_yes("C", "c", false, 2);
  });
  std::set<std::string> seen;
  EXPECT_TRUE(enumerate(declared, 100, [&](const Candidate& c) { return seen.insert(to_string(c.decisions)).second; }));
  // a=1: b has one answer; a=2: two, and c two; a=3: three.
  EXPECT_EQ(seen.size(), 1u + 4u + 3u);
  const SpaceSummary summary = space_summary(declared);
  EXPECT_TRUE(summary.exact);
  EXPECT_EQ(summary.least, 8);

  // A derived space against itself: as many random points as it takes see no point that counting did not.
  const Space derived(reduce_workload(2, 40), request_for("znver3", 1));
  std::set<std::string> counted, drawn;
  ASSERT_TRUE(enumerate(derived, 20000, [&](const Candidate& c) {
    EXPECT_TRUE(counted.insert(to_string(c.decisions)).second);
    return true;
  }));
  Rng rng(1);
  for (size_t k = 0; k < 20 * counted.size(); ++k)
    drawn.insert(to_string(sample(derived, rng, Draw::kUniform).value().decisions));
  EXPECT_EQ(drawn, counted);
}

TEST(Space, LargeSpacesAreEstimated) {
  const SpaceSummary summary =
      space_summary(Space(conv_workload({1, 64, 14, 14, 64, 3, 1, 1}), request_for("sapphirerapids", 2)), 64);
  EXPECT_FALSE(summary.exact);
  EXPECT_GT(summary.estimate, 1000);
  EXPECT_NE(to_string(summary).find("Y: tile"), std::string::npos) << to_string(summary);
  EXPECT_EQ(to_json(summary)["decisions"].size(), summary.points.size());
}

/// A rule of somebody else: the outermost loop of a reduction cut by a declared choice.
class CutOuter : public SpaceRule {
 public:
  const char* name() const override { return "cut-outer"; }
  const char* doc() const override { return "the outermost loop cut"; }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    if (!draft.stage(site.root).stage->reducer) return {};
    return 0.5;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    const StageState& s = draft.stage(site.root);
    const std::string loop = s.loops[s.order[0]].name;
    const int64_t factor = draft.decide_number(
        std::move(Question(site.root, "cut").offer(int64_t{2}, 2).offer(int64_t{4}).offer(int64_t{8}, 2)));
    draft.schedule.split(site.root, loop, factor, loop + ".o", loop + ".i");
    return site.cone;
  }
};

TEST(Space, RulesOfOthers) {
  static const CutOuter cut;
  SpaceRules rules{&cut};
  rules.insert(rules.end(), built_in_rules().begin(), built_in_rules().end());
  const Space space(max_plus_workload(9, 6, 7), request_for("znver3", 1), rules);
  PreferredChooser chooser;
  const Result<Candidate> candidate = space.make(chooser);
  ASSERT_TRUE(candidate.ok());
  EXPECT_EQ(*candidate->decisions.find("C.rule"), ChoiceValue(std::string("cut-outer")));
  EXPECT_EQ(*candidate->decisions.find("C.cut"), ChoiceValue(int64_t{4}));
  EXPECT_FALSE(difference(candidate->schedule, {}).has_value());
}

TEST(Chooser, EveryPathOfFewOptionsIsDrawnByCost) {
  ChoicePoint point = std::move(Question("S", "w").offer(std::string("a"), 1).offer(std::string("b"), 2)).point();
  Rng rng(9);
  SamplingChooser chooser(rng, Draw::kByCost);
  int b = 0;
  for (int k = 0; k < 10000; ++k) b += static_cast<int>(chooser.choose(point));
  EXPECT_NEAR(b, 2000, 150);  // a quarter as often
}

TEST(Decisions, RefuseWhatTheyCannotRead) {
  for (const char* text : {"[]", "{\"a\": 1.5}", "{\"a\": {}}", "3"})
    EXPECT_EQ(decisions_from_json(parse_json(text).value()).failure().id, "bad-decisions") << text;
}

TEST(SpaceOf, ATranspositionThatWouldLoseItsLinesIsWalkedInBlocks) {
  const ScheduleRequest request = request_for("sapphirerapids", 1);
  const auto block_of = [&](int64_t rows, int64_t columns) {
    PreferredChooser preferred;
    const Candidate usual = Space(transpose_workload(rows, columns), request).make(preferred).value();
    const ChoiceValue* block = usual.decisions.find("T.block");
    return block ? std::get<int64_t>(*block) : int64_t{-1};
  };
  // 128 lines a page apart fall into one set of L1; 700 lines fill it. 333 lines stay.
  EXPECT_EQ(block_of(128, 1024), 16);
  EXPECT_EQ(block_of(700, 900), 16);
  EXPECT_EQ(block_of(333, 65), 0);
}

TEST(SpaceOf, APartOfASpaceHasTheSameDefaultAndOnlyItsOwnDecisions) {
  const ScheduleRequest request = request_for("sapphirerapids", 1);
  const Space whole(transpose_workload(96, 200), request);
  PreferredChooser preferred;
  const Candidate usual = whole.make(preferred).value();
  ASSERT_GE(usual.points.size(), 2u);
  const std::string open = usual.points[0].point.name();
  const Space part = whole.restricted({open});
  EXPECT_EQ(part.make(preferred).value().schedule.to_string(), usual.schedule.to_string());
  int64_t made = 0;
  EXPECT_TRUE(enumerate(part, 4096, [&](const Candidate& candidate) {
    ++made;
    EXPECT_EQ(candidate.points.size(), 1u);
    EXPECT_EQ(candidate.points[0].point.name(), open);
    return true;
  }));
  EXPECT_EQ(made, static_cast<int64_t>(usual.points[0].point.options.size()));
  EXPECT_EQ(whole.restricted({}).make(preferred).value().schedule.to_string(), usual.schedule.to_string());
}

}  // namespace
}  // namespace tensmith
