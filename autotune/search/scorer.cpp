#include "autotune/search/scorer.h"

#include <algorithm>
#include <limits>

namespace tensmith {

double prior_cost(const Candidate& candidate) {
  double product = 1;
  for (const ChosenPoint& chosen : candidate.points) {
    double least = std::numeric_limits<double>::infinity();
    for (const ChoiceOption& option : chosen.point.options) least = std::min(least, option.cost);
    if (least > 0) product *= chosen.point.options[chosen.taken].cost / least;
  }
  return product;
}

std::vector<double> PriorScorer::score(const Space&, std::span<const Candidate* const> candidates,
                                       std::span<const Decisions* const> learned) {
  std::vector<double> costs;
  costs.reserve(candidates.size());
  for (const Candidate* candidate : candidates) costs.push_back(prior_cost(*candidate));
  costs.resize(candidates.size() + learned.size(), std::numeric_limits<double>::quiet_NaN());
  return costs;
}

}  // namespace tensmith
