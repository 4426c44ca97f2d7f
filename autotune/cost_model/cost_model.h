/// Models that tell fast schedules of a task from slow ones without running them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autotune/cost_model/features.h"
#include "runtime/base/result.h"

namespace tensmith {

/// A candidate that was measured.
struct CostSample {
  std::string task;  ///< samples are compared with those of the same task only
  KernelFeatures features;
  double us = 0;  ///< Units: any, the same within a task; not above 0 or not finite: ignored
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// A word: "analytic", "xgboost", "random" or "blend".
  virtual const char* name() const = 0;
  /// Learns from all samples anew; what was learned before is forgotten, but for what came from a file. Few samples,
  /// equal times or a single task are no error. The same samples in the same order give the same model.
  virtual void fit(std::span<const CostSample> samples) = 0;
  /// A score for each program: higher is faster.
  /// Units: log2 of speed, up to a constant for each task: a candidate whose score is 1 above another one's of the same
  /// task is expected to take half its time. Scores of different tasks do not compare.
  virtual std::vector<double> predict(std::span<const KernelFeatures> programs) const = 0;
  /// Everything that `parse_cost_model` needs to make an equal model.
  virtual std::string save_text() const = 0;
};

/// Writes a model as a file: a line with schema, version, features and checksum, then the model. Replaces the file only
/// when all is written. Errors: cannot-write.
Result<void> save_cost_model(const CostModel& model, const std::string& path);
/// Errors: cannot-read; cost-model-schema for what is no cost model; cost-model-version, cost-model-features for one of
/// another version of this program; cost-model-damaged when a byte is missing or wrong.
Result<std::unique_ptr<CostModel>> load_cost_model(const std::string& path);

/// `analytic`, `xgboost` (or `xgb`), `random`, `blend` (of analytic and xgboost): a model that has learned nothing yet.
/// Errors: unknown-cost-model with the list.
Result<std::unique_ptr<CostModel>> make_cost_model(const std::string& name, uint64_t seed);

}  // namespace tensmith
