/// Candidates compared thoroughly, in one process and in turns.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/bench/tuning_program/runs.h"

namespace tensmith::bench {

/// What finals found of a candidate.
struct Standing {
  double ratio = 0;   ///< its time to the default's: median of the rounds; infinite when it is not valid
  double spread = 0;  ///< largest ratio of a round to the smallest one, less 1
};

/// In each round the default becomes the incumbent and every candidate is measured beside it, with all windows and the
/// third set of inputs. Keys are texts of schedules. The default's own ratio, measured against itself, is among them:
/// how far it is from 1 says what the others are worth.
std::map<std::string, Standing> finals(MeasureSession& session, int task, const Candidate& usual,
                                       const std::vector<const Candidate*>& candidates, int rounds);

}  // namespace tensmith::bench
