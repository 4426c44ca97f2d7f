#include <algorithm>
#include <map>

#include "autotune/space/space.h"

namespace tensmith {

namespace {

/// Changes some decisions of a parent and keeps the others; where the parent took what the rules prefer, the child
/// takes what they prefer now.
class MutatingChooser : public Chooser {
 public:
  MutatingChooser(const Candidate& parent, std::vector<std::string> changed, Rng& rng)
      : parent_(parent), changed_(std::move(changed)), rng_(rng) {}

  size_t choose(const ChoicePoint& point) override {
    const std::string name = point.name();
    const auto known = std::find_if(parent_.points.begin(), parent_.points.end(),
                                    [&](const ChosenPoint& p) { return p.point.name() == name; });
    if (known == parent_.points.end()) return point.preferred;
    const bool change = std::find(changed_.begin(), changed_.end(), name) != changed_.end();
    if (!change) return known->taken == known->point.preferred ? point.preferred : point.nearest(known->value());
    return another(point, point.nearest(known->value()));
  }

 private:
  size_t another(const ChoicePoint& point, size_t from) {
    const size_t count = point.options.size();
    const bool ordered = point.options[from].value.index() == 0;
    // Good tiles lie beside good tiles; from time to time a longer way.
    constexpr double kNeighbour = 0.6;
    if (ordered && count > 2 && rng_.chance(kNeighbour)) {
      if (from == 0) return 1;
      if (from + 1 == count) return from - 1;
      return rng_.chance(0.5) ? from - 1 : from + 1;
    }
    const size_t other = rng_.below(count - 1);
    return other < from ? other : other + 1;
  }

  const Candidate& parent_;
  const std::vector<std::string> changed_;
  Rng& rng_;
};

/// Takes each stage's decisions from the parent that was drawn for the stage.
class MixingChooser : public Chooser {
 public:
  MixingChooser(const Candidate& a, const Candidate& b, Rng& rng) : a_(a), b_(b), rng_(rng) {}

  size_t choose(const ChoicePoint& point) override {
    const auto [drawn, fresh] = from_a_.try_emplace(point.stage, false);
    if (fresh) drawn->second = rng_.chance(0.5);
    const std::string name = point.name();
    const ChoiceValue* value = (drawn->second ? a_ : b_).decisions.find(name);
    if (!value) value = (drawn->second ? b_ : a_).decisions.find(name);
    return value ? point.nearest(*value) : point.preferred;
  }

 private:
  const Candidate &a_, &b_;
  Rng& rng_;
  std::map<std::string, bool> from_a_;
};

}  // namespace

Result<Candidate> mutate(const Space& space, const Candidate& parent, Rng& rng, int count) {
  std::vector<std::string> names;
  for (const ChosenPoint& chosen : parent.points) names.push_back(chosen.point.name());
  if (names.empty()) return parent;
  rng.shuffle(names);
  names.resize(std::min<size_t>(names.size(), static_cast<size_t>(std::max(1, count))));
  MutatingChooser chooser(parent, names, rng);
  return space.make(chooser);
}

Result<Candidate> crossover(const Space& space, const Candidate& a, const Candidate& b, Rng& rng) {
  MixingChooser chooser(a, b, rng);
  return space.make(chooser);
}

}  // namespace tensmith
