#include "autotune/search/decision_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "runtime/base/error.h"

namespace tensmith {

namespace {

/// Units: log2. A measurement that is 1.5 % off, and how wrong a cost model is before anything is known.
constexpr double kNoise = 0.021, kModelError = 0.4;
/// Beyond that much slower than the best nobody cares how slow; it would drown what tells good from very good.
constexpr double kSlowest = 1.5;
/// Numbers that differ by that many factors of two are as different as two words.
constexpr double kWhole = 2;
/// Decisions that only one of two candidates had to make: they took different ways before.
constexpr double kOnlyOne = 0.25;
/// How far candidates tell of each other, in decisions that differ.
constexpr double kLengths[] = {1, 2, 4, 8};
/// Measured candidates that are weighed at most; beyond them, the slowest say little.
constexpr size_t kMost = 160;

/// The lower Cholesky factor in place. Returns the sum of the logarithms of its diagonal.
double factorize(std::vector<double>& matrix, size_t n) {
  double logs = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= matrix[i * n + k] * matrix[j * n + k];
      if (i == j) {
        matrix[i * n + i] = std::sqrt(std::max(sum, 1e-9));
        logs += std::log(matrix[i * n + i]);
      } else {
        matrix[i * n + j] = sum / matrix[j * n + j];
      }
    }
  }
  return logs;
}

std::vector<double> solve_lower(const std::vector<double>& factor, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= factor[i * n + k] * b[k];
    b[i] /= factor[i * n + i];
  }
  return b;
}

/// Of a normal variable below `best`.
double expected_improvement(double best, double mean, double deviation) {
  if (deviation < 1e-9) return std::max(0.0, best - mean);
  const double z = (best - mean) / deviation;
  const double density = 0.3989422804 * std::exp(-z * z / 2), below = 0.5 * std::erfc(-z * 0.7071067812);
  return deviation * (z * below + density);
}

}  // namespace

DecisionModel::Coded DecisionModel::code(const Decisions& decisions) {
  Coded coded;
  for (const auto& [name, value] : decisions.items()) {
    const int id = names_.try_emplace(name, static_cast<int>(names_.size())).first->second;
    double at;
    if (const auto* number = std::get_if<int64_t>(&value)) {
      at = std::log2(static_cast<double>(std::max<int64_t>(*number, 0)) + 0.5);
    } else {
      // Words lie far apart from each other.
      const auto word = words_.try_emplace(std::get<std::string>(value), static_cast<int>(words_.size())).first;
      at = 100.0 * (1 + word->second);
    }
    coded.values.emplace_back(id, at);
  }
  std::sort(coded.values.begin(), coded.values.end());
  return coded;
}

double DecisionModel::distance(const Coded& a, const Coded& b) {
  double sum = 0;
  auto x = a.values.begin(), y = b.values.begin();
  while (x != a.values.end() || y != b.values.end()) {
    if (y == b.values.end() || (x != a.values.end() && x->first < y->first)) sum += kOnlyOne, ++x;
    else if (x == a.values.end() || y->first < x->first) sum += kOnlyOne, ++y;
    else {
      // Any difference is one: two neighbours of a tile's size may be a vector apart.
      if (const double apart = std::abs(x->second - y->second); apart > 0)
        sum += 0.4 + 0.6 * std::min(1.0, apart / kWhole);
      ++x, ++y;
    }
  }
  return sum;
}

double DecisionModel::covariance(const Coded& a, const Coded& b) const {
  return variance_ * std::exp(-distance(a, b) / length_);
}

void DecisionModel::fit(std::span<const Known> all, double error) {
  known_.clear();
  factor_.clear();
  forward_.clear();
  offset_ = 0;
  slope_ = 1;
  variance_ = kModelError * kModelError;
  length_ = 4;
  best_ = std::numeric_limits<double>::infinity();
  if (all.empty()) return;
  std::vector<Known> known(all.begin(), all.end());
  std::stable_sort(known.begin(), known.end(), [](const Known& a, const Known& b) { return a.measured < b.measured; });
  known.resize(std::min(known.size(), kMost));
  best_ = known[0].measured;
  const size_t n = known.size();
  std::vector<double> y(n), residual(n);
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (size_t k = 0; k < n; ++k) {
    y[k] = std::min(known[k].measured, best_ + kSlowest);
    mean_x += known[k].expected / static_cast<double>(n);
    mean_y += y[k] / static_cast<double>(n);
  }
  for (size_t k = 0; k < n; ++k) {
    xx += (known[k].expected - mean_x) * (known[k].expected - mean_x);
    xy += (known[k].expected - mean_x) * (y[k] - mean_y);
  }
  // Some measurements that agree with the model stand in for what is known of models.
  constexpr double kBelief = 1.0;
  slope_ = std::clamp((xy + kBelief) / (xx + kBelief), 0.2, 1.5);
  offset_ = mean_y - slope_ * mean_x;
  double square = 0;
  for (size_t k = 0; k < n; ++k) {
    residual[k] = y[k] - mean_of(known[k].expected);
    square += residual[k] * residual[k];
  }
  constexpr double kBelieved = 6;
  variance_ = (square + kBelieved * kModelError * kModelError / 4) / (static_cast<double>(n) + kBelieved);
  variance_ = std::max({0.003, variance_, error * error});
  for (const Known& k : known) known_.push_back(code(*k.decisions));
  std::vector<double> apart(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) apart[i * n + j] = distance(known_[i], known_[j]);
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    std::vector<double> matrix(n * n);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j)
        matrix[i * n + j] = variance_ * std::exp(-apart[i * n + j] / length) + (i == j ? kNoise * kNoise : 0);
    const double logs = factorize(matrix, n);
    std::vector<double> forward = solve_lower(matrix, residual);
    double fit = 0;
    for (const double v : forward) fit += v * v;
    // Before much is known, candidates tell of each other over some decisions.
    const double likelihood = -logs - fit / 2 - std::abs(std::log2(length / 4));
    if (likelihood <= best_likelihood) continue;
    best_likelihood = likelihood;
    length_ = length;
    factor_ = std::move(matrix);
    forward_ = std::move(forward);
  }
}

std::vector<std::vector<double>> DecisionModel::whitened(const std::vector<Coded>& pool) const {
  std::vector<std::vector<double>> rows;
  rows.reserve(pool.size());
  for (const Coded& p : pool) {
    std::vector<double> k(known_.size());
    for (size_t i = 0; i < known_.size(); ++i) k[i] = covariance(p, known_[i]);
    rows.push_back(solve_lower(factor_, std::move(k)));
  }
  return rows;
}

std::vector<DecisionModel::Guess> DecisionModel::guess(std::span<const Unknown> pool) {
  std::vector<Coded> coded;
  for (const Unknown& u : pool) coded.push_back(code(*u.decisions));
  const std::vector<std::vector<double>> rows = whitened(coded);
  std::vector<Guess> guesses;
  for (size_t p = 0; p < pool.size(); ++p) {
    Guess g{mean_of(pool[p].expected), variance_};
    for (size_t i = 0; i < known_.size(); ++i) {
      g.mean += rows[p][i] * forward_[i];
      g.deviation -= rows[p][i] * rows[p][i];
    }
    g.deviation = std::sqrt(std::max(0.0, g.deviation));
    guesses.push_back(g);
  }
  return guesses;
}

std::vector<DecisionModel::Choice> DecisionModel::choose(std::span<const Unknown> pool, size_t count,
                                                         size_t under_way) {
  const size_t n = pool.size();
  std::vector<Coded> coded;
  for (const Unknown& u : pool) coded.push_back(code(*u.decisions));
  const std::vector<std::vector<double>> rows = whitened(coded);
  std::vector<double> mean(n), variance(n, variance_);
  for (size_t p = 0; p < n; ++p) {
    mean[p] = mean_of(pool[p].expected);
    for (size_t i = 0; i < known_.size(); ++i) {
      mean[p] += rows[p][i] * forward_[i];
      variance[p] -= rows[p][i] * rows[p][i];
    }
  }
  double best = best_;
  if (!std::isfinite(best) && n > 0) best = *std::min_element(mean.begin(), mean.end());
  std::vector<Choice> taken;
  std::vector<bool> is_taken(n, false);
  // As if what is taken had come out as expected: what is alike is then less uncertain.
  std::vector<std::vector<double>> extra(n);
  under_way = std::min(under_way, n);
  for (size_t step = 0; step < std::min(count + under_way, n); ++step) {
    size_t next = n;
    double most = -1;
    for (size_t p = under_way; p < n && step >= under_way; ++p) {
      if (is_taken[p]) continue;
      const double value = expected_improvement(best, mean[p], std::sqrt(std::max(variance[p], 0.0)));
      if (next < n && (value < most || (value == most && mean[p] >= mean[next]))) continue;
      most = value;
      next = p;
    }
    if (step < under_way) next = step;
    else taken.push_back({next, mean[next]});
    is_taken[next] = true;
    const double own = std::sqrt(std::max(variance[next], 0.0) + kNoise * kNoise);
    for (size_t p = 0; p < n; ++p) {
      if (is_taken[p]) continue;
      double shared = covariance(coded[p], coded[next]);
      for (size_t i = 0; i < known_.size(); ++i) shared -= rows[p][i] * rows[next][i];
      for (size_t e = 0; e < extra[next].size(); ++e) shared -= extra[p][e] * extra[next][e];
      extra[p].push_back(shared / own);
      variance[p] -= extra[p].back() * extra[p].back();
    }
  }
  return taken;
}

}  // namespace tensmith
