/// What the measured candidates of a task say of others by the decisions that they share.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "autotune/space/decisions.h"

namespace tensmith {

/// Chooses what to measure next: a Gaussian process over decisions corrects a cost model by what was measured of this
/// task, and of a pool those are taken whose expected improvement on the best one is largest. Where the cost model is
/// wrong about a decision (or does not see it), a few measurements say so; what is unlike all that was measured is
/// uncertain and so worth a look; and of candidates that are alike one goes into a batch, because it will tell of the
/// others. Knows nothing of operators, sizes or names. The same calls give the same answers.
class DecisionModel {
 public:
  /// A measured candidate. Units: log2 of microseconds; `expected`: the same by the cost model, up to a constant.
  struct Known {
    const Decisions* decisions = nullptr;
    double expected = 0, measured = 0;
  };
  struct Unknown {
    const Decisions* decisions = nullptr;
    double expected = 0;
  };

  /// Learns; what was learned before is forgotten. Nothing known is no error. `error`: how far from what was measured
  /// earlier guesses were, in the mean of squares; a cost model that learned from these very measurements looks better
  /// than it is. 0: not known.
  /// Cost: the cube of the number of candidates; milliseconds for 128.
  void fit(std::span<const Known> known, double error = 0);

  struct Choice {
    size_t index = 0;
    double mean = 0;  ///< Units: as measured; what is expected of it
  };
  /// Up to `count` of the pool, best first. The first `under_way` of it were chosen before and are not chosen again,
  /// but their results will come.
  std::vector<Choice> choose(std::span<const Unknown> pool, size_t count, size_t under_way = 0);

  /// What it expects of the pool. Units: as measured; its own uncertainty as a standard deviation.
  struct Guess {
    double mean = 0, deviation = 0;
  };
  std::vector<Guess> guess(std::span<const Unknown> pool);

 private:
  /// Decisions as numbers: by identity of the name, the value on the scale on which distances are measured.
  struct Coded {
    std::vector<std::pair<int, double>> values;  ///< ordered by name
  };
  Coded code(const Decisions& decisions);
  static double distance(const Coded& a, const Coded& b);
  double covariance(const Coded& a, const Coded& b) const;
  double mean_of(double expected) const { return offset_ + slope_ * expected; }
  /// Rows: L^-1 k of each of the pool. Shapes: [pool, known].
  std::vector<std::vector<double>> whitened(const std::vector<Coded>& pool) const;

  std::unordered_map<std::string, int> names_, words_;
  std::vector<Coded> known_;
  std::vector<double> factor_;   ///< Cholesky factor of the covariance, lower, row by row
  std::vector<double> forward_;  ///< L^-1 of the residuals
  double best_ = 0, offset_ = 0, slope_ = 1, variance_ = 1, length_ = 2;
};

}  // namespace tensmith
