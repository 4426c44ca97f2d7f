/// What is measured: a workload in its surroundings, and candidates for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/default_schedule.h"
#include "codegen/artifact.h"
#include "runtime/base/json.h"
#include "schedule/step.h"

namespace tensmith {

/// A workload with everything that its code depends on beside the schedule, and how it is to be timed.
struct MeasureTask {
  Workload workload;  ///< of fixed sizes
  ScheduleRequest request;
  bool fast_math = false, contract_fma = true;  ///< as in CodegenOptions
  /// The weights of the model around it: constants are cycled through copies of that many bytes, so that they come from
  /// where they come from in the model. 0: they stay in the caches. Units: bytes.
  int64_t cold_bytes = 0;
  uint64_t seed = 0;  ///< of the input values
};
/// For workers; the workload as its text.
Json to_json(const MeasureTask& task);
/// Errors: bad-task naming the field; parse-error; task-open-dims.
Result<MeasureTask> measure_task_from_json(const Json& json);
/// Null if workers can take the task: its sizes are fixed and its text reads back to the same stages and loops, so that
/// steps mean the same there. Errors: task-open-dims, task-names, parse-error.
Result<void> check_measure_task(const MeasureTask& task);

/// Code of a kernel with what is needed to call it.
struct BuiltKernel {
  ObjectCode object;     ///< only its bytes
  std::string function;  ///< symbol
  int num_inputs = 0, num_outputs = 0;
  std::vector<int64_t> buffer_bytes;  ///< of all parameters: inputs, outputs, workspaces
  std::vector<Layout> input_layouts, output_layouts;
};
/// Everything but the code.
Json to_json(const BuiltKernel& kernel);
/// Errors: bad-kernel naming the field.
Result<BuiltKernel> built_kernel_from_json(const Json& json);

/// One thing to measure: a schedule as steps, or code that was made elsewhere.
struct MeasureCandidate {
  std::vector<Step> steps;
  std::optional<BuiltKernel> built;  ///< measured as it is; `steps` are ignored
  bool use_guard = true;             ///< let the assembly guard refuse it
  /// For winners: a third set of inputs, and windows until the cap.
  bool thorough = false;
  /// The task's incumbent from now on, if valid, even when it is slower than the one before.
  bool make_incumbent = false;
};

}  // namespace tensmith
