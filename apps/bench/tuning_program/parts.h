/// The parts of the table, one a command of the program. Each gives its figures as JSON.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tensmith::bench {

struct PartOptions {
  std::vector<std::string> ops;
  std::vector<std::string> first;  ///< of a warm start: what was tuned before
  int threads = 1;
  int64_t trials = 128;
  int seeds = 1;          ///< searches of a strategy, with seeds from 1
  int rounds = 3;         ///< of finals
  int64_t points = 4096;  ///< a space with more is not measured exhaustively
};

/// The default, the learned search and random search on one operator: the best after 8, 32, 64 and 128 trials of each,
/// all of them compared in finals.
Json quality(const PartOptions& options);
/// All points of the operator's space measured, then how soon searches come by the best one.
Json exhaustive(const PartOptions& options);
/// Trials a second of a tuning run, where its time goes, and how memory grows.
Json speed(const PartOptions& options);
/// Trials until 95 % of the best known, with and without the records of other operators.
Json warm_start(const PartOptions& options);

}  // namespace tensmith::bench
