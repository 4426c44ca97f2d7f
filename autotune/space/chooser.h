/// How the rules that make schedules get their decisions: they list what is legal, a chooser takes one of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autotune/space/decisions.h"
#include "runtime/base/rng.h"

namespace tensmith {

/// One thing that may be decided.
struct ChoiceOption {
  ChoiceValue value;
  /// Units: any, above 0; only the ratios within one point count. What the analytic model expects of it (cycles), or
  /// how much slower than the best the rule's author expects it to be.
  double cost = 1;
};

/// A question of a rule: at least two options, all of them legal where it is asked.
struct ChoicePoint {
  std::string stage, what;
  std::vector<ChoiceOption> options;
  /// What the rule takes by itself: no option is cheaper.
  size_t preferred = 0;

  std::string name() const { return stage + "." + what; }
  /// The option with that value, or -1.
  int find(const ChoiceValue& value) const;
  /// The option whose value is nearest: by ratio among numbers, the preferred one when nothing is comparable.
  size_t nearest(const ChoiceValue& value) const;
};

/// A point that was asked, with what was taken.
struct ChosenPoint {
  ChoicePoint point;
  size_t taken = 0;
  const ChoiceValue& value() const { return point.options[taken].value; }
};

/// Answers the questions of the rules, one after the other. Later questions may depend on earlier answers.
class Chooser {
 public:
  virtual ~Chooser() = default;
  /// An index into the options.
  virtual size_t choose(const ChoicePoint& point) = 0;
  /// Whether the point may be decided at all; where not, the rules' preference stands and no decision is recorded.
  virtual bool is_open(const ChoicePoint&) const { return true; }
};

/// What the rules prefer: gives the default schedule.
class PreferredChooser : public Chooser {
 public:
  size_t choose(const ChoicePoint& point) override { return point.preferred; }
};

/// Decisions as they were recorded; what they do not name is left to another chooser, by default to the rules. A
/// decision that is no longer legal becomes the nearest legal one, which a note says.
class ReplayChooser : public Chooser {
 public:
  /// `rest` may be null. Both must live as long as the chooser.
  explicit ReplayChooser(const Decisions& decisions, Chooser* rest = nullptr) : decisions_(decisions), rest_(rest) {}
  size_t choose(const ChoicePoint& point) override;
  /// A line for each decision that could not be kept, and after all questions one for each that nobody asked for.
  std::string notes() const;

 private:
  const Decisions& decisions_;
  Chooser* rest_;
  std::string notes_;
  std::vector<std::string> asked_;
};

/// How a SamplingChooser draws.
enum class Draw : uint8_t {
  kUniform,  ///< all options of a point alike
  kByCost,   ///< an option that costs twice as much four times as seldom
};

/// Draws from what is legal.
class SamplingChooser : public Chooser {
 public:
  /// The generator must live as long as the chooser.
  SamplingChooser(Rng& rng, Draw draw) : rng_(rng), draw_(draw) {}
  size_t choose(const ChoicePoint& point) override;

 private:
  Rng& rng_;
  const Draw draw_;
};

/// One point of a mixed-radix count over all paths of decisions: `next` goes on to the following one. What later
/// questions offer may depend on earlier answers.
class CountingChooser : public Chooser {
 public:
  size_t choose(const ChoicePoint& point) override;
  /// To be called behind a path: false when that was the last one.
  bool next();

 private:
  struct Digit {
    size_t value, radix;
  };
  std::vector<Digit> digits_;
  size_t position_ = 0;
};

/// Helps the rules to ask: collects options, keeps them in order, and lowers the cost of the preferred one to the
/// least.
class Question {
 public:
  Question(std::string stage, std::string what);
  /// Options with equal values count once.
  Question& offer(ChoiceValue value, double cost = 1);
  /// Offers it as well when nobody did.
  Question& prefer(const ChoiceValue& value);
  /// Sorts numbers upwards; words stay in the order of the offers.
  ChoicePoint point() &&;

 private:
  ChoicePoint point_;
  bool has_preferred_ = false;
};

}  // namespace tensmith
