// Random legal schedules on random workloads: the loops, and the code made from them, compute what the workload says.
// TS_FUZZ_COUNT sets how many (default 500), TS_FUZZ_SEED the first.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "schedule/primitive_def.h"
#include "tests/unit/schedule/random_schedules.h"

namespace tensmith {
namespace {

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

// Schedules whose steps are legal one by one, but that no code can be made for: refused with a reason while lowering.
const std::set<std::string> kRefusals = {
    "vectorize-extent", "vectorize-race",         "vectorize-body",    "unroll-limit",      "register-size",
    "register-index",   "register-overlap",       "register-captured", "stack-too-large",   "parallel-workspace",
    "attach-illegal",   "shift-inside-reduction", "window-illegal",    "prefetch-no-sweep", "prefetch-no-memory"};

struct Outcome {
  std::string wrong;    ///< empty: right
  std::string refused;  ///< id of the refusal
};

Outcome run(const Workload& workload, const std::vector<int64_t>& dims, const std::vector<Step>& steps, bool code,
            int* unproven = nullptr, int* races = nullptr) {
  try {
    Schedule schedule(workload);
    for (const Step& step : steps)
      if (const Result<void> ok = schedule.try_apply(step); !ok) return {"", "illegal"};
    RunOptions options;
    options.code = code;
    options.unproven = unproven;
    options.races = races;
    if (auto wrong = difference(schedule, dims, options)) return {*wrong, ""};
    return {};
  } catch (const Error& error) {
    if (kRefusals.count(error.id())) return {"", error.id()};
    return {error.what(), ""};
  }
}

/// The steps without all that can be left out while the result stays wrong.
std::vector<Step> shrink(const Workload& workload, const std::vector<int64_t>& dims, std::vector<Step> steps,
                         bool code) {
  for (size_t k = steps.size(); k-- > 0;) {
    std::vector<Step> fewer = steps;
    fewer.erase(fewer.begin() + static_cast<int64_t>(k));
    if (!run(workload, dims, fewer, code).wrong.empty()) steps = fewer;
  }
  return steps;
}

std::string text_of(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) text += "  " + to_string(step) + "\n";
  return text;
}

TEST(RandomScheduleTest, ComputesWhatTheWorkloadSays) {
  const int64_t first = setting("TS_FUZZ_SEED", 1), count = setting("TS_FUZZ_COUNT", 500);
  std::map<std::string, int64_t> refusals;
  std::map<std::string, int64_t> used;
  int64_t failures = 0, longest = 0;
  for (int64_t seed = first; seed < first + count && failures < setting("TS_FUZZ_FAILURES", 5); ++seed) {
    Rng rng(static_cast<uint64_t>(seed), "random schedule");
    const SizedWorkload sized = random_workload(rng);
    std::vector<Step> steps = random_schedule(sized.workload, static_cast<int>(rng.between(2, 14)), rng).steps();
    // Code generation costs most, so only a part of the schedules goes through it.
    const bool code = seed % 4 == 0;
    int unproven = 0, races = 0;
    Outcome outcome = run(sized.workload, sized.dims, steps, code, &unproven, &races);
    refusals["unproven"] += unproven;
    refusals["races"] += races;
    if (std::getenv("TS_FUZZ_SHOW") && (races > 0 || unproven > 0))
      std::cout << "seed " << seed << (races ? " races" : " unproven") << "\n";
    // What cannot be lowered is lowered without its last steps.
    for (bool once = true; !outcome.refused.empty() && !steps.empty(); once = false) {
      if (once) ++refusals[outcome.refused];
      steps.pop_back();
      outcome = run(sized.workload, sized.dims, steps, code);
    }
    longest = std::max<int64_t>(longest, static_cast<int64_t>(steps.size()));
    for (const Step& step : steps) ++used[step.primitive];
    if (outcome.wrong.empty()) continue;
    ++failures;
    const std::vector<Step> fewer = shrink(sized.workload, sized.dims, steps, code);
    std::string loops;
    try {
      Schedule schedule(sized.workload);
      for (const Step& step : fewer) schedule.apply(step);
      loops = lowered_text(schedule, "loop_nests");
    } catch (const Error& error) {
      loops = error.what();
    }
    ADD_FAILURE() << "seed " << seed << (code ? " (with code)" : "") << ": "
                  << run(sized.workload, sized.dims, fewer, code).wrong << "\nsteps:\n"
                  << text_of(fewer) << "workload:\n"
                  << to_text(sized.workload) << "loops:\n"
                  << loops;
  }
  std::string summary;
  for (const auto& [id, n] : refusals) summary += id + " " + std::to_string(n) + ", ";
  for (const auto& [id, n] : used) summary += id + " " + std::to_string(n) + ", ";
  RecordProperty("summary", summary);
  if (std::getenv("TS_FUZZ_COUNT")) std::cout << summary << "\n";
  if (count < 200) return;
  // The test is worth something only when most schedules go through and every primitive takes part.
  EXPECT_GE(longest, 8);
  for (const PrimitiveDef* def : all_primitives()) EXPECT_GE(used[def->name], 3) << def->name;
}

}  // namespace
}  // namespace tensmith
