/// Decisions of passes over the graph, as records of tuning have them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/driver/compile.h"
#include "apps/driver/in_model.h"

namespace tensmith {

/// The key of records for a place where a pass chooses. They serve for models that have the operators and tensors of
/// this one (MadeChoices::structure): a way is judged in the whole model.
RecordKey choice_key(const std::string& structure, const graph::ChoiceSite& site, int threads,
                     const RecordArithmetic& arithmetic);

/// Answers the passes of one compilation from its records, and keeps what was chosen.
class ChoiceMaker {
 public:
  /// `graph`: before the passes.
  ChoiceMaker(const graph::Graph& graph, const CompileOptions& options);
  /// Lives as long as this object, which must not move meanwhile.
  graph::Chooser chooser() {
    return [this](const graph::ChoiceSite& site) { return choose(site); };
  }
  MadeChoices take() { return std::move(made_); }

 private:
  size_t choose(const graph::ChoiceSite& site);

  const CompileOptions& options_;
  MadeChoices made_;
  std::map<std::string, size_t> known_;  ///< number in made_ by name
};

/// A line for each place: the way taken, and why.
std::string choice_list(const MadeChoices& choices);

/// Kernels of `a` that `b` does not have as often, by number: what another way changes.
std::vector<size_t> kernels_apart(const CompiledProgram& a, const CompiledProgram& b);

/// What became of another way in the model.
struct ChoiceVerdict {
  bool is_better = false;        ///< beyond noise
  double gain = 1;               ///< time of the usual program's kernels to those that stand for them, median of rounds
  double saved_us = 0;           ///< of a run
  std::vector<double> usual_us;  ///< by round, kernels that differ
  std::vector<double> other_us;
};
/// Compares two programs of one model that ran in turns by what differs between them.
ChoiceVerdict judge_choice(const CompiledProgram& usual, const InModelTimes& usual_times, const CompiledProgram& other,
                           const InModelTimes& other_times);

}  // namespace tensmith
