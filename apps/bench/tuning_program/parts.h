/// The parts of the table, one a command of the program. Each gives its figures as JSON.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/tuning_program/cost_store.h"
#include "runtime/base/json.h"

namespace tensmith::bench {

struct PartOptions {
  std::vector<std::string> ops;
  std::vector<std::string> first;  ///< of a warm start: what was tuned before
  std::string model;               ///< of a warm start: file in which the first network's model is saved and loaded
  int threads = 1;
  int64_t trials = 128;
  int seeds = 1;          ///< searches of a strategy, with seeds from 1
  int rounds = 3;         ///< of thorough comparisons, behind the one that chooses
  int64_t points = 4096;  ///< of a space that is measured exhaustively, at most
  int count = 48;         ///< candidates that are drawn for cost models
  int itself = 1;         ///< whether the default is compared with itself
};

/// The default, the learned search and random search on one operator: the best after 8, 32, 64 and 128 trials of each,
/// compared thoroughly with the best that is known.
Json quality(const PartOptions& options, CostStore& store);
/// All points of a part of the operator's space, then how soon searches there come by the best one.
Json exhaustive(const PartOptions& options, CostStore& store);
/// Draws candidates of one operator, measures them and keeps them, as a judge of cost models needs them.
Json draw(const PartOptions& options, CostStore& store);
/// How well cost models order what was drawn of tasks that they did not learn from.
Json judge(const PartOptions& options, CostStore& store);
/// Trials a second of a tuning run, where its time goes, and how memory grows.
Json speed(const PartOptions& options);
/// Trials until 95 % of the best known, with and without the records of other operators.
Json warm_start(const PartOptions& options, CostStore& store);

}  // namespace tensmith::bench
