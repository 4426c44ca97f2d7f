/* Asks the CPU for features, in C, because exported libraries do so before they run any generated code. */
#ifndef TENSMITH_RUNTIME_BASE_CPU_CHECK_H
#define TENSMITH_RUNTIME_BASE_CPU_CHECK_H

#include "runtime/base/c_core.h"
#include "runtime/base/cpu_requirement.h"

/* 1 if this CPU and operating system offer the feature, else 0 (also for another architecture). */
TS_C_API int32_t tensmith_cpu_has(const tensmith_cpu_requirement* requirement);
/* Index of the first requirement that is not met, or -1. */
TS_C_API int32_t tensmith_cpu_first_missing(const tensmith_cpu_requirement* requirements, int32_t count);

#endif
