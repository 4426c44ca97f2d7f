/// The CPU features that code generation knows: their LLVM names, what each one needs, and where the CPU states it.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/cpu_check.h"

namespace tensmith {

/// One feature of an instruction set.
struct CpuFeature {
  tensmith_cpu_requirement where;  ///< Name and bit.
  int level;                       ///< x86-64 level that contains it (1 to 4), 0 if none does; AArch64: 1 = baseline.
  const char* needs;               ///< The feature without which it cannot be, or "".
};

/// All features of x86-64, weaker ones first.
const std::vector<CpuFeature>& x86_features();
/// All features of AArch64 that we use.
const std::vector<CpuFeature>& aarch64_features();
/// The table for "x86_64" or "aarch64".
const std::vector<CpuFeature>& cpu_features(std::string_view arch);

/// A CPU kind that a target text may name.
struct CpuKind {
  const char* name;      ///< LLVM's name for it.
  const char* arch;      ///< "x86_64" or "aarch64".
  int level;             ///< All features of this x86-64 level.
  const char* features;  ///< Further ones, separated by spaces.
  int vector_bits;       ///< Preferred vector width.
  int fma_ports;         ///< Vector FMAs of that width a cycle.
  int l1_kib, l2_kib, l3_kib;
};

/// All CPU kinds by name, with the plain levels first.
const std::vector<CpuKind>& cpu_kinds();
/// The kind with that name, or null.
const CpuKind* find_cpu_kind(std::string_view name);

}  // namespace tensmith
