#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/bench/tuning_program/draw.h"
#include "apps/bench/tuning_program/judge.h"
#include "apps/bench/tuning_program/parts.h"
#include "autotune/search/model_scorer.h"
#include "schedule/lower/lowering.h"

namespace tensmith::bench {

namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Json mean_of(const std::vector<Judgement>& judgements, const std::string& model) {
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
  const double n = std::max(1, sum.tasks);
  return {{"pairwise", sum.pairwise / n},
          {"pairwise_near_best", near / n},
          {"correlation", sum.correlation / n},
          {"recall_8", sum.recall_8 / n},
          {"top_1", sum.top_1 / n},
          {"top_8", sum.top_8 / n},
          {"tasks", sum.tasks}};
}

}  // namespace

Json judge(const PartOptions& options, CostStore& store) {
  std::vector<CostSample> samples;
  double lowering_ms = 0, features_ms = 0;
  for (const std::string& op : options.ops) {
    BenchTask task(op, options.threads, store);
    for (const auto& candidate : drawn_candidates(task, options.count)) {
      const double cost = task.cost(*candidate);
      if (!std::isfinite(cost)) continue;
      const auto start = std::chrono::steady_clock::now();
      const LoopFunction nests = nests_of(candidate->schedule);
      const double lowered = ms_since(start);
      const ScheduleRequest& request = task.task.request;
      samples.push_back({op, features_of(nests, request.target, request.threads), cost});
      features_ms += ms_since(start) - lowered;
      lowering_ms += lowered;
    }
  }
  const std::vector<Judgement> judgements = judge_models(samples, 1);
  Json json;
  const double n = std::max(1.0, static_cast<double>(samples.size()));
  json["candidates"] = samples.size();
  json["lowering_ms"] = lowering_ms / n;
  json["features_ms"] = features_ms / n;
  for (const char* model : {"analytic", "xgboost", "blend", "random"})
    json["means"][model] = mean_of(judgements, model);
  for (const size_t known : {8, 16, 32}) {
    // Fewer than 8 others say nothing.
    if (static_cast<size_t>(options.count) < known + 8) continue;
    json["means"]["xgboost"]["pairwise_with_" + std::to_string(known)] = accuracy_with_known(samples, known, 1);
  }
  json["tasks"] = to_json(judgements);
  return json;
}

}  // namespace tensmith::bench
