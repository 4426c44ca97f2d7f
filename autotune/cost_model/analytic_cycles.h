/// Cycles of a kernel in closed form.
#pragma once

#include "autotune/cost_model/kernel_facts.h"

namespace tensmith {

/// Units: cycles of the busiest thread in a run of the kernel.
struct NestCycles {
  double arithmetic = 0;  ///< by the busiest of: arithmetic ports, load ports, store port, issue, latencies
  double loops = 0;       ///< starting and ending loops
  double memory = 0;      ///< lines from beyond L1 that arithmetic does not hide
  double total() const { return arithmetic + loops + memory; }
};
NestCycles nest_cycles(const NestFacts& nest, const MachineFacts& machine);

/// Units: cycles; with the hand-off to other threads.
double kernel_cycles(const KernelFacts& facts);

}  // namespace tensmith
