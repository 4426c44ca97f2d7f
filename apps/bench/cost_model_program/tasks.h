/// The tasks on which cost models are judged.
#pragma once

#include <string>
#include <vector>

#include "autotune/default_schedule.h"
#include "tensor/workload.h"

namespace tensmith::bench {

struct JudgedTask {
  std::string name;
  Workload workload;
  ScheduleRequest request;
};

/// Products, convolutions, pooling, reductions and chains in sizes that fit L1, L2 and L3, some of them odd. Those of
/// several threads have the number in their name.
std::vector<JudgedTask> judged_tasks(const Target& target);

}  // namespace tensmith::bench
