/// CPU features as the processor states them: the requirement record and its check, in C, because exported libraries
/// check before they run any generated code.
#ifndef TENSMITH_RUNTIME_BASE_CPU_CHECK_H
#define TENSMITH_RUNTIME_BASE_CPU_CHECK_H

#include <stdint.h>

/* Functions of the C core: external in the tool, static inside the one support object of an exported library. */
#ifndef TS_C_API
#ifdef __cplusplus
#define TS_C_API extern "C"
#else
#define TS_C_API extern
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Where a feature bit stands. */
enum tensmith_cpu_bit_kind {
  TENSMITH_CPUID = 0, /* bit of cpuid(leaf, subleaf), register 0 eax, 1 ebx, 2 ecx, 3 edx */
  TENSMITH_HWCAP = 1, /* AArch64: bit of getauxval(AT_HWCAP) */
  TENSMITH_HWCAP2 = 2 /* AArch64: bit of getauxval(AT_HWCAP2) */
};

/* One CPU feature that generated code needs: `name` is LLVM's name and appears in the error text. */
struct tensmith_cpu_requirement {
  const char* name;
  uint32_t kind; /* enum tensmith_cpu_bit_kind */
  uint32_t leaf;
  uint32_t subleaf;
  uint32_t reg;
  uint32_t bit;
  uint32_t xcr0; /* bits that the operating system must have set in XCR0 (register state it saves) */
};
typedef struct tensmith_cpu_requirement tensmith_cpu_requirement;

#ifdef __cplusplus
}
#endif

/* 1 if this CPU and operating system offer the feature, else 0 (also for another architecture). */
TS_C_API int32_t tensmith_cpu_has(const tensmith_cpu_requirement* requirement);
/* Index of the first requirement that is not met, or -1. */
TS_C_API int32_t tensmith_cpu_first_missing(const tensmith_cpu_requirement* requirements, int32_t count);

#endif
