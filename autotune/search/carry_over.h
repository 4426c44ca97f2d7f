/// What was found for one task as first candidates of another one of the same structure.
#pragma once

#include <span>
#include <vector>

#include "autotune/space/space.h"

namespace tensmith {

/// A schedule that did well.
struct KnownGood {
  Workload workload;
  ScheduleRequest request;
  Decisions decisions;
  double gain = 1;  ///< the default's time to its own
};

/// How much the loops of two tasks differ: 0 for the same ones, about 1 for each doubling of an extent, infinite where
/// their reductions have other axes. Names, and what is computed, have no influence.
double task_distance(const Workload& a, int a_threads, const Workload& b, int b_threads);

/// Up to `count` lists of decisions to be replayed in the space, those of the nearest tasks first. Names of stages and
/// loops are those of the space. Of each known one first what differs from its own default, since the rest is better
/// left to what the rules make of the new extents; then all of its decisions. What is no faster than its default gives
/// nothing. Cost: a millisecond a known one that is near.
std::vector<Decisions> carried_over(const Space& space, std::span<const KnownGood> known, size_t count);

}  // namespace tensmith
