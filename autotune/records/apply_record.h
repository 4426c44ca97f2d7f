/// Makes a kernel's schedule from a record.
#pragma once

#include "autotune/records/record.h"

namespace tensmith {

/// The record's schedule for the workload, with the layouts that the request fixes: what is not legal, or asks for
/// other layouts of inputs and outputs, is refused.
/// Errors: those of replay; record-layout.
Result<Schedule> apply_record(const Workload& workload, const ScheduleRequest& request, const TuningRecord& record);

}  // namespace tensmith
