/// Makes the kernels of a program: schedule, loops, code, on all cores.
#pragma once

#include <vector>

#include "apps/driver/compile.h"
#include "apps/driver/observer.h"
#include "autotune/default_schedule.h"
#include "graph/partition/group_workload.h"

namespace tensmith {

/// A kernel to be made and who asked for it.
struct KernelTask {
  graph::GroupWorkload work;
  ScheduleRequest request;
  graph::Group group;  ///< the first one that uses it
  CompiledKernel* info = nullptr;
};

/// Equal for tasks that one kernel serves.
std::string kernel_key(const graph::GroupWorkload& work, const ScheduleRequest& request);
/// `k7_conv_relu`: the number and the first operators.
std::string kernel_name(const graph::Graph& graph, const graph::Group& group, size_t number);

/// Runs all tasks on as many threads as the switch `compile-threads` and the cores allow and fills their infos; where
/// the system refuses threads, those that it gives do the work. A default schedule that turns out illegal is replaced
/// by plain loops, which `is_plain` and `explanation` say.
/// Errors: of the first task that has one; ReproducibleError when it is our fault; CompilationStopped.
std::vector<ObjectCode> make_kernels(const graph::Graph& graph, std::vector<KernelTask>& tasks,
                                     const CompileOptions& options, CompileObserver& observer);

}  // namespace tensmith
