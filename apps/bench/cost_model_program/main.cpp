/// Judges the cost models: how well they order measured candidates of tasks that they did not learn from.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/bench/cost_model_program/judge.h"
#include "apps/bench/cost_model_program/samples.h"
#include "runtime/base/error.h"
#include "schedule/trace.h"

namespace tensmith::bench {
namespace {

struct Options {
  std::string json, filter, samples, save;
  int count = 48;
  uint64_t seed = 1;
};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

[[noreturn]] void fail(const Failure& failure) { throw UserError(failure.id, failure.message); }

int main_with(const Options& options) {
  const Target& target = Target::host();
  const std::vector<JudgedTask> tasks = judged_tasks(target);
  std::vector<TimedCandidate> timed;
  if (!options.samples.empty()) {
    Result<std::vector<TimedCandidate>> loaded = load_candidates(options.samples);
    if (!loaded) fail(loaded.failure());
    timed = std::move(loaded).value();
  } else {
    for (const JudgedTask& task : tasks) {
      if (task.name.find(options.filter) == std::string::npos) continue;
      const auto warn = [](const std::string& text) { std::fprintf(stderr, "cost_model: %s\n", text.c_str()); };
      const std::vector<TimedCandidate> its = measure_candidates(task, options.count, options.seed, warn);
      timed.insert(timed.end(), its.begin(), its.end());
      std::fprintf(stderr, "measured %zu candidates of %s\n", its.size(), task.name.c_str());
    }
  }
  if (!options.save.empty())
    if (const Result<void> ok = save_candidates(options.save, timed); !ok) fail(ok.failure());

  std::map<std::string, const JudgedTask*> by_name;
  for (const JudgedTask& task : tasks) by_name[task.name] = &task;
  std::vector<CostSample> samples;
  double lowering_ms = 0, features_ms = 0;
  for (const TimedCandidate& candidate : timed) {
    const auto task = by_name.find(candidate.task);
    if (task == by_name.end() || candidate.task.find(options.filter) == std::string::npos) continue;
    const Result<Schedule> schedule =
        replay(task->second->workload, Trace{{}, candidate.steps}, ReplayOn::kAnyWorkload);
    if (!schedule) continue;  // of an earlier version
    const auto start = std::chrono::steady_clock::now();
    const LoopFunction nests = nests_of(*schedule);
    const double lowered = ms_since(start);
    samples.push_back({candidate.task, features_of(nests, target, task->second->request.threads), candidate.us});
    features_ms += ms_since(start) - lowered;
    lowering_ms += lowered;
  }
  if (samples.empty()) fail({"cannot-read", "cost_model: candidates: expected those of at least one task, got none"});
  const double n = static_cast<double>(samples.size());
  std::printf("%zu candidates; lowering %.3f ms, features %.3f ms each\n", samples.size(), lowering_ms / n,
              features_ms / n);

  const std::vector<Judgement> judgements = judge_models(samples, options.seed);
  std::map<std::string, std::map<std::string, const Judgement*>> table;
  for (const Judgement& j : judgements) table[j.task][j.model] = &j;
  const char* models[] = {"analytic", "xgboost", "blend", "random"};
  std::printf("pairwise accuracy (among those up to twice as slow as the best)\n%-34s", "task");
  for (const char* model : models) std::printf(" %15s", model);
  std::printf("\n");
  for (const auto& [task, row] : table) {
    std::printf("%-34s", task.c_str());
    for (const char* model : models) {
      const auto at = row.find(model);
      if (at == row.end()) std::printf(" %15s", "-");
      else std::printf("   %.3f (%.3f)", at->second->quality.pairwise, at->second->near_pairwise);
    }
    std::printf("\n");
  }
  Json means;
  for (const char* model : models) {
    RankQuality sum;
    sum.pairwise = 0;
    double near = 0;
    for (const Judgement& j : judgements) {
      if (j.model != model) continue;
      sum.pairwise += j.quality.pairwise;
      sum.correlation += j.quality.correlation;
      sum.recall_8 += j.quality.recall_8;
      sum.top_1 += j.quality.top_1;
      sum.top_8 += j.quality.top_8;
      near += j.near_pairwise;
      ++sum.tasks;
    }
    const double count = std::max(1, sum.tasks);
    std::printf(
        "%-9s pairwise %.3f (%.3f), rank correlation %.3f, recall of the best 8 %.3f, best of top 1 %.3f, of "
        "top 8 %.3f\n",
        model, sum.pairwise / count, near / count, sum.correlation / count, sum.recall_8 / count, sum.top_1 / count,
        sum.top_8 / count);
    means[model] = {{"pairwise", sum.pairwise / count},
                    {"pairwise_near_best", near / count},
                    {"correlation", sum.correlation / count},
                    {"recall_8", sum.recall_8 / count},
                    {"top_1", sum.top_1 / count},
                    {"top_8", sum.top_8 / count},
                    {"tasks", sum.tasks}};
  }
  for (size_t known : {8, 16, 32}) {
    // Fewer than 8 others say nothing.
    if (n / static_cast<double>(std::max(1, static_cast<int>(table.size()))) < static_cast<double>(known) + 8) continue;
    const double accuracy = accuracy_with_known(samples, known, options.seed);
    std::printf("xgboost that has seen %zu of a task's candidates: pairwise %.3f on the others\n", known, accuracy);
    means["xgboost"]["pairwise_with_" + std::to_string(known)] = accuracy;
  }
  if (options.json.empty()) return 0;
  Json json =
      json_header({"tensmith.bench-cost-model/1", to_string(target), 0, static_cast<int64_t>(options.seed), {}});
  json["candidates"] = samples.size();
  json["lowering_ms"] = lowering_ms / n;
  json["features_ms"] = features_ms / n;
  json["means"] = means;
  json["tasks"] = to_json(judgements);
  const Result<void> ok = write_json(options.json, json);
  if (!ok) fail(ok.failure());
  return 0;
}

}  // namespace
}  // namespace tensmith::bench

int main(int argc, char** argv) {
  tensmith::bench::Options options;
  std::string count, seed;
  for (int k = 1; k < argc; ++k) {
    const auto value = [&](const char* flag, std::string& into) {
      if (std::strcmp(argv[k], flag) != 0 || k + 1 >= argc) return false;
      into = argv[++k];
      return true;
    };
    if (value("--json", options.json) || value("--filter", options.filter) || value("--samples", options.samples) ||
        value("--save", options.save) || value("--count", count) || value("--seed", seed))
      continue;
    std::fprintf(
        stderr,
        "cost_model: unexpected argument '%s'; usage: cost_model [--count N] [--filter TEXT] [--seed S] [--save "
        "FILE | --samples FILE] [--json FILE]\n",
        argv[k]);
    return 2;
  }
  if (!count.empty()) options.count = std::max(2, std::atoi(count.c_str()));
  if (!seed.empty()) options.seed = std::strtoull(seed.c_str(), nullptr, 10);
  try {
    return tensmith::bench::main_with(options);
  } catch (const tensmith::Error& e) {
    std::fprintf(stderr, "cost_model: %s\n", e.what());
    return tensmith::exit_code(e.kind());
  }
}
