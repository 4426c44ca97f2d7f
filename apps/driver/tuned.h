/// Which kernels of a program stand as records of tuning have them, and why the others do not.
#pragma once

#include <string>
#include <vector>

#include "apps/driver/kernels.h"
#include "apps/driver/program.h"

namespace tensmith {

/// The schedule of the record that `options.records` has for the kernel, or nothing; `task.info->tuning` says which one
/// or why not.
std::optional<Schedule> recorded_schedule(KernelTask& task, const CompileOptions& options);

/// One line: `records: 12 of 20 kernels as tuned; by default: 6 no record of this workload, 2 refused`; and how many
/// choices in the graph are a record's, if any is.
std::string tuning_summary(const CompiledProgram& program);

/// A line for each kernel: its name, as tuned or by default, and why.
std::string tuning_list(const std::vector<const CompiledKernel*>& kernels);

}  // namespace tensmith
