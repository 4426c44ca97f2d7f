#include "apps/bench/tuning_program/cost_store.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tensmith::bench {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::infinity();
}

}  // namespace

Result<CostStore> CostStore::open(const std::string& path) {
  CostStore store;
  if (path.empty()) return store;
  bool is_torn = false;
  {
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
      is_torn = file.eof();
      const Result<Json> line = parse_json(text);
      if (!line || !line->is_object()) continue;
      const auto word = [&](const char* key) {
        return line->contains(key) && (*line)[key].is_string() ? (*line)[key].get<std::string>() : std::string();
      };
      if (word("task").empty() || word("schedule").empty()) continue;
      KnownCost& cost = store.of(word("task"))[word("schedule")];
      if (line->contains("final")) cost.finals.push_back(number((*line)["final"]));
      if (!line->contains("ratio") || !line->contains("decisions")) continue;
      const Result<Decisions> decisions = decisions_from_json((*line)["decisions"]);
      if (!decisions) continue;
      cost.decisions = *decisions;
      cost.origin = word("origin");
      cost.ratio = number((*line)["ratio"]);
    }
  }
  store.file_.open(path, std::ios::app);
  if (is_torn) store.file_ << '\n';
  if (!store.file_) return Failure{"cannot-write", path + ": expected a file that can be written"};
  return store;
}

void CostStore::add(const std::string& task, const std::string& op, const std::string& schedule,
                    const KnownCost& cost) {
  KnownCost& known = of(task)[schedule];
  known.decisions = cost.decisions;
  known.origin = cost.origin;
  known.ratio = cost.ratio;
  if (!file_.is_open()) return;
  const Json line{{"task", task},          {"op", op},
                  {"schedule", schedule},  {"decisions", to_json(cost.decisions)},
                  {"origin", cost.origin}, {"ratio", number(cost.ratio)}};
  file_ << line.dump() + "\n" << std::flush;
}

void CostStore::add_final(const std::string& task, const std::string& schedule, double ratio) {
  of(task)[schedule].finals.push_back(ratio);
  if (!file_.is_open()) return;
  const Json line{{"task", task}, {"schedule", schedule}, {"final", number(ratio)}};
  file_ << line.dump() + "\n" << std::flush;
}

}  // namespace tensmith::bench
