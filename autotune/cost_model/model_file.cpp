#include "autotune/cost_model/model_file.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "autotune/cost_model/blend_model.h"
#include "autotune/cost_model/simple_models.h"
#include "autotune/cost_model/xgboost_model.h"
#include "runtime/base/sha256.h"

namespace tensmith {

namespace {

constexpr const char* kSchema = "tensmith.cost-model";
constexpr int kVersion = 1;
constexpr int64_t kLargestFile = int64_t{256} << 20;

/// A digest of all column names: rows of another program version mean something else.
std::string features_digest() {
  std::string all;
  for (const auto* names : {&kernel_feature_names(), &nest_feature_names()}) {
    for (const std::string& name : *names) all += name + "\n";
    all += "\n";
  }
  return sha256_hex(all);
}

}  // namespace

Result<std::unique_ptr<CostModel>> make_cost_model(const std::string& name, uint64_t seed) {
  using Model = std::unique_ptr<CostModel>;
  XgboostOptions options;
  options.seed = seed;
  if (name == "analytic") return Model(std::make_unique<AnalyticCostModel>());
  if (name == "random") return Model(std::make_unique<RandomCostModel>(seed));
  if (name == "xgboost" || name == "xgb") return Model(std::make_unique<XgboostCostModel>(options));
  if (name == "blend")
    return Model(std::make_unique<BlendCostModel>(std::make_unique<AnalyticCostModel>(),
                                                  std::make_unique<XgboostCostModel>(options)));
  return Failure{"unknown-cost-model",
                 "cost model: expected analytic, xgboost (xgb), random or blend, got '" + name + "'"};
}

Result<std::unique_ptr<CostModel>> parse_cost_model(const std::string& name, const std::string& text) {
  if (name == "xgboost") {
    Result<XgboostCostModel> model = XgboostCostModel::parse(text);
    if (!model) return model.failure();
    return std::unique_ptr<CostModel>(std::make_unique<XgboostCostModel>(std::move(model).value()));
  }
  if (name == "blend") return BlendCostModel::parse(text);
  if (name == "random") {
    uint64_t seed = 0;
    if (std::sscanf(text.c_str(), "%lu", &seed) != 1)
      return Failure{"cost-model-damaged", "random model: expected a seed, got '" + text.substr(0, 40) + "'"};
    return std::unique_ptr<CostModel>(std::make_unique<RandomCostModel>(seed));
  }
  return make_cost_model(name, 0);
}

Result<void> save_cost_model(const CostModel& model, const std::string& path) {
  const std::string text = model.save_text();
  Json header;
  header["schema"] = kSchema;
  header["version"] = kVersion;
  header["tool"] = tool_version();
  header["features"] = features_digest();
  header["model"] = model.name();
  header["bytes"] = text.size();
  header["sha256"] = sha256_hex(std::string(model.name()) + "\n" + text);
  const std::string draft = path + ".new";
  {
    std::ofstream file(draft, std::ios::binary);
    file << header.dump() << '\n' << text;
    file.flush();
    if (!file) {
      std::remove(draft.c_str());
      return Failure{"cannot-write", path + ": cost model: expected a file that can be written"};
    }
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    std::remove(draft.c_str());
    return Failure{"cannot-write", path + ": cost model: expected a file that can be replaced"};
  }
  return {};
}

Result<std::unique_ptr<CostModel>> load_cost_model(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Failure{"cannot-read", path + ": cost model: expected a file that can be read"};
  const std::string where = path + ": cost model: ";
  std::string line;
  char c = 0;
  while (line.size() < 4096 && file.get(c) && c != '\n') line += c;
  const Failure foreign{"cost-model-schema",
                        where + "expected a file that starts with the schema " + kSchema + ", got something else"};
  if (line.empty() || line[0] != '{') return foreign;
  const Result<Json> header = parse_json(line);
  // A first line of ours that does not parse was ours before something happened to it.
  if (!header)
    return line.find(kSchema) == std::string::npos ? foreign
                                                   : Failure{"cost-model-damaged", where + header.failure().message};
  const auto text_of = [&](const char* key) {
    return header->contains(key) && (*header)[key].is_string() ? (*header)[key].get<std::string>() : std::string();
  };
  if (text_of("schema") != kSchema) return foreign;
  if (!header->contains("version") || (*header)["version"] != kVersion)
    return Failure{"cost-model-version", where + "expected version " + std::to_string(kVersion) + ", got " +
                                             (header->contains("version") ? (*header)["version"].dump() : "none") +
                                             "; train it again"};
  if (text_of("features") != features_digest())
    return Failure{"cost-model-features", where + "expected the features of tensmith " + tool_version() +
                                              ", got those of " + text_of("tool") + "; train it again"};
  std::ostringstream rest;
  rest << file.rdbuf();
  const std::string text = rest.str();
  const bool has_size = header->contains("bytes") && (*header)["bytes"].is_number_unsigned();
  const auto size = has_size ? (*header)["bytes"].get<uint64_t>() : 0;
  if (!has_size || size != text.size() || size > static_cast<uint64_t>(kLargestFile))
    return Failure{"cost-model-damaged", where + "expected " + std::to_string(size) +
                                             " bytes behind the first line, got " + std::to_string(text.size())};
  if (text_of("sha256") != sha256_hex(text_of("model") + "\n" + text))
    return Failure{"cost-model-damaged", where + "expected content with the checksum of its first line"};
  return parse_cost_model(text_of("model"), text);
}

}  // namespace tensmith
