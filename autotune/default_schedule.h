/// The default schedule of a workload: chosen by an analytic model from the target's figures, without running anything.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/target.h"
#include "schedule/schedule.h"

namespace tensmith {

/// What the surroundings of a kernel fix.
struct ScheduleRequest {
  Target target;
  int threads = 1;
  std::vector<Layout> input_layouts,
      output_layouts;  ///< by input and output; default-constructed: row-major (constants: free)
};

/// A legal schedule for any workload. Nothing in it depends on what operators the workload came from: stages are told
/// apart by their loops, reductions and access strides alone. `explanation` (may be null) gets a line for each decision
/// with its figures.
Schedule default_schedule(const Workload& workload, const ScheduleRequest& request, std::string* explanation = nullptr);

/// The workload as it stands, serial and at root, with the layouts of the request: legal whenever the workload is.
Schedule plain_schedule(const Workload& workload, const ScheduleRequest& request);

}  // namespace tensmith
