/// Random workloads and random steps on them, for tests that any legal schedule computes what its workload says.
#pragma once

#include <iterator>

#include "runtime/base/rng.h"
#include "schedule/schedule.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {

/// An element of a list that is not empty.
template <typename List>
const auto& pick(const List& list, Rng& rng) {
  return list[rng.below(std::size(list))];
}

/// One to five stages of random kinds over each other (elementwise, stencils, padded and reversed reads, reductions
/// with conditions and start values, products, convolutions, several outputs, arg max), odd and even sizes, some of
/// them symbolic.
SizedWorkload random_workload(Rng& rng);

/// A random step of a random primitive that fits the schema; most are legal, some are not.
Step random_step(const ScheduleState& state, Rng& rng);

/// A schedule with up to `count` random legal steps.
Schedule random_schedule(const Workload& workload, int count, Rng& rng);

}  // namespace tensmith
