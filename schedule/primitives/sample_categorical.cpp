#include <algorithm>
#include <numeric>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

constexpr int64_t kLargestWeight = int64_t{1} << 30;

/// What must hold whatever is decided.
Result<void> check_arguments(const ScheduleState& state, const Step& step) {
  if (Result<void> ok = check_has_loops(*state.find(step.text("stage"))); !ok) return ok;
  const std::vector<int64_t>&values = step.numbers("values"), &weights = step.numbers("weights");
  if (values.empty()) return Failure{"bad-step-argument", "sample_categorical: values: expected at least one number"};
  if (!weights.empty()) {
    const auto outside = [](int64_t w) { return w < 0 || w > kLargestWeight; };
    if (weights.size() != values.size() || std::any_of(weights.begin(), weights.end(), outside) ||
        std::all_of(weights.begin(), weights.end(), [](int64_t w) { return w == 0; }))
      return Failure{"bad-sample-weights",
                     "weights: expected one number from 0 to 2^30 for each of the " + std::to_string(values.size()) +
                         " values, not all of them 0; leave them out to draw each value as often"};
  }
  const std::string& key = step.text("key");
  if (Result<void> ok = check_key(key); !ok || is_note(key)) return ok;
  for (const int64_t value : values)
    if (Result<void> ok = check_mark(key, value); !ok) return ok;
  return {};
}

Result<void> check(const ScheduleState& state, const Step& step) {
  if (Result<void> ok = check_arguments(state, step); !ok) return ok;
  const std::vector<int64_t>& decision = step.numbers("decision");
  const auto count = static_cast<int64_t>(step.numbers("values").size());
  if (decision.size() == 1 && decision[0] >= 0 && decision[0] < count) return {};
  return Failure{"bad-decision", "decision: expected the number of a value, 0 to " + std::to_string(count - 1) +
                                     "; leave it out to draw it"};
}

Result<std::vector<int64_t>> draw(const ScheduleState& state, const Step& step, Rng& rng) {
  if (Result<void> ok = check_arguments(state, step); !ok) return ok.failure();
  std::vector<int64_t> weights = step.numbers("weights");
  if (weights.empty()) weights.assign(step.numbers("values").size(), 1);
  const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  auto left = static_cast<int64_t>(rng.below(static_cast<uint64_t>(total)));
  int64_t chosen = 0;
  while (left >= weights[static_cast<size_t>(chosen)]) left -= weights[static_cast<size_t>(chosen++)];
  return std::vector<int64_t>{chosen};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.loops[stage.find_loop(step.text("loop"))].attrs[step.text("key")] =
      step.numbers("values")[static_cast<size_t>(step.numbers("decision")[0])];
}

}  // namespace

const PrimitiveDef& sample_categorical_primitive() {
  static const PrimitiveDef def{
      .name = "sample_categorical",
      .doc =
          "Notes one of several numbers under a key on a loop, as annotate does, drawn at random in proportion to\n"
          "their weights. The decision is recorded with the step: replay uses it, mutate draws another one.\n"
          "Rewrite: for i  -->  for i @(key = one of the values)",
      .halide = "none",
      .tvm = "sample_categorical with annotate",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "the loop"},
               {"key", ArgKind::kText, "what is noted: unroll, min_chunk, piece or note.NAME"},
               {"values", ArgKind::kInts, "the numbers to choose from"},
               {"weights", ArgKind::kInts, "how often each is drawn against the others; none: as often", ""},
               {"decision", ArgKind::kInts, "position of the value, from 0; none: drawn", ""}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"sample_categorical stage=C loop=r0 key=unroll values=1,2,4 weights=1,2,1"}},
                  {"dense", {"sample_categorical stage=C loop=r0 key=unroll values=1,2,4 decision=2"}}},
      .keeps_places = true,
      .draw = draw};
  return def;
}

}  // namespace tensmith
