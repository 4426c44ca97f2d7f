/// The search in the space of one task: proposes candidates, is told how they did.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/search/decision_model.h"
#include "autotune/search/scorer.h"
#include "autotune/space/space.h"

namespace tensmith {

/// How candidates are found.
enum class SearchStrategy : uint8_t {
  kEvolve,  ///< the ranking's best, then children and neighbours of the best that promise most
  kRandom,  ///< uniform draws
  kGrid,    ///< the whole space in the order of a count
  kAnneal,  ///< a walk that takes worse steps more and more seldom
};
/// Errors: bad-search, with the names that there are.
Result<SearchStrategy> parse_search_strategy(std::string_view text);

/// A candidate with where it came from.
struct Proposal {
  std::shared_ptr<const Candidate> candidate;
  uint64_t hash = 0;        ///< of the schedule's steps
  const char* origin = "";  ///< default, carried, probe, mutate, crossover, neighbour, random, grid, walk
  double expected = 0;      ///< Units: log2 of microseconds; NaN: nothing was expected
  double scored = 0;        ///< the cost model's word when it was proposed. Units: log2, up to a constant; may be NaN
};

/// How many candidates to ask a search for that proposed so many: half a batch at first, when each result tells most of
/// what to try next.
int batch_size(int64_t proposed, int batch);

/// The search of one task. What it proposes depends on the space, the seed and what it was told, in that order, and on
/// nothing else: told the same it proposes the same, which is how a broken run goes on. Threads: one at a time.
class TaskSearch {
 public:
  /// The scorer outlives the search.
  TaskSearch(Space space, SearchStrategy strategy, uint64_t seed, CandidateScorer& scorer);

  /// Decisions that did well elsewhere: kEvolve proposes them right behind the default, adapted to what is legal here.
  /// To be called before anything else was proposed.
  void suggest(std::vector<Decisions> decisions) { suggested_ = std::move(decisions); }

  /// Up to `count` candidates that were not proposed before; the first one ever is the default schedule. Fewer, or
  /// none, when no more can be found.
  std::vector<Proposal> propose(int count);
  /// Units: microseconds; infinite when the candidate has no valid time.
  void tell(const Proposal& proposal, double cost_us);

  const Space& space() const { return space_; }
  int64_t proposed() const { return static_cast<int64_t>(seen_.size()); }
  int64_t told() const { return told_; }
  /// No more can be proposed.
  bool exhausted() const { return exhausted_; }
  /// Told batches without a gain of half a percent, since the last one.
  int idle_rounds() const { return idle_rounds_; }
  /// Infinite before a candidate was valid.
  double best_us() const;
  double default_us() const { return default_us_; }
  /// Null before a candidate was valid.
  std::shared_ptr<const Candidate> best() const;
  /// Up to `count` (12 at most) valid ones, best first, none of which costs more than `within` times what the best one
  /// does.
  std::vector<std::shared_ptr<const Candidate>> best_few(int count, double within = 1e300) const;
  /// Null before the first proposals.
  std::shared_ptr<const Candidate> default_candidate() const { return default_; }

 private:
  struct Measured {
    std::shared_ptr<const Candidate> candidate;
    double cost_us;
  };
  /// What is kept of a measured one to judge others by.
  struct Weighed {
    Decisions decisions;
    double cost_us = 0, scored = 0;
  };
  using Pool = std::vector<Proposal>;

  /// Adds it when it is new. Returns whether it was.
  bool add(Pool& pool, Result<Candidate> candidate, const char* origin);
  /// Of the pool the `count` that promise most, some of them drawn blindly.
  std::vector<Proposal> take_best(Pool pool, int count, double blind);
  /// All that differ from the best one in a single decision.
  void add_neighbours(Pool& pool);
  std::vector<Proposal> probe(int count);
  std::vector<Proposal> evolve(int count);
  std::vector<Proposal> draw_random(int count);
  /// Looks at no more than `limit` points.
  std::vector<Proposal> count_on(int count, int64_t limit);
  std::vector<Proposal> walk(int count);
  const Measured& parent();
  void claim(const std::vector<Proposal>& proposals);

  const Space space_;
  const SearchStrategy strategy_;
  Rng rng_;
  CandidateScorer& scorer_;
  std::vector<Decisions> suggested_;  ///< and not proposed yet
  std::set<uint64_t> seen_;           ///< schedules proposed
  std::vector<Measured> measured_;    ///< the best valid ones, best first
  std::vector<Weighed> weighed_;      ///< as many of them as others are judged by
  std::vector<Proposal> under_way_;   ///< proposed and not told
  DecisionModel decision_model_;
  double errors_ = 0, guesses_ = 0;  ///< sum of squared errors of what was expected, fading, and of how many
  int64_t told_ = 0, told_at_gain_ = 0;
  int idle_rounds_ = 0;
  double default_us_, gain_from_us_;
  bool started_ = false, exhausted_ = false;
  std::shared_ptr<const Candidate> surrounded_;  ///< whose neighbours were all proposed
  CountingChooser counter_;
  bool counted_ = false;
  std::shared_ptr<const Candidate> default_, here_;  ///< here: of kAnneal
  double here_us_;
};

}  // namespace tensmith
