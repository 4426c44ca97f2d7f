#include "autotune/cost_model/xgboost_model.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/rng.h"

namespace tensmith {

namespace {

constexpr size_t kPooledNests = 3;
constexpr size_t kLeastSamples = 8;
/// Of a task: enough for each candidate to meet some dozen others, few enough for thousands of candidates.
constexpr size_t kPairsPerSample = 24;
/// Units: log2; how slow a candidate is beyond that matters to nobody, but would take most of the trees.
constexpr double kSlowest = 5;
/// Of the logistic loss: a score that is right by 0.15 (a tenth of the time) is nearly right enough.
constexpr double kPairSteepness = 6;
/// Trees of each round, whose mean counts: each sees other columns and samples.
constexpr int kTreesARound = 4;
/// A loaded model with so many rounds gets half as many new ones, so that one that is handed on and on stays small.
constexpr double kManyRounds = 480;
/// Of new rounds on top of a loaded model: few samples are not to talk it out of what it knows.
constexpr double kSamplesARound = 2;
constexpr int kLeastRounds = 10;

void check_xgboost(int code) {
  if (code != 0) throw InternalError(std::string("xgboost: ") + XGBGetLastError());
}

/// A row for each program: the kernel's features and those of the heaviest nests; what is missing is 0.
struct ProgramMatrix {
  explicit ProgramMatrix(std::span<const KernelFeatures> programs) : rows(programs.size()) {
    const size_t nest = nest_feature_names().size(), kernel = kernel_feature_names().size();
    columns = kernel + nest * kPooledNests;
    values.resize(rows * columns, 0.0F);
    for (size_t p = 0; p < rows; ++p) {
      const KernelFeatures& f = programs[p];
      TS_CHECK(f.kernel.size() == kernel && f.nests.size() % nest == 0)
          << "features: expected rows of " << kernel << " and " << nest << " columns";
      float* row = values.data() + p * columns;
      std::copy(f.kernel.begin(), f.kernel.end(), row);
      std::copy_n(f.nests.begin(), std::min(f.nests.size(), nest * kPooledNests), row + kernel);
    }
  }

  std::vector<float> values;
  size_t rows = 0, columns = 0;
};

class DMatrix {
 public:
  explicit DMatrix(const ProgramMatrix& matrix) {
    check_xgboost(XGDMatrixCreateFromMat(matrix.values.data(), matrix.rows, matrix.columns, std::nanf(""), &handle_));
  }
  ~DMatrix() { XGDMatrixFree(handle_); }
  DMatrix(const DMatrix&) = delete;
  DMatrix& operator=(const DMatrix&) = delete;
  DMatrixHandle get() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

struct Pair {
  int better, worse;
  double weight;
};

}  // namespace

class XgboostCostModel::Booster {
 public:
  explicit Booster(const DMatrix* data) {
    const DMatrixHandle handle = data ? data->get() : nullptr;
    check_xgboost(XGBoosterCreate(data ? &handle : nullptr, data ? 1 : 0, &handle_));
    set("verbosity", "0");
    set("nthread", "1");
  }
  ~Booster() { XGBoosterFree(handle_); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  void set(const char* key, const std::string& value) { check_xgboost(XGBoosterSetParam(handle_, key, value.c_str())); }
  void boost(const DMatrix& data, std::vector<float>& gradient, std::vector<float>& hessian) {
    check_xgboost(XGBoosterBoostOneIter(handle_, data.get(), gradient.data(), hessian.data(), gradient.size()));
  }
  /// Adds what the trees say of each row.
  void add(const DMatrix& data, std::vector<double>& scores) const {
    bst_ulong const* shape = nullptr;
    bst_ulong dim = 0;
    float const* values = nullptr;
    check_xgboost(XGBoosterPredictFromDMatrix(
        handle_, data.get(),
        R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})", &shape,
        &dim, &values));
    for (size_t r = 0; r < scores.size(); ++r) scores[r] += values[r];
  }
  std::string save() const {
    bst_ulong size = 0;
    char const* bytes = nullptr;
    check_xgboost(XGBoosterSaveModelToBuffer(handle_, R"({"format": "json"})", &size, &bytes));
    return {bytes, size};
  }
  int rounds() const {
    int count = 0;
    check_xgboost(XGBoosterBoostedRounds(handle_, &count));
    return count;
  }
  bool load(const std::string& text) { return XGBoosterLoadModelFromBuffer(handle_, text.data(), text.size()) == 0; }

 private:
  BoosterHandle handle_ = nullptr;
};

XgboostCostModel::XgboostCostModel(XgboostOptions options) : options_(options) {}
XgboostCostModel::~XgboostCostModel() = default;
XgboostCostModel::XgboostCostModel(XgboostCostModel&&) noexcept = default;
XgboostCostModel& XgboostCostModel::operator=(XgboostCostModel&&) noexcept = default;

void XgboostCostModel::fit(std::span<const CostSample> samples) {
  booster_.reset();
  if (!loaded_.empty()) booster_ = booster_of(loaded_);
  std::vector<KernelFeatures> programs;
  std::vector<double> target;  // log2 of the speed against the task's best
  std::map<std::string, std::vector<int>> tasks;
  for (const CostSample& sample : samples) {
    if (!(sample.us > 0) || !std::isfinite(sample.us)) continue;
    tasks[sample.task].push_back(static_cast<int>(programs.size()));
    programs.push_back(sample.features);
    target.push_back(-std::log2(sample.us));
  }
  if (programs.size() < kLeastSamples) return;
  Rng rng(options_.seed, "pairs");
  std::vector<Pair> pairs;
  std::vector<double> start(programs.size(), 0);
  for (auto& [task, members] : tasks) {
    double best = -1e300;
    for (int m : members) best = std::max(best, target[static_cast<size_t>(m)]);
    for (int m : members) {
      double& t = target[static_cast<size_t>(m)];
      t = std::max(t - best, -kSlowest);
      start[static_cast<size_t>(m)] = -std::log2(programs[static_cast<size_t>(m)].analytic_cycles);
    }
    const size_t all = members.size() * (members.size() - 1) / 2;
    const auto add = [&](int a, int b) {
      const double difference = target[static_cast<size_t>(a)] - target[static_cast<size_t>(b)];
      if (std::abs(difference) < 0.015) return;  // within the noise of measuring
      pairs.push_back({difference > 0 ? a : b, difference > 0 ? b : a, std::min(1.0, 0.3 + std::abs(difference))});
    };
    if (all <= members.size() * kPairsPerSample) {
      for (size_t a = 0; a < members.size(); ++a)
        for (size_t b = a + 1; b < members.size(); ++b) add(members[a], members[b]);
    } else {
      for (size_t k = 0; k < members.size() * kPairsPerSample; ++k) {
        const size_t a = rng.below(members.size()), b = rng.below(members.size());
        if (a != b) add(members[a], members[b]);
      }
    }
  }
  const ProgramMatrix matrix(programs);
  const DMatrix data(matrix);
  auto booster = std::make_unique<Booster>(&data);
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", "reg:squarederror"},
      {"base_score", "0"},
      {"tree_method", "hist"},
      {"num_parallel_tree", std::to_string(kTreesARound)},
      {"max_bin", "64"},
      {"max_depth", std::to_string(options_.depth)},
      {"eta", std::to_string(options_.eta)},
      {"min_child_weight", std::to_string(options_.min_child_weight)},
      {"lambda", std::to_string(options_.lambda)},
      {"subsample", std::to_string(options_.subsample)},
      {"colsample_bytree", std::to_string(options_.columns)},
      {"seed", std::to_string(options_.seed % 1000000007)},
      {"seed_per_iteration", "true"}};  // else a loaded one draws on from wherever the library's generator is
  int rounds = options_.rounds;
  if (!loaded_.empty()) {
    TS_CHECK(booster->load(loaded_)) << "xgboost: " << XGBGetLastError();
    booster->set("verbosity", "0");
    booster->set("nthread", "1");
    rounds = std::min(rounds, std::max(kLeastRounds, static_cast<int>(programs.size() / kSamplesARound)));
    rounds = static_cast<int>(std::ceil(rounds * kManyRounds / (kManyRounds + booster->rounds())));
  }
  for (const auto& [key, value] : parameters) booster->set(key, value);
  std::vector<float> gradient(programs.size()), hessian(programs.size());
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> scores = start;
    booster->add(data, scores);
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    std::fill(hessian.begin(), hessian.end(), 1e-3F);
    for (const Pair& pair : pairs) {
      const auto b = static_cast<size_t>(pair.better), w = static_cast<size_t>(pair.worse);
      const double wrong = 1 / (1 + std::exp2(kPairSteepness * (scores[b] - scores[w])));
      const auto slope = static_cast<float>(pair.weight * wrong),
                 curve = static_cast<float>(pair.weight * std::max(1e-3, wrong * (1 - wrong)) * 2);
      gradient[b] -= slope;
      gradient[w] += slope;
      hessian[b] += curve;
      hessian[w] += curve;
    }
    booster->boost(data, gradient, hessian);
  }
  // A booster of its own: the one that trained keeps the data's predictions.
  booster_ = booster_of(booster->save());
}

std::unique_ptr<XgboostCostModel::Booster> XgboostCostModel::booster_of(const std::string& trees) {
  auto booster = std::make_unique<Booster>(nullptr);
  TS_CHECK(booster->load(trees)) << "xgboost: " << XGBGetLastError();
  return booster;
}

std::vector<double> XgboostCostModel::predict(std::span<const KernelFeatures> programs) const {
  std::vector<double> scores(programs.size(), 0);
  for (size_t p = 0; p < programs.size(); ++p) scores[p] = -std::log2(programs[p].analytic_cycles);
  if (!booster_ || programs.empty()) return scores;
  booster_->add(DMatrix(ProgramMatrix(programs)), scores);
  return scores;
}

std::string XgboostCostModel::save_text() const {
  Json json;
  json["seed"] = options_.seed;
  json["booster"] = booster_ ? booster_->save() : std::string();
  return json.dump();
}

Result<XgboostCostModel> XgboostCostModel::parse(const std::string& text) {
  const auto damaged = [](const std::string& why) { return Failure{"cost-model-damaged", "xgboost model: " + why}; };
  const Result<Json> json = parse_json(text);
  if (!json) return damaged(json.failure().message);
  if (!json->is_object() || !json->contains("seed") || !(*json)["seed"].is_number_integer() ||
      !json->contains("booster") || !(*json)["booster"].is_string())
    return damaged("expected seed and booster");
  XgboostOptions options;
  options.seed = (*json)["seed"].get<uint64_t>();
  XgboostCostModel model(options);
  const auto trees = (*json)["booster"].get<std::string>();
  if (trees.empty()) return model;
  model.booster_ = std::make_unique<Booster>(nullptr);
  if (!model.booster_->load(trees)) return damaged(XGBGetLastError());
  model.loaded_ = trees;
  return model;
}

}  // namespace tensmith
