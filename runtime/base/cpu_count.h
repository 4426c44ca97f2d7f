/* How many cores this process may really use, in C: the default number of threads here and in exported libraries. */
#ifndef TENSMITH_RUNTIME_BASE_CPU_COUNT_H
#define TENSMITH_RUNTIME_BASE_CPU_COUNT_H

#include "runtime/base/c_core.h"

/* Logical CPUs in this thread's affinity mask, at least 1. */
TS_C_API int32_t tensmith_affinity_cpus(void);
/* CPU time that the control groups (version 1 or 2) of this process allow, in thousandths of a CPU; 0 = no limit. */
TS_C_API int64_t tensmith_cgroup_milli_cpus(void);
/* Physical cores within the affinity mask, not more than the quota rounded up; at least 1. */
TS_C_API int32_t tensmith_usable_cores(void);

#endif
