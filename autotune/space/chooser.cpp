#include "autotune/space/chooser.h"

#include <algorithm>
#include <cmath>

namespace tensmith {

int ChoicePoint::find(const ChoiceValue& value) const {
  for (size_t k = 0; k < options.size(); ++k)
    if (options[k].value == value) return static_cast<int>(k);
  return -1;
}

size_t ChoicePoint::nearest(const ChoiceValue& value) const {
  if (const int same = find(value); same >= 0) return static_cast<size_t>(same);
  const auto* wanted = std::get_if<int64_t>(&value);
  size_t best = preferred;
  double least = -1;
  if (!wanted) return best;
  for (size_t k = 0; k < options.size(); ++k) {
    const auto* number = std::get_if<int64_t>(&options[k].value);
    if (!number) continue;
    const auto scaled = [](int64_t n) { return std::log2(static_cast<double>(std::max<int64_t>(n, 0)) + 0.5); };
    const double apart = std::abs(scaled(*number) - scaled(*wanted));
    if (least >= 0 && apart >= least) continue;
    least = apart;
    best = k;
  }
  return best;
}

size_t ReplayChooser::choose(const ChoicePoint& point) {
  const std::string name = point.name();
  asked_.push_back(name);
  const ChoiceValue* wanted = decisions_.find(name);
  if (!wanted) return rest_ ? rest_->choose(point) : point.preferred;
  const size_t taken = point.nearest(*wanted);
  if (point.options[taken].value != *wanted)
    notes_ += name + ": " + to_string(*wanted) + " is not legal here; " + to_string(point.options[taken].value) +
              " is the nearest that is\n";
  return taken;
}

std::string ReplayChooser::notes() const {
  std::string all = notes_;
  for (const auto& [name, value] : decisions_.items())
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end())
      all += name + ": nothing asks for it here; " + to_string(value) + " has no effect\n";
  return all;
}

size_t SamplingChooser::choose(const ChoicePoint& point) {
  if (draw_ == Draw::kUniform) return rng_.below(point.options.size());
  std::vector<double> weights;
  double sum = 0;
  const double least = point.options[point.preferred].cost;
  for (const ChoiceOption& option : point.options) {
    const double ratio = least / option.cost;
    weights.push_back(ratio * ratio);
    sum += weights.back();
  }
  double left = rng_.uniform() * sum;
  for (size_t k = 0; k < weights.size(); ++k) {
    left -= weights[k];
    if (left < 0) return k;
  }
  return point.preferred;
}

size_t CountingChooser::choose(const ChoicePoint& point) {
  if (position_ == digits_.size()) digits_.push_back({0, point.options.size()});
  TS_CHECK(digits_[position_].radix == point.options.size())
      << "decision " << point.name() << " has " << point.options.size() << " options, had " << digits_[position_].radix
      << " after the same decisions before";
  return digits_[position_++].value;
}

bool CountingChooser::next() {
  digits_.resize(position_);  // what a shorter path did not ask for
  position_ = 0;
  while (!digits_.empty() && digits_.back().value + 1 == digits_.back().radix) digits_.pop_back();
  if (digits_.empty()) return false;
  ++digits_.back().value;
  return true;
}

Question::Question(std::string stage, std::string what) : point_{std::move(stage), std::move(what), {}, 0} {}

Question& Question::offer(ChoiceValue value, double cost) {
  TS_CHECK(cost > 0) << point_.name() << ": an option costs " << cost;
  if (point_.find(value) < 0) point_.options.push_back({std::move(value), cost});
  return *this;
}

Question& Question::prefer(const ChoiceValue& value) {
  offer(value);
  point_.preferred = static_cast<size_t>(point_.find(value));
  has_preferred_ = true;
  return *this;
}

ChoicePoint Question::point() && {
  TS_CHECK(!point_.options.empty()) << point_.name() << " offers nothing";
  const auto cheapest = std::min_element(point_.options.begin(), point_.options.end(),
                                         [](const auto& a, const auto& b) { return a.cost < b.cost; });
  if (!has_preferred_) point_.preferred = static_cast<size_t>(cheapest - point_.options.begin());
  else point_.options[point_.preferred].cost = cheapest->cost;
  const ChoiceValue preferred = point_.options[point_.preferred].value;
  if (std::all_of(point_.options.begin(), point_.options.end(), [](const auto& o) { return o.value.index() == 0; }))
    std::sort(point_.options.begin(), point_.options.end(),
              [](const auto& a, const auto& b) { return a.value < b.value; });
  point_.preferred = static_cast<size_t>(point_.find(preferred));
  return std::move(point_);
}

}  // namespace tensmith
