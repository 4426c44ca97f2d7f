/* Reads cpuid and XCR0 (x86) or the auxiliary vector (AArch64). Plain C without allocation: part of exported libraries.
 */
#include "runtime/base/cpu_check.h"

#if defined(__x86_64__)

#include <cpuid.h>

static uint32_t ts_xcr0(void) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0; /* OSXSAVE: xgetbv may be used */
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

TS_C_API int32_t tensmith_cpu_has(const tensmith_cpu_requirement* requirement) {
  uint32_t regs[4] = {0, 0, 0, 0};
  if (requirement->kind != TENSMITH_CPUID || requirement->reg > 3 || requirement->bit > 31) return 0;
  if (!__get_cpuid_count(requirement->leaf, requirement->subleaf, &regs[0], &regs[1], &regs[2], &regs[3])) return 0;
  /* A sub-leaf past the last one answers with another leaf's data on old Intel CPUs: ask for the highest first. */
  if (requirement->leaf == 7 && requirement->subleaf > 0) {
    uint32_t top[4] = {0, 0, 0, 0};
    if (!__get_cpuid_count(7, 0, &top[0], &top[1], &top[2], &top[3]) || top[0] < requirement->subleaf) return 0;
  }
  if (!(regs[requirement->reg] >> requirement->bit & 1u)) return 0;
  return (ts_xcr0() & requirement->xcr0) == requirement->xcr0;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

TS_C_API int32_t tensmith_cpu_has(const tensmith_cpu_requirement* requirement) {
  unsigned long word;
  if (requirement->kind == TENSMITH_CPUID || requirement->bit > 63) return 0;
  word = getauxval(requirement->kind == TENSMITH_HWCAP ? AT_HWCAP : AT_HWCAP2);
  return (int32_t)(word >> requirement->bit & 1u);
}

#else

TS_C_API int32_t tensmith_cpu_has(const tensmith_cpu_requirement* requirement) {
  (void)requirement;
  return 0;
}

#endif

TS_C_API int32_t tensmith_cpu_first_missing(const tensmith_cpu_requirement* requirements, int32_t count) {
  int32_t i;
  for (i = 0; i < count; ++i)
    if (!tensmith_cpu_has(&requirements[i])) return i;
  return -1;
}
