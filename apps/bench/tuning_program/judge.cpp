#include "apps/bench/tuning_program/judge.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "autotune/cost_model/blend_model.h"
#include "autotune/cost_model/simple_models.h"
#include "autotune/cost_model/xgboost_model.h"

namespace tensmith::bench {

namespace {

/// Each learned model sees four fifths of the other tasks' names; a fold's tasks are judged by the same model.
constexpr size_t kFolds = 5;
/// What a search has measured of a task before the blend is judged on the rest.
constexpr size_t kObserved = 12;

RankedTask near_best(const RankedTask& task) {
  RankedTask near{task.task, {}, {}};
  const double best = *std::min_element(task.us.begin(), task.us.end());
  for (size_t k = 0; k < task.us.size(); ++k) {
    if (task.us[k] > 2 * best) continue;
    near.us.push_back(task.us[k]);
    near.scores.push_back(task.scores[k]);
  }
  return near;
}

std::vector<std::string> task_names(const std::vector<CostSample>& samples) {
  std::vector<std::string> names;
  for (const CostSample& s : samples)
    if (std::find(names.begin(), names.end(), s.task) == names.end()) names.push_back(s.task);
  return names;
}

std::vector<CostSample> of_task(const std::vector<CostSample>& samples, const std::string& task) {
  std::vector<CostSample> out;
  for (const CostSample& s : samples)
    if (s.task == task) out.push_back(s);
  return out;
}

void add(std::vector<Judgement>& out, const CostModel& model, const std::vector<CostSample>& samples) {
  for (const RankedTask& task : rank_samples(model, samples))
    if (task.us.size() > 1)
      out.push_back({model.name(), task.task, rank_quality({&task, 1}), pairwise_accuracy(near_best(task))});
}

}  // namespace

std::vector<Judgement> judge_models(const std::vector<CostSample>& samples, uint64_t seed) {
  std::vector<Judgement> out;
  const std::vector<std::string> names = task_names(samples);
  XgboostOptions options;
  options.seed = seed;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<CostSample> others;
    std::vector<std::string> judged;
    for (size_t t = 0; t < names.size(); ++t) {
      if (t % kFolds == fold) {
        judged.push_back(names[t]);
        continue;
      }
      const std::vector<CostSample> its = of_task(samples, names[t]);
      others.insert(others.end(), its.begin(), its.end());
    }
    if (judged.empty()) continue;
    XgboostCostModel learned(options);
    learned.fit(others);
    const std::string text = learned.save_text();
    for (const std::string& name : judged) {
      std::vector<CostSample> its = of_task(samples, name);
      add(out, AnalyticCostModel(), its);
      add(out, learned, its);
      add(out, RandomCostModel(seed), its);
      if (its.size() < 2 * kObserved) continue;
      BlendCostModel blend(std::make_unique<AnalyticCostModel>(),
                           std::make_unique<XgboostCostModel>(XgboostCostModel::parse(text).value()));
      blend.observe({its.data(), kObserved});
      its.erase(its.begin(), its.begin() + kObserved);
      add(out, blend, its);
    }
  }
  return out;
}

double accuracy_with_known(const std::vector<CostSample>& samples, size_t known, uint64_t seed) {
  const std::vector<std::string> names = task_names(samples);
  XgboostOptions options;
  options.seed = seed;
  double sum = 0;
  int tasks = 0;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<CostSample> training, rest;
    for (size_t t = 0; t < names.size(); ++t) {
      const std::vector<CostSample> its = of_task(samples, names[t]);
      const size_t seen = t % kFolds == fold ? std::min(known, its.size()) : its.size();
      training.insert(training.end(), its.begin(), its.begin() + static_cast<std::ptrdiff_t>(seen));
      rest.insert(rest.end(), its.begin() + static_cast<std::ptrdiff_t>(seen), its.end());
    }
    XgboostCostModel learned(options);
    learned.fit(training);
    for (const RankedTask& task : rank_samples(learned, rest)) {
      if (task.us.size() < 8) continue;
      sum += pairwise_accuracy(task);
      ++tasks;
    }
  }
  return tasks ? sum / tasks : 0.5;
}

Json to_json(const std::vector<Judgement>& judgements) {
  Json rows = Json::array();
  for (const Judgement& j : judgements)
    rows.push_back({{"model", j.model},
                    {"task", j.task},
                    {"pairwise", j.quality.pairwise},
                    {"pairwise_near_best", j.near_pairwise},
                    {"correlation", j.quality.correlation},
                    {"recall_8", j.quality.recall_8},
                    {"top_1", j.quality.top_1},
                    {"top_8", j.quality.top_8}});
  return rows;
}

}  // namespace tensmith::bench
