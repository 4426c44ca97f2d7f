/// The space of schedules of a workload: all that the rules can make of it, one point for each list of decisions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/default_schedule.h"
#include "autotune/space/rules.h"

namespace tensmith {

/// A point of a space.
struct Candidate {
  Schedule schedule;
  Decisions decisions;
  std::vector<ChosenPoint> points;  ///< the decisions with what else was offered
  std::vector<std::string> rules;   ///< which rule served which root
  std::string explanation;          ///< a line for each decision of the rules with its figures
};

/// Makes candidates. A plain value; making them from several threads at a time is fine.
class Space {
 public:
  /// Derived from the workload by rules; `rules` may hold more than the built-in ones.
  Space(Workload workload, ScheduleRequest request, SpaceRules rules = built_in_rules());
  /// Declared by hand beside a schedule: `declare` applies steps to the draft and asks it for decisions.
  Space(Workload workload, ScheduleRequest request, std::function<void(ScheduleDraft&)> declare);

  const Workload& workload() const { return workload_; }
  const ScheduleRequest& request() const { return request_; }
  const SpaceRules& rules() const { return rules_; }

  /// The part of the space in which only the decisions of these names are open; the others are left to the rules.
  Space restricted(std::vector<std::string> open) const;

  /// The candidate that the chooser's answers lead to. Errors: the id of a step that is illegal (a fault of a rule:
  /// options are legal where they are offered).
  Result<Candidate> make(Chooser& chooser) const;

 private:
  Workload workload_;
  ScheduleRequest request_;
  SpaceRules rules_;
  std::function<void(ScheduleDraft&)> declare_;
  std::optional<std::vector<std::string>> open_;  ///< null: all
};

/// The decisions of a record made again, with what had to change in `notes` (may be null).
Result<Candidate> replay_decisions(const Space& space, const Decisions& decisions, std::string* notes = nullptr);

/// A random candidate. The same generator state gives the same one.
Result<Candidate> sample(const Space& space, Rng& rng, Draw draw);

/// The parent with `count` decisions changed, most often to a neighbour; what depends on them is derived anew: where
/// the parent followed the rules, so does the child. Returns a copy when nothing can be changed.
Result<Candidate> mutate(const Space& space, const Candidate& parent, Rng& rng, int count = 1);

/// Each stage's decisions from one of the parents.
Result<Candidate> crossover(const Space& space, const Candidate& a, const Candidate& b, Rng& rng);

/// Calls `visit` with every candidate, in the order of a mixed-radix count over the options, until it returns false or
/// `limit` were made. Returns whether that were all. Candidates that a rule refuses count and are passed over.
bool enumerate(const Space& space, int64_t limit, const std::function<bool(const Candidate&)>& visit,
               int64_t* refused = nullptr);

/// What a search may expect of a space.
struct SpaceSummary {
  std::vector<std::string> rules;   ///< which rule serves which root in the default schedule
  std::vector<ChosenPoint> points;  ///< the decisions of the default schedule
  int64_t least = 0;                ///< points counted
  bool exact = false;               ///< that is all of them
  double estimate = 0;              ///< else: the expected number, by random descents
};
/// Counts up to `limit` points. Cost: some tenths of a millisecond a point.
SpaceSummary space_summary(const Space& space, int64_t limit = 4096, uint64_t seed = 0);
/// For people: rules, decisions with their options, size.
std::string to_string(const SpaceSummary& summary);
Json to_json(const SpaceSummary& summary);

}  // namespace tensmith
