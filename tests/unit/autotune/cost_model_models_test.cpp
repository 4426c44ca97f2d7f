// Cost models learn an order, save and load to the same predictions, refuse damaged files by name, and keep no memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "autotune/cost_model/blend_model.h"
#include "autotune/cost_model/ranking.h"
#include "autotune/cost_model/simple_models.h"
#include "autotune/cost_model/xgboost_model.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

/// Samples whose times follow two columns and the analytic cycles.
std::vector<CostSample> synthetic(int tasks, int each, uint64_t seed, double column_weight = 1) {
  Rng rng(seed);
  std::vector<CostSample> samples;
  for (int t = 0; t < tasks; ++t)
    for (int k = 0; k < each; ++k) {
      CostSample s;
      s.task = "task " + std::to_string(t);
      s.features.kernel.resize(kernel_feature_names().size());
      s.features.nests.resize(2 * nest_feature_names().size());
      for (auto* row : {&s.features.kernel, &s.features.nests})
        for (float& value : *row) value = static_cast<float>(rng.uniform());
      const double cycles = std::exp2(10 + t + rng.uniform());
      s.features.analytic_cycles = cycles;
      s.us = 1e-3 * cycles *
             std::exp2(column_weight * 2 * (s.features.kernel[3] + (s.features.nests[5] > 0.5F ? 0.7 : 0)));
      samples.push_back(std::move(s));
    }
  return samples;
}

std::vector<KernelFeatures> programs_of(const std::vector<CostSample>& samples) {
  std::vector<KernelFeatures> programs;
  for (const CostSample& s : samples) programs.push_back(s.features);
  return programs;
}

double accuracy(const CostModel& model, const std::vector<CostSample>& samples) {
  return rank_quality(rank_samples(model, samples)).pairwise;
}

std::string temporary(const char* name) {
  return testing::TempDir() + "/cost_model_" + std::to_string(getpid()) + "_" + name;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST(Ranking, ByHand) {
  const RankedTask task{"t", {4, 3, 1, 2}, {10, 20, 30, 40}};
  EXPECT_DOUBLE_EQ(pairwise_accuracy(task), 5.0 / 6);
  EXPECT_DOUBLE_EQ(rank_correlation(task), 0.8);
  EXPECT_DOUBLE_EQ(top_k_recall(task, 2), 1);
  EXPECT_DOUBLE_EQ(top_k_recall(task, 3), 2.0 / 3);
  EXPECT_DOUBLE_EQ(top_k_speed({"t", {1, 2}, {10, 20}}, 1), 0.5);
  EXPECT_DOUBLE_EQ(top_k_speed({"t", {1, 2}, {10, 20}}, 9), 1);
  // Ties of scores count half, ties of times not at all.
  EXPECT_DOUBLE_EQ(pairwise_accuracy({"t", {1, 1, 1}, {10, 20, 20.1}}), 0.5);
  EXPECT_DOUBLE_EQ(pairwise_accuracy({"t", {1, 2}, {10, 10}}), 0.5);
  EXPECT_DOUBLE_EQ(rank_correlation({"t", {1, 1}, {10, 20}}), 0);
  EXPECT_EQ(rank_quality({}).tasks, 0);
}

TEST(CostModels, XgboostRecoversAnOrdering) {
  const std::vector<CostSample> known = synthetic(6, 50, 1), unseen = synthetic(3, 50, 2);
  XgboostCostModel model;
  const double before = accuracy(model, unseen);
  EXPECT_DOUBLE_EQ(before, accuracy(AnalyticCostModel(), unseen));
  model.fit(known);
  EXPECT_GT(accuracy(model, unseen), 0.86);
  EXPECT_GT(accuracy(model, unseen), before + 0.1);
  EXPECT_NEAR(accuracy(RandomCostModel(3), unseen), 0.5, 0.08);
  // Scores are log2 of speed: wide differences are near the real ones.
  const std::vector<double> scores = model.predict(programs_of(unseen));
  EXPECT_GT(
      *std::max_element(scores.begin(), scores.begin() + 50) - *std::min_element(scores.begin(), scores.begin() + 50),
      2);
}

TEST(CostModels, SameSamplesSameModel) {
  const std::vector<CostSample> samples = synthetic(3, 40, 5);
  const std::vector<KernelFeatures> programs = programs_of(synthetic(2, 10, 6));
  XgboostOptions options;
  options.seed = 11;
  XgboostCostModel a(options), b(options);
  a.fit(samples);
  b.fit(synthetic(1, 30, 9));  // forgotten
  b.fit(samples);
  EXPECT_EQ(a.predict(programs), b.predict(programs));
  EXPECT_EQ(a.save_text(), b.save_text());
  options.seed = 12;
  XgboostCostModel other(options);
  other.fit(samples);
  EXPECT_NE(a.predict(programs), other.predict(programs));
  // One at a time or all together.
  EXPECT_EQ(a.predict({&programs[4], 1})[0], a.predict(programs)[4]);
}

TEST(CostModels, FewOrEqualSamples) {
  const std::vector<KernelFeatures> programs = programs_of(synthetic(1, 5, 6));
  for (int count : {0, 1, 5, 8, 9}) {
    XgboostCostModel model;
    std::vector<CostSample> samples = synthetic(1, count, 3);
    model.fit(samples);
    for (double score : model.predict(programs)) EXPECT_TRUE(std::isfinite(score)) << count;
    for (CostSample& s : samples) s.us = 7;
    model.fit(samples);
    for (double score : model.predict(programs)) EXPECT_TRUE(std::isfinite(score)) << count;
  }
  // Tasks of one sample each say nothing; times that are none are left out.
  std::vector<CostSample> odd = synthetic(20, 1, 4);
  odd[0].us = 0;
  odd[1].us = -1;
  odd[2].us = std::nan("");
  odd[3].us = INFINITY;
  XgboostCostModel model;
  model.fit(odd);
  for (double score : model.predict(programs)) EXPECT_TRUE(std::isfinite(score));
  EXPECT_TRUE(model.predict({}).empty());
  EXPECT_EQ(rank_samples(model, odd).size(), 16u);
}

TEST(CostModels, SaveAndLoad) {
  const std::vector<CostSample> samples = synthetic(3, 30, 5);
  const std::vector<KernelFeatures> programs = programs_of(synthetic(2, 20, 6));
  for (const char* name : {"analytic", "xgboost", "random", "blend"}) {
    const std::string path = temporary(name);
    const std::unique_ptr<CostModel> model = make_cost_model(name, 21).value();
    for (int trained = 0; trained < 2; ++trained) {
      if (trained) model->fit(samples);
      if (auto* blend = dynamic_cast<BlendCostModel*>(model.get())) blend->observe(synthetic(1, 20, 8));
      ASSERT_TRUE(save_cost_model(*model, path).ok()) << name;
      const Result<std::unique_ptr<CostModel>> loaded = load_cost_model(path);
      ASSERT_TRUE(loaded.ok()) << name << ": " << loaded.failure().message;
      EXPECT_STREQ(loaded.value()->name(), name);
      EXPECT_EQ(loaded.value()->predict(programs), model->predict(programs)) << name;
    }
    std::remove(path.c_str());
  }
  EXPECT_EQ(make_cost_model("oracle", 0).failure().id, "unknown-cost-model");
}

TEST(CostModels, BadFilesAreRefusedByName) {
  XgboostCostModel model;
  model.fit(synthetic(2, 20, 5));
  const std::string path = temporary("bad");
  ASSERT_TRUE(save_cost_model(model, path).ok());
  const std::string good = read_file(path);
  const auto id = [&](const std::string& text) {
    write_file(path, text);
    const Result<std::unique_ptr<CostModel>> loaded = load_cost_model(path);
    return loaded.ok() ? std::string("ok") : loaded.failure().id;
  };
  EXPECT_EQ(id(good), "ok");
  for (size_t size : {good.size() - 1, good.size() / 2, good.find('\n') + 1})
    EXPECT_EQ(id(good.substr(0, size)), "cost-model-damaged") << size;
  EXPECT_EQ(id(good + "x"), "cost-model-damaged");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_EQ(id(changed("\"version\":1", "\"version\":2")), "cost-model-version");
  EXPECT_EQ(id(changed("tensmith.cost-model", "somebody.cost-model")), "cost-model-schema");
  EXPECT_EQ(id(changed("\"features\":\"", "\"features\":\"0")), "cost-model-features");
  EXPECT_EQ(id(changed("\"model\":\"xgboost\"", "\"model\":\"random\"")), "cost-model-damaged");
  for (const char* text : {"", "\n", "{}", "hello\n", "{\"schema\": 3}\n", "[1, 2]\n"})
    EXPECT_EQ(id(text), "cost-model-schema") << text;
  // A byte that flips anywhere: never a crash, never another model.
  Rng rng(4);
  for (int k = 0; k < 200; ++k) {
    std::string text = good;
    const size_t at = k < 100 ? rng.below(good.find('\n')) : rng.below(good.size());
    text[at] = static_cast<char>(text[at] ^ static_cast<char>(1 + rng.below(255)));
    const std::string answer = id(text);
    // The tool's version is for the reader only.
    if (answer != "ok") EXPECT_EQ(answer.rfind("cost-model-", 0), 0u) << answer;
    else EXPECT_LT(at, good.find('\n'));
  }
  std::remove(path.c_str());
  EXPECT_EQ(load_cost_model(path).failure().id, "cannot-read");
  EXPECT_EQ(save_cost_model(model, "/nowhere/at/all").failure().id, "cannot-write");
}

TEST(CostModels, BlendFollowsWhatIsObserved) {
  // Two analytic halves of the truth: one model is right in the first rounds, the other one later.
  const std::vector<CostSample> good = synthetic(1, 30, 3, 0);  // times are the analytic cycles
  std::vector<CostSample> against = good;
  for (CostSample& s : against) s.us = 1e6 / s.us;  // times are the opposite
  BlendCostModel blend(std::make_unique<RandomCostModel>(1), std::make_unique<AnalyticCostModel>());
  EXPECT_DOUBLE_EQ(blend.weight(), 0);
  blend.observe(good);
  EXPECT_GT(blend.weight(), 0.95);
  EXPECT_DOUBLE_EQ(blend.second_accuracy(), 1);
  EXPECT_GT(accuracy(blend, good), 0.95);
  for (int round = 0; round < 4; ++round) blend.observe(against);
  EXPECT_LT(blend.weight(), 0.05);
  blend.observe({});
  blend.observe({good.data(), 1});
  EXPECT_LT(blend.weight(), 0.05);
}

int64_t resident_kb() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

TEST(CostModels, AModelOfAFileIsWhatItGoesOnFrom) {
  const std::vector<CostSample> old = synthetic(5, 40, 1), unseen = synthetic(3, 50, 2);
  XgboostOptions options;
  options.rounds = 60;
  XgboostCostModel first(options);
  first.fit(old);
  XgboostCostModel loaded = XgboostCostModel::parse(first.save_text()).value(), cold;
  const double known = accuracy(loaded, unseen);
  EXPECT_GT(known, 0.8);
  // A few samples of a new task do not make it forget; a new model could not have learned as much from them.
  const std::vector<CostSample> few = synthetic(1, 10, 7);
  loaded.fit({few.data(), 3});
  EXPECT_DOUBLE_EQ(accuracy(loaded, unseen), known);
  loaded.fit(few);
  cold.fit(few);
  EXPECT_GT(accuracy(loaded, unseen), known - 0.03);
  EXPECT_GT(accuracy(loaded, unseen), accuracy(cold, unseen) + 0.05);
  // It starts from the file each time, not from what it learned in between.
  XgboostCostModel again = XgboostCostModel::parse(first.save_text()).value();
  again.fit(few);
  EXPECT_EQ(again.predict(programs_of(unseen)), loaded.predict(programs_of(unseen)));
  // Handed on and on, it stays small.
  std::string text = first.save_text();
  const size_t size = text.size();
  for (int k = 0; k < 5; ++k) {
    XgboostCostModel next = XgboostCostModel::parse(text).value();
    next.fit(few);
    text = next.save_text();
  }
  EXPECT_LT(text.size(), 3 * size);
  EXPECT_GT(accuracy(XgboostCostModel::parse(text).value(), unseen), known - 0.05);
}

TEST(CostModels, FitsKeepNoMemory) {
  const std::vector<CostSample> samples = synthetic(2, 12, 5);
  const std::vector<KernelFeatures> programs = programs_of(samples);
  XgboostOptions options;
  options.rounds = 3;
  XgboostCostModel model(options);
  const auto turn = [&] {
    model.fit(samples);
    model.predict(programs);
  };
  for (int k = 0; k < 30; ++k) turn();
  const int64_t before = resident_kb();
  for (int k = 0; k < 200; ++k) turn();
  const int64_t growth = resident_kb() - before;
  RecordProperty("growth_kb", static_cast<int>(growth));
  EXPECT_LT(growth, 4096);
}

}  // namespace
}  // namespace tensmith
