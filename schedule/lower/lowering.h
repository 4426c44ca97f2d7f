/// From a schedule to loop IR that a code generator can take: one table of passes, each with its reason.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace tensmith {

/// What a pass may know beside the statement.
struct LowerOptions {
  int max_unroll = 4096;    ///< statements that unrolling may make in one kernel
  int64_t line_bytes = 64;  ///< of a cache line of the target
  bool verify_each = false;
  int pass_limit = -1;  ///< run only so many passes (bisecting); -1: all
  /// Called after each pass that changed something: (number, name, text is made by the callee when wanted).
  std::function<void(int, const char*, const LoopFunction&)> on_pass = nullptr;
  std::function<void(const char*, double ms)> on_time = nullptr;
};

/// A kernel ready for code generation.
struct LoweredKernel {
  LoopFunction function;  ///< buffers: inputs, outputs, workspaces; flat accesses
  int num_inputs = 0, num_outputs = 0, num_workspaces = 0;
  std::vector<Layout> input_layouts, output_layouts;  ///< how the caller must lay its tensors out
};

/// One row of the lowering table.
struct LowerPass {
  const char* name;
  const char* what;    ///< one sentence
  const char* reason;  ///< why it stands at this place
  Stmt (*run)(const Stmt&, const LowerOptions&);
};
std::span<const LowerPass> lowering_passes();

/// Lowers a schedule. Errors: ScheduleError with the loop nest when a bound or a scope cannot be met.
LoweredKernel lower(const Schedule& schedule, const LowerOptions& options = {});

}  // namespace tensmith
