/// The rules that make schedules: an explicit list, the same for the default schedule and for every search.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotune/schedule_rules.h"

namespace tensmith {

/// A stage that stands for itself, and what is computed on the way to it and by nobody else.
struct RuleSite {
  std::string root;
  std::vector<std::string> cone;        ///< producers first; not inlined
  std::vector<std::string> reductions;  ///< those of the cone
  bool many_outputs = false;            ///< some reduction of the cone has several values
};

/// One way to schedule a site. Rules know loops, reductions and access strides, never operators. Who adds one of his
/// own derives from this and puts it into the list of a Space.
class SpaceRule {
 public:
  virtual ~SpaceRule() = default;
  /// A word with dashes; the value of the decision `ROOT.rule`.
  virtual const char* name() const = 0;
  /// One sentence, lower case, no final period.
  virtual const char* doc() const = 0;
  /// Nothing when it cannot serve the site; else how much slower than the best the result is expected to be, in the
  /// measure of ChoiceOption::cost: 1 for a rule that fits, more for a makeshift. Of equal ones the first in the list
  /// is preferred.
  virtual std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const = 0;
  /// Schedules the root and whatever of the cone it takes along, asking the draft for decisions. Returns the stages of
  /// the cone that it leaves to others. Errors: ScheduleError, which refuses the decisions.
  virtual std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const = 0;
};

/// Rules in the order of preference. They must live as long as what uses them.
using SpaceRules = std::vector<const SpaceRule*>;

/// tile-epilogue, tile-chain, rows, elementwise, tile, row-lanes, split-reduction, plain-loops.
const SpaceRules& built_in_rules();

/// Schedules the whole draft: inlines, walks from the outputs to the inputs, asks for a rule at each root and for the
/// places of what the rule leaves.
void apply_rules(ScheduleDraft& draft, const SpaceRules& rules);

}  // namespace tensmith
