/// The kernels of a compiled model as tasks of the auto-scheduler.
#pragma once

#include <string>
#include <vector>

#include "apps/driver/program.h"
#include "autotune/search/tuner.h"

namespace tensmith {

/// One task for each distinct kernel, in the program's order, weighted by how often it is called. Kernels that are
/// equal in workload, layouts and threads are one already.
std::vector<TuningTask> tuning_tasks(const CompiledProgram& program, bool fast_math, bool contract_fma);

/// `k3 conv+relu 1x64x56x56`: what people know a kernel by.
std::string tuning_label(const CompiledKernel& kernel);

}  // namespace tensmith
