#include "autotune/cost_model/blend_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "autotune/cost_model/model_file.h"
#include "autotune/cost_model/ranking.h"

namespace tensmith {

namespace {

/// What is left of a round's pairs when the next one comes.
constexpr double kFading = 0.7;
/// Differences of accuracy at which one of them alone counts.
constexpr double kDecisive = 0.15;
/// Pairs before which the second model is not trusted: a round of eight candidates and a half.
constexpr double kEnoughPairs = 40;

}  // namespace

BlendCostModel::BlendCostModel(std::unique_ptr<CostModel> first, std::unique_ptr<CostModel> second)
    : first_(std::move(first)), second_(std::move(second)) {}

void BlendCostModel::fit(std::span<const CostSample> samples) {
  first_->fit(samples);
  second_->fit(samples);
}

void BlendCostModel::observe(std::span<const CostSample> recent) {
  pairs_ *= kFading;
  first_right_ *= kFading;
  second_right_ *= kFading;
  const std::vector<RankedTask> first = rank_samples(*first_, recent), second = rank_samples(*second_, recent);
  for (size_t t = 0; t < first.size(); ++t) {
    const auto n = static_cast<double>(first[t].us.size());
    if (n < 2) continue;
    const double pairs = n * (n - 1) / 2;
    pairs_ += pairs;
    first_right_ += pairs * pairwise_accuracy(first[t]);
    second_right_ += pairs * pairwise_accuracy(second[t]);
  }
}

double BlendCostModel::weight() const {
  const double ahead = std::clamp(0.5 + (second_accuracy() - first_accuracy()) / (2 * kDecisive), 0.0, 1.0);
  return ahead * std::min(1.0, pairs_ / kEnoughPairs);
}

std::vector<double> BlendCostModel::predict(std::span<const KernelFeatures> programs) const {
  std::vector<double> scores = first_->predict(programs);
  const std::vector<double> second = second_->predict(programs);
  const double share = weight();
  for (size_t p = 0; p < scores.size(); ++p) scores[p] = (1 - share) * scores[p] + share * second[p];
  return scores;
}

std::string BlendCostModel::save_text() const {
  Json json;
  json["pairs"] = pairs_;
  json["first_right"] = first_right_;
  json["second_right"] = second_right_;
  json["first"] = {first_->name(), first_->save_text()};
  json["second"] = {second_->name(), second_->save_text()};
  return json.dump();
}

Result<std::unique_ptr<CostModel>> BlendCostModel::parse(const std::string& text) {
  const Failure damaged{"cost-model-damaged", "blend model: expected two models and what was observed of them"};
  const Result<Json> json = parse_json(text);
  if (!json || !json->is_object()) return damaged;
  for (const char* key : {"pairs", "first_right", "second_right"})
    if (!json->contains(key) || !(*json)[key].is_number()) return damaged;
  std::unique_ptr<CostModel> parts[2];
  int k = 0;
  for (const char* key : {"first", "second"}) {
    if (!json->contains(key)) return damaged;
    const Json& part = (*json)[key];
    if (!part.is_array() || part.size() != 2 || !part[0].is_string() || !part[1].is_string() || part[0] == "blend")
      return damaged;
    Result<std::unique_ptr<CostModel>> model = parse_cost_model(part[0].get<std::string>(), part[1].get<std::string>());
    if (!model) return model.failure();
    parts[k++] = std::move(model).value();
  }
  auto blend = std::make_unique<BlendCostModel>(std::move(parts[0]), std::move(parts[1]));
  blend->pairs_ = (*json)["pairs"].get<double>();
  blend->first_right_ = (*json)["first_right"].get<double>();
  blend->second_right_ = (*json)["second_right"].get<double>();
  return std::unique_ptr<CostModel>(std::move(blend));
}

}  // namespace tensmith
