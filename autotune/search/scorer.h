/// What the search believes of candidates before they are measured.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autotune/space/space.h"

namespace tensmith {

/// Orders candidates of one task. Threads: one at a time.
class CandidateScorer {
 public:
  virtual ~CandidateScorer() = default;
  /// What each candidate costs, in any unit above 0; lower is better. Only ratios within one call count. Behind them
  /// the same of what was learned before, by its decisions; NaN for what is not remembered.
  virtual std::vector<double> score(const Space& space, std::span<const Candidate* const> candidates,
                                    std::span<const Decisions* const> learned) = 0;
  /// A measured candidate. Units: microseconds; infinite when it has no valid time.
  virtual void learn(const Space& space, const Candidate& candidate, double cost_us) = 0;
};

/// The rules' own expectations: the product over all decisions of how much more the taken option costs than the
/// cheapest. Costs next to nothing, learns nothing.
class PriorScorer : public CandidateScorer {
 public:
  std::vector<double> score(const Space& space, std::span<const Candidate* const> candidates,
                            std::span<const Decisions* const> learned) override;
  void learn(const Space&, const Candidate&, double) override {}
};
/// The same of one candidate; 1 where every decision is the cheapest.
double prior_cost(const Candidate& candidate);

}  // namespace tensmith
