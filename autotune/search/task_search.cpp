#include "autotune/search/task_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensmith {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Candidates that are drawn and ranked before the first ones are measured, and those of a round of evolution.
constexpr int kDrafts = 192, kPool = 96;
// The first measured ones are the ranking's best.
constexpr int kProbes = 16;
// Who may have children. Nobody else is remembered: a schedule takes some 20 KB.
constexpr size_t kParents = 12;
// Of a round, what is drawn without asking the model; it would otherwise never learn what it thinks little of.
constexpr double kBlind = 0.03;
// A gain that is one.
constexpr double kGain = 0.005;
// Measured candidates by whose decisions others are judged.
constexpr size_t kWeighed = 128;
// Draws in vain before a space counts as seen.
constexpr int kVainDraws = 400;
// Points of a space that are counted through for new ones when draws give none; some tenths of a millisecond each.
constexpr int64_t kCountedAtMost = 4096;

/// The schedule, however it was decided.
uint64_t hash_of(const Schedule& schedule) {
  uint64_t hash = 1469598103934665603ull;
  for (const char c : schedule.to_string()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace

Result<SearchStrategy> parse_search_strategy(std::string_view text) {
  if (text == "evolve") return SearchStrategy::kEvolve;
  if (text == "random") return SearchStrategy::kRandom;
  if (text == "grid") return SearchStrategy::kGrid;
  if (text == "anneal") return SearchStrategy::kAnneal;
  return Failure{"bad-search", "search: expected evolve, random, grid or anneal, got '" + std::string(text) + "'"};
}

int batch_size(int64_t proposed, int batch) {
  constexpr int kBatchesThatTellMost = 4;
  return proposed < kBatchesThatTellMost * batch ? std::max(1, batch / 2) : batch;
}

TaskSearch::TaskSearch(Space space, SearchStrategy strategy, uint64_t seed, CandidateScorer& scorer)
    : space_(std::move(space)),
      strategy_(strategy),
      rng_(seed, to_text(space_.workload())),
      scorer_(scorer),
      default_us_(kNever),
      gain_from_us_(kNever),
      here_us_(kNever) {}

double TaskSearch::best_us() const { return measured_.empty() ? kNever : measured_.front().cost_us; }
std::shared_ptr<const Candidate> TaskSearch::best() const {
  return measured_.empty() ? nullptr : measured_.front().candidate;
}

std::vector<std::shared_ptr<const Candidate>> TaskSearch::best_few(int count, double within) const {
  std::vector<std::shared_ptr<const Candidate>> list;
  for (const Measured& m : measured_)
    if (list.size() < static_cast<size_t>(count) && m.cost_us <= within * best_us()) list.push_back(m.candidate);
  return list;
}

bool TaskSearch::add(Pool& pool, Result<Candidate> candidate, const char* origin) {
  if (!candidate) return false;
  const uint64_t hash = hash_of(candidate->schedule);
  if (seen_.count(hash)) return false;
  for (const Proposal& known : pool)
    if (known.hash == hash) return false;
  pool.push_back({std::make_shared<const Candidate>(std::move(candidate).value()), hash, origin, kUnknown, kUnknown});
  return true;
}

void TaskSearch::claim(const std::vector<Proposal>& proposals) {
  for (const Proposal& proposal : proposals) {
    seen_.insert(proposal.hash);
    under_way_.push_back(proposal);
  }
  // Some are never told: a worker was lost.
  constexpr size_t kMostUnderWay = 64;
  if (under_way_.size() > kMostUnderWay)
    under_way_.erase(under_way_.begin(), under_way_.end() - static_cast<std::ptrdiff_t>(kMostUnderWay));
}

std::vector<Proposal> TaskSearch::take_best(Pool pool, int count, double blind) {
  const auto wanted = static_cast<size_t>(std::max(0, count));
  std::vector<Proposal> taken;
  if (blind > 0) {
    // Blind ones first, so that what is left is still ordered.
    for (size_t k = 0; k < wanted && pool.size() > wanted - taken.size(); ++k)
      if (rng_.chance(blind)) {
        const auto at = pool.begin() + static_cast<std::ptrdiff_t>(rng_.below(pool.size()));
        taken.push_back(*at);
        pool.erase(at);
      }
  }
  // What is known and what is under way beside the pool: the cost model is asked for all of them at once, for only the
  // differences within one answer count.
  std::vector<const Candidate*> candidates;
  for (const Proposal& proposal : under_way_) candidates.push_back(proposal.candidate.get());
  for (const Proposal& proposal : pool) candidates.push_back(proposal.candidate.get());
  std::vector<const Decisions*> learned;
  for (const Weighed& weighed : weighed_) learned.push_back(&weighed.decisions);
  const std::vector<double> costs = scorer_.score(space_, candidates, learned);
  std::vector<DecisionModel::Unknown> open;
  for (size_t k = 0; k < candidates.size(); ++k) open.push_back({&candidates[k]->decisions, std::log2(costs[k])});
  std::vector<DecisionModel::Known> known;
  for (size_t k = 0; k < weighed_.size(); ++k) {
    // A scorer that remembers nothing does not learn either: its word stands.
    const double now = std::log2(costs[candidates.size() + k]);
    const double scored = std::isfinite(now) ? now : weighed_[k].scored;
    if (std::isfinite(scored)) known.push_back({&weighed_[k].decisions, scored, std::log2(weighed_[k].cost_us)});
  }
  decision_model_.fit(known, guesses_ >= 4 ? std::sqrt(errors_ / guesses_) : 0);
  for (const DecisionModel::Choice& choice : decision_model_.choose(open, wanted - taken.size(), under_way_.size())) {
    taken.push_back(pool[choice.index - under_way_.size()]);
    taken.back().scored = open[choice.index].expected;
    if (!known.empty()) taken.back().expected = choice.mean;
  }
  return taken;
}

std::vector<Proposal> TaskSearch::probe(int count) {
  Pool pool;
  if (!started_) {
    started_ = true;
    PreferredChooser preferred;
    Result<Candidate> usual = space_.make(preferred);
    TS_CHECK(usual.ok()) << "the default schedule is illegal: " << usual.failure().message;
    default_ = here_ = std::make_shared<const Candidate>(std::move(usual).value());
    std::vector<Proposal> first{{default_, hash_of(default_->schedule), "default", kUnknown, kUnknown}};
    claim(first);
    if (strategy_ == SearchStrategy::kEvolve && count > 1) {
      const std::vector<Proposal> more = probe(count - 1);
      first.insert(first.end(), more.begin(), more.end());
    }
    return first;
  }
  if (!suggested_.empty()) {
    Pool carried;
    while (!suggested_.empty() && carried.size() < static_cast<size_t>(count)) {
      add(carried, replay_decisions(space_, suggested_.front()), "carried");
      suggested_.erase(suggested_.begin());
    }
    claim(carried);
    const int left = count - static_cast<int>(carried.size());
    if (left > 0) {
      const std::vector<Proposal> more = probe(left);
      carried.insert(carried.end(), more.begin(), more.end());
    }
    return carried;
  }
  // What differs from the default in one decision or two, and draws from the whole space.
  for (int k = 0; k < kDrafts; ++k) {
    if (k % 2 == 0) add(pool, mutate(space_, *default_, rng_, 1 + static_cast<int>(rng_.below(2))), "probe");
    else add(pool, sample(space_, rng_, Draw::kByCost), "probe");
  }
  std::vector<Proposal> taken = take_best(std::move(pool), count, 0);
  claim(taken);
  return taken;
}

const TaskSearch::Measured& TaskSearch::parent() {
  // By rank: the best one is drawn about as often as the next two together.
  const size_t parents = std::min(kParents, measured_.size());
  double total = 0;
  for (size_t k = 0; k < parents; ++k) total += 1.0 / static_cast<double>(k + 1);
  double at = rng_.uniform() * total;
  for (size_t k = 0; k < parents; ++k) {
    at -= 1.0 / static_cast<double>(k + 1);
    if (at <= 0) return measured_[k];
  }
  return measured_[parents - 1];
}

void TaskSearch::add_neighbours(Pool& pool) {
  const std::shared_ptr<const Candidate> from = best();
  if (!from || surrounded_ == from) return;
  const size_t before = pool.size();
  for (const ChosenPoint& chosen : from->points)
    for (size_t option = 0; option < chosen.point.options.size(); ++option) {
      if (option == chosen.taken) continue;
      Decisions decisions = from->decisions;
      decisions.set(chosen.point.name(), chosen.point.options[option].value);
      add(pool, replay_decisions(space_, decisions), "neighbour");
    }
  if (pool.size() == before) surrounded_ = from;
}

std::vector<Proposal> TaskSearch::evolve(int count) {
  Pool pool;
  add_neighbours(pool);
  const size_t neighbours = pool.size();
  for (int k = 0; k < 4 * kPool && pool.size() < neighbours + kPool; ++k) {
    const double draw = rng_.uniform();
    if (measured_.empty() || draw < 0.15) add(pool, sample(space_, rng_, Draw::kByCost), "random");
    else if (draw < 0.3 && measured_.size() > 1)
      add(pool, crossover(space_, *parent().candidate, *parent().candidate, rng_), "crossover");
    else add(pool, mutate(space_, *parent().candidate, rng_, 1 + static_cast<int>(rng_.below(3))), "mutate");
  }
  std::vector<Proposal> taken = take_best(std::move(pool), count, kBlind);
  claim(taken);
  return taken;
}

std::vector<Proposal> TaskSearch::draw_random(int count) {
  Pool pool;
  for (int vain = 0; vain < kVainDraws && pool.size() < static_cast<size_t>(count);)
    if (!add(pool, sample(space_, rng_, Draw::kUniform), "random")) ++vain;
  claim(pool);
  return pool;
}

std::vector<Proposal> TaskSearch::count_on(int count, int64_t limit) {
  Pool pool;
  for (int64_t k = 0; k < limit && !counted_ && pool.size() < static_cast<size_t>(count); ++k) {
    add(pool, space_.make(counter_), "grid");
    counted_ = !counter_.next();
  }
  claim(pool);
  return pool;
}

std::vector<Proposal> TaskSearch::walk(int count) {
  Pool pool;
  for (int vain = 0; vain < kVainDraws && pool.size() < static_cast<size_t>(count);)
    if (!add(pool, mutate(space_, *here_, rng_, 1 + static_cast<int>(rng_.below(2))), "walk")) ++vain;
  claim(pool);
  return pool;
}

std::vector<Proposal> TaskSearch::propose(int count) {
  if (count <= 0 || exhausted_) return {};
  if (!started_) return probe(count);
  std::vector<Proposal> taken;
  switch (strategy_) {
    case SearchStrategy::kRandom: break;
    case SearchStrategy::kGrid: taken = count_on(count, std::numeric_limits<int64_t>::max()); break;
    case SearchStrategy::kAnneal: taken = walk(count); break;
    case SearchStrategy::kEvolve: taken = proposed() < kProbes ? probe(count) : evolve(count); break;
  }
  if (taken.empty() && strategy_ != SearchStrategy::kGrid) taken = draw_random(count);
  // What draws hardly ever come by is still to be seen in a small space.
  if (taken.empty() && strategy_ == SearchStrategy::kEvolve) taken = count_on(count, kCountedAtMost);
  exhausted_ = taken.empty();
  return taken;
}

void TaskSearch::tell(const Proposal& proposal, double cost_us) {
  ++told_;
  const auto known = std::find_if(under_way_.begin(), under_way_.end(),
                                  [&](const Proposal& other) { return other.hash == proposal.hash; });
  if (known != under_way_.end()) under_way_.erase(known);
  if (std::isfinite(cost_us) && std::isfinite(proposal.expected)) {
    // A tenfold surprise is no worse than a threefold one.
    constexpr double kFading = 0.97, kSurprise = 1.5;
    const double error = std::clamp(std::log2(cost_us) - proposal.expected, -kSurprise, kSurprise);
    errors_ = kFading * errors_ + error * error;
    guesses_ = kFading * guesses_ + 1;
  }
  scorer_.learn(space_, *proposal.candidate, cost_us);
  if (std::string_view(proposal.origin) == "default") default_us_ = cost_us;
  if (std::isfinite(cost_us)) {
    const auto at = std::upper_bound(measured_.begin(), measured_.end(), cost_us,
                                     [](double cost, const Measured& m) { return cost < m.cost_us; });
    measured_.insert(at, {proposal.candidate, cost_us});
    if (measured_.size() > kParents) measured_.pop_back();
    const auto place = std::upper_bound(weighed_.begin(), weighed_.end(), cost_us,
                                        [](double cost, const Weighed& w) { return cost < w.cost_us; });
    weighed_.insert(place, {proposal.candidate->decisions, cost_us, proposal.scored});
    if (weighed_.size() > kWeighed) weighed_.pop_back();
    if (best_us() < gain_from_us_ * (1 - kGain)) {
      gain_from_us_ = best_us();
      told_at_gain_ = told_;
    }
  }
  constexpr int64_t kRound = 8;
  idle_rounds_ = static_cast<int>((told_ - told_at_gain_) / kRound);
  if (strategy_ != SearchStrategy::kAnneal || !std::isfinite(cost_us)) return;
  // Metropolis on the ratio; from taking a tenth more two times in three down to hardly ever.
  const double temperature = 0.25 / std::sqrt(static_cast<double>(told_));
  if (!std::isfinite(here_us_) || cost_us < here_us_ ||
      rng_.chance(std::exp(-(cost_us / here_us_ - 1) / temperature))) {
    here_ = proposal.candidate;
    here_us_ = cost_us;
  }
}

}  // namespace tensmith
