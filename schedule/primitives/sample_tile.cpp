#include <algorithm>

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

constexpr int64_t kLargestExtent = int64_t{1} << 30;

/// The extent of the loop that is tiled. Errors: sample-extent.
Result<int64_t> extent_of(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const std::optional<int64_t> extent = constant_extent(stage, stage.find_loop(step.text("loop")));
  if (extent && *extent >= 1 && *extent <= kLargestExtent) return *extent;
  return Failure{"sample-extent", "loop " + step.text("loop") + " of " + stage.name +
                                      " has no constant extent from 1 to 2^30, so that nothing can be said to divide "
                                      "it; use split"};
}

/// What must hold whatever is decided.
Result<void> check_arguments(const ScheduleState& state, const Step& step) {
  if (Result<void> ok = check_has_loops(*state.find(step.text("stage"))); !ok) return ok;
  if (step.texts("names").size() < 2)
    return Failure{"bad-step-argument", "sample_tile: names: expected at least two names of new loops"};
  if (step.number("max_inner") < 1)
    return Failure{"bad-factor", "max_inner: expected at least 1, got " + std::to_string(step.number("max_inner"))};
  if (const Result<int64_t> extent = extent_of(state, step); !extent) return extent.failure();
  return {};
}

/// Splits from the innermost loop outwards; what is left keeps the name of the loop until the end.
std::vector<Step> splits_of(const Step& step) {
  const std::string &stage = step.text("stage"), &loop = step.text("loop");
  const std::vector<std::string>& names = step.texts("names");
  const std::vector<int64_t>& factors = step.numbers("decision");
  std::vector<Step> splits;
  for (size_t k = names.size() - 1; k >= 1; --k)
    splits.push_back({"split",
                      {{"stage", stage},
                       {"loop", loop},
                       {"factor", factors[k]},
                       {"outer", k == 1 ? names[0] : loop},
                       {"inner", names[k]},
                       {"tail", std::string("peel")}}});
  return splits;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  if (Result<void> ok = check_arguments(state, step); !ok) return ok;
  const int64_t extent = extent_of(state, step).value();
  const std::vector<int64_t>& factors = step.numbers("decision");
  const auto refuse = [&](const std::string& expected) {
    std::string got;
    for (const int64_t factor : factors) got += (got.empty() ? "" : ",") + std::to_string(factor);
    return Failure{"bad-decision",
                   "decision: expected " + expected + ", got " + (got.empty() ? "none; leave it out to draw it" : got)};
  };
  if (factors.size() != step.texts("names").size())
    return refuse(std::to_string(step.texts("names").size()) + " factors, one for each name");
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor < 1 || factor > extent || extent % factor != 0 || product > extent / factor)
      return refuse("factors whose product is " + std::to_string(extent));
    product *= factor;
  }
  if (product != extent) return refuse("factors whose product is " + std::to_string(extent));
  if (factors.back() > step.number("max_inner"))
    return refuse("an innermost factor of at most " + std::to_string(step.number("max_inner")));
  const Result<ScheduleState> next = after_steps(state, splits_of(step));
  return next.ok() ? Result<void>() : Result<void>(next.failure());
}

Result<std::vector<int64_t>> draw(const ScheduleState& state, const Step& step, Rng& rng) {
  if (Result<void> ok = check_arguments(state, step); !ok) return ok.failure();
  int64_t left = extent_of(state, step).value();
  std::vector<int64_t> factors(step.texts("names").size(), 1);
  // The innermost first, since only it is limited.
  for (size_t k = factors.size() - 1; k >= 1; --k) {
    const int64_t limit = k + 1 == factors.size() ? std::min(left, step.number("max_inner")) : left;
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d * d <= left; ++d)
      if (left % d == 0)
        for (const int64_t divisor : {d, left / d})
          if (divisor <= limit && (divisors.empty() || divisors.back() != divisor)) divisors.push_back(divisor);
    factors[k] = divisors[rng.below(divisors.size())];
    left /= factors[k];
  }
  factors[0] = left;
  return factors;
}

void apply(ScheduleState& state, const Step& step) { state = after_steps(state, splits_of(step)).value(); }

}  // namespace

const PrimitiveDef& sample_tile_primitive() {
  static const PrimitiveDef def{
      .name = "sample_tile",
      .doc =
          "Turns a loop of constant extent into several whose extents multiply to it, drawn at random: the innermost\n"
          "among the divisors up to `max_inner`, each further one among the divisors of what is left. The decision is\n"
          "recorded with the step: replay uses it, mutate (schedule/trace.h) draws another one.\n"
          "Rewrite: for i in 24  -->  for a in 3: for b in 2: for c in 4: i = (a * 2 + b) * 4 + c",
      .halide = "none",
      .tvm = "sample_perfect_tile with split",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "the loop to split"},
               {"names", ArgKind::kNewNames, "names of the new loops, outermost first"},
               {"max_inner", ArgKind::kInt, "the largest extent of the innermost loop", "16"},
               {"decision", ArgKind::kInts, "extents of the new loops; none: drawn", ""}},
      .check = check,
      .apply = apply,
      .samples = {{"softmax", {"sample_tile stage=m loop=r0 names=ro,ri"}},
                  {"complex_product", {"sample_tile stage=C loop=i0 names=a,b,c max_inner=2 decision=2,1,2"}}},
      .keeps_places = true,
      .draw = draw};
  return def;
}

}  // namespace tensmith
