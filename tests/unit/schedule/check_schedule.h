/// Runs schedules in tests: whatever the steps, the result must be that of the workload's plain loops.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/lower/lowering.h"
#include "tests/support/workloads.h"

namespace tensmith {

/// A workload with values for its symbolic dims.
struct SizedWorkload {
  Workload workload;
  std::vector<int64_t> dims;
};
/// The workload that a PrimitiveSample names, in small, odd sizes. Errors: InternalError for an unknown name.
SizedWorkload sample_workload(const std::string& name);

/// A schedule with these steps (text form). Errors: InternalError for a text that does not parse; ScheduleError.
Schedule make_schedule(const Workload& workload, const std::vector<std::string>& steps);

/// How a schedule is run.
struct RunOptions {
  bool code = false;        ///< also as machine code
  uint64_t seed = 1;        ///< of the inputs
  int* unproven = nullptr;  ///< counts kernels in which an access could not be proven in bounds; the run checks those
  int* races = nullptr;     ///< counts kernels whose parallel loops could not be proven free of races; as above
};
/// Lowers the schedule, runs it on random inputs in the layouts that it asks for, and compares with reference_loops.
/// All memory that a kernel may not read before writing is poisoned with NaN or a bit pattern. Parallel loops run
/// forwards and backwards. Returns nothing, or what is wrong. Errors: what `lower` throws.
std::optional<std::string> difference(const Schedule& schedule, const std::vector<int64_t>& dims,
                                      const RunOptions& options = {});

/// Fails the test unless the steps are legal, lower and give the workload's results, by interpretation and as machine
/// code.
void expect_correct(const SizedWorkload& sized, const std::vector<std::string>& steps);

/// The loops behind the pass `pass` of the lowering table ("loop_nests" for those before any pass, "" for the end).
std::string lowered_text(const Schedule& schedule, const std::string& pass = {});

}  // namespace tensmith
