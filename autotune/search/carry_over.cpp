#include "autotune/search/carry_over.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tensmith {

namespace {

constexpr double kUnlike = std::numeric_limits<double>::infinity();
/// Units: doublings of an extent that differences of another kind weigh as much as.
constexpr double kThreads = 2, kStage = 0.5;
/// Tasks that are asked, and the best schedules of each.
constexpr size_t kTasksAsked = 6, kOfATask = 2;
/// What has to be gained on the default for a schedule to be worth a trial elsewhere.
constexpr double kWorthIt = 1.01;

std::vector<Stage> computed(const Workload& workload) {
  std::vector<Stage> stages;
  for (const Stage& stage : workload.stages)
    if (stage->stage_kind != StageKind::kPlaceholder) stages.push_back(stage);
  return stages;
}

std::vector<Stage> reductions(const Workload& workload) {
  std::vector<Stage> stages;
  for (const Stage& stage : workload.stages)
    if (stage->reducer) stages.push_back(stage);
  return stages;
}

/// Stages of one workload with those of another one that play their part: reductions in their order, the last stage,
/// and all of them where there are as many. Empty when the reductions are not alike.
std::vector<std::pair<Stage, Stage>> partners(const Workload& a, const Workload& b) {
  const auto alike = [](const Stage& x, const Stage& y) {
    return x->axes.size() == y->axes.size() && x->reduce_axes.size() == y->reduce_axes.size();
  };
  const std::vector<Stage> all_a = computed(a), all_b = computed(b), sums_a = reductions(a), sums_b = reductions(b);
  std::vector<std::pair<Stage, Stage>> pairs;
  if (all_a.empty() || all_b.empty() || sums_a.size() != sums_b.size()) return pairs;
  for (size_t k = 0; k < sums_a.size(); ++k) {
    if (!alike(sums_a[k], sums_b[k])) return {};
    pairs.emplace_back(sums_a[k], sums_b[k]);
  }
  if (all_a.size() == all_b.size())
    for (size_t k = 0; k < all_a.size(); ++k)
      if (alike(all_a[k], all_b[k]) && !all_a[k]->reducer && !all_b[k]->reducer) pairs.emplace_back(all_a[k], all_b[k]);
  if (!alike(all_a.back(), all_b.back())) return {};
  pairs.emplace_back(all_a.back(), all_b.back());
  return pairs;
}

double log2_of(const Expr& extent) {
  int64_t n;
  return as_const_int(extent, &n) && n > 0 ? std::log2(static_cast<double>(n)) : 6;
}

double axes_apart(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += std::abs(log2_of(a[k].extent) - log2_of(b[k].extent));
  return sum;
}

/// Names of stages and loops in terms of another workload.
class Renaming {
 public:
  Renaming(const Workload& from, const Workload& to) {
    for (const auto& [a, b] : partners(from, to)) {
      stages_[a->name] = b->name;
      std::map<std::string, std::string>& loops = loops_[a->name];
      for (size_t k = 0; k < a->axes.size(); ++k) loops[a->axes[k].var.name()] = b->axes[k].var.name();
      for (size_t k = 0; k < a->reduce_axes.size(); ++k)
        loops[a->reduce_axes[k].var.name()] = b->reduce_axes[k].var.name();
    }
  }

  Decisions operator()(const Decisions& decisions) const {
    Decisions out;
    for (const auto& [name, value] : decisions.items()) {
      const size_t dot = name.find('.');
      const std::string stage = name.substr(0, dot), served = served_of(stage);
      std::string what = dot == std::string::npos ? "" : name.substr(dot);
      if (const size_t last = what.rfind('.'); last != std::string::npos)
        what = what.substr(0, last + 1) + loop_of(served, what.substr(last + 1));
      ChoiceValue renamed = value;
      if (const auto* word = std::get_if<std::string>(&value)) renamed = loop_of(served, *word);
      out.set((served.empty() ? stage : stages_.at(served) + stage.substr(served.size())) + what, std::move(renamed));
    }
    return out;
  }

 private:
  /// The stage that a name stands for: rules call those that they add after those that they serve (`conv_acc`). Empty
  /// when it is none of the workload's.
  std::string served_of(const std::string& name) const {
    for (size_t length = name.size(); length != std::string::npos && length > 0; length = name.rfind('_', length - 1))
      if (const std::string known = name.substr(0, length); stages_.count(known)) return known;
    return {};
  }
  std::string loop_of(const std::string& served, const std::string& name) const {
    const auto own = loops_.find(served);
    if (own != loops_.end())
      if (const auto known = own->second.find(name); known != own->second.end()) return known->second;
    for (const auto& [stage, loops] : loops_)  // of a reader at whose loop the stage is computed
      if (const auto known = loops.find(name); known != loops.end()) return known->second;
    return name;
  }

  std::map<std::string, std::string> stages_;
  std::map<std::string, std::map<std::string, std::string>> loops_;  // by stage
};

/// What was not left to the rules' preference.
Decisions beyond_default(const KnownGood& known) {
  PreferredChooser preferred;
  const Result<Candidate> usual = Space(known.workload, known.request).make(preferred);
  if (!usual) return known.decisions;
  Decisions out;
  for (const auto& [name, value] : known.decisions.items()) {
    const ChoiceValue* its = usual->decisions.find(name);
    if (!its || *its != value) out.set(name, value);
  }
  return out;
}

}  // namespace

double task_distance(const Workload& a, int a_threads, const Workload& b, int b_threads) {
  const std::vector<std::pair<Stage, Stage>> pairs = partners(a, b);
  if (pairs.empty()) return kUnlike;
  double distance =
      kThreads * std::abs(std::log2(static_cast<double>(std::max(1, a_threads)) / std::max(1, b_threads)));
  const auto more = static_cast<double>(computed(a).size()) - static_cast<double>(computed(b).size());
  distance += kStage * std::abs(more);
  const bool has_reductions = !reductions(a).empty();
  for (size_t k = 0; k < pairs.size(); ++k) {
    const auto& [x, y] = pairs[k];
    // Loops of other stages follow those of the reductions; without any, the last stage stands for all.
    if (has_reductions ? !x->reducer.has_value() : k + 1 < pairs.size()) continue;
    distance += axes_apart(x->axes, y->axes) + axes_apart(x->reduce_axes, y->reduce_axes);
    if (has_reductions && k + 1 == reductions(a).size()) break;
  }
  return distance;
}

std::vector<Decisions> carried_over(const Space& space, std::span<const KnownGood> known, size_t count) {
  const int threads = space.request().threads;
  // Schedules of one task stand together: its number, and the best of it first.
  struct Near {
    double distance;
    std::vector<const KnownGood*> its;
  };
  std::map<std::string, Near> tasks;
  for (const KnownGood& good : known) {
    if (!(good.gain > kWorthIt)) continue;
    const double distance = task_distance(good.workload, good.request.threads, space.workload(), threads);
    if (!std::isfinite(distance)) continue;
    Near& near = tasks[to_text(good.workload) + "|" + std::to_string(good.request.threads)];
    near.distance = distance;
    near.its.push_back(&good);
  }
  std::vector<Near> order;
  for (auto& [text, near] : tasks) {
    std::stable_sort(near.its.begin(), near.its.end(),
                     [](const KnownGood* a, const KnownGood* b) { return a->gain > b->gain; });
    near.its.resize(std::min(near.its.size(), kOfATask));
    order.push_back(std::move(near));
  }
  std::stable_sort(order.begin(), order.end(), [](const Near& a, const Near& b) { return a.distance < b.distance; });
  order.resize(std::min(order.size(), kTasksAsked));
  std::vector<Decisions> out;
  const auto add = [&](const Decisions& decisions) {
    if (out.size() < count && std::find(out.begin(), out.end(), decisions) == out.end()) out.push_back(decisions);
  };
  // The best of each near task, then its second best.
  for (size_t place = 0; place < kOfATask; ++place)
    for (const Near& near : order) {
      if (place >= near.its.size()) continue;
      const KnownGood& good = *near.its[place];
      const Renaming renamed(good.workload, space.workload());
      const Decisions beyond = beyond_default(good);
      if (!beyond.empty()) add(renamed(beyond));
      add(renamed(good.decisions));
    }
  return out;
}

}  // namespace tensmith
