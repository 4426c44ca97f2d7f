#include "autotune/space/space.h"

#include <algorithm>

namespace tensmith {

namespace {

/// Another chooser's answers where the decision is open.
class RestrictedChooser : public Chooser {
 public:
  RestrictedChooser(Chooser& chooser, const std::vector<std::string>& open) : chooser_(chooser), open_(open) {}
  size_t choose(const ChoicePoint& point) override { return chooser_.choose(point); }
  bool is_open(const ChoicePoint& point) const override {
    return std::find(open_.begin(), open_.end(), point.name()) != open_.end() && chooser_.is_open(point);
  }

 private:
  Chooser& chooser_;
  const std::vector<std::string>& open_;
};

}  // namespace

Space::Space(Workload workload, ScheduleRequest request, SpaceRules rules)
    : workload_(std::move(workload)), request_(std::move(request)), rules_(std::move(rules)) {}

Space::Space(Workload workload, ScheduleRequest request, std::function<void(ScheduleDraft&)> declare)
    : workload_(std::move(workload)), request_(std::move(request)), declare_(std::move(declare)) {}

Result<Candidate> Space::make(Chooser& chooser) const {
  try {
    static const std::vector<std::string> kNone;
    RestrictedChooser restricted(chooser, open_ ? *open_ : kNone);
    ScheduleDraft draft(workload_, request_, open_ ? static_cast<Chooser*>(&restricted) : &chooser);
    if (declare_) declare_(draft);
    else apply_rules(draft, rules_);
    Decisions decisions;
    for (const ChosenPoint& chosen : draft.points) decisions.set(chosen.point.name(), chosen.value());
    return Candidate{std::move(draft.schedule), std::move(decisions), std::move(draft.points), std::move(draft.rules),
                     std::move(draft.explanation)};
  } catch (const Error& e) {
    return Failure{e.id(), e.message()};
  }
}

Space Space::restricted(std::vector<std::string> open) const {
  Space part = *this;
  part.open_ = std::move(open);
  return part;
}

Result<Candidate> replay_decisions(const Space& space, const Decisions& decisions, std::string* notes) {
  ReplayChooser chooser(decisions);
  Result<Candidate> candidate = space.make(chooser);
  if (notes) *notes = chooser.notes();
  return candidate;
}

Result<Candidate> sample(const Space& space, Rng& rng, Draw draw) {
  SamplingChooser chooser(rng, draw);
  return space.make(chooser);
}

bool enumerate(const Space& space, int64_t limit, const std::function<bool(const Candidate&)>& visit,
               int64_t* refused) {
  CountingChooser chooser;
  for (int64_t made = 0; made < limit; ++made) {
    const Result<Candidate> candidate = space.make(chooser);
    if (!candidate && refused) ++*refused;
    const bool go_on = !candidate || visit(candidate.value());
    if (!chooser.next()) return true;
    if (!go_on) return false;
  }
  return false;
}

}  // namespace tensmith
