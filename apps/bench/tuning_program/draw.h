/// Candidates as cost models meet them in a search.
#pragma once

#include <memory>
#include <vector>

#include "apps/bench/tuning_program/bench_task.h"

namespace tensmith::bench {

/// Up to `count` of the task, the default first: drawn from the whole space, and derived from good ones. Measures what
/// the store does not know; the same store gives the same ones.
std::vector<std::shared_ptr<const Candidate>> drawn_candidates(BenchTask& task, int count);

}  // namespace tensmith::bench
