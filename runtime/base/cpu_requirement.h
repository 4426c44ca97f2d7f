/* A CPU feature that generated code needs, as data: where the CPU states it. Part of the header of every exported
 * library. */
#ifndef TENSMITH_RUNTIME_BASE_CPU_REQUIREMENT_H
#define TENSMITH_RUNTIME_BASE_CPU_REQUIREMENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of a feature's place. */
#define TENSMITH_CPUID 0  /* bit of cpuid(leaf, subleaf); reg 0 eax, 1 ebx, 2 ecx, 3 edx */
#define TENSMITH_HWCAP 1  /* AArch64: bit of getauxval(AT_HWCAP) */
#define TENSMITH_HWCAP2 2 /* AArch64: bit of getauxval(AT_HWCAP2) */

typedef struct tensmith_cpu_requirement {
  const char* name; /* LLVM's name of the feature; stands in messages */
  uint32_t kind;    /* TENSMITH_CPUID, TENSMITH_HWCAP or TENSMITH_HWCAP2 */
  uint32_t leaf;
  uint32_t subleaf;
  uint32_t reg;
  uint32_t bit;
  uint32_t xcr0; /* bits that the operating system must have set in XCR0: register state that it saves */
} tensmith_cpu_requirement;

#ifdef __cplusplus
}
#endif

#endif /* TENSMITH_RUNTIME_BASE_CPU_REQUIREMENT_H */
