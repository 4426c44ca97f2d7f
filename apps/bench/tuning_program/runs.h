/// Searches that are watched: what was tried in which order, and what it cost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/search/task_search.h"
#include "runtime/base/json.h"

namespace tensmith::bench {

/// A trial of a search. Units: of the default's time.
struct Trial {
  std::shared_ptr<const Candidate> candidate;
  std::string origin;
  double cost = 0;
};

/// Costs of candidates, in their order.
using CostsOf = std::function<std::vector<double>(const std::vector<const Candidate*>&)>;

/// Lets the search make up to `trials` trials in batches of 8 (4 at first), one of them proposed before the costs of
/// the one before are told, which is what a tuning run does. `until` may end it after a batch.
std::vector<Trial> run_search(TaskSearch& search, int64_t trials, const CostsOf& costs,
                              const std::function<bool(const std::vector<Trial>&)>& until = {});

/// What a tuning run that ended after the first `count` trials would compare thoroughly in the end. Empty when none of
/// them is valid.
std::vector<std::shared_ptr<const Candidate>> best_of(const std::vector<Trial>& trials, size_t count);

/// Trials until one costs no more than that; one more than there are when none does.
size_t trials_until(const std::vector<Trial>& trials, double cost);

/// The trials that were better than all before: `[trial, origin, cost]`.
Json gains_of(const std::vector<Trial>& trials);

}  // namespace tensmith::bench
