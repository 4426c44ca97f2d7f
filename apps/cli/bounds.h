/// What the machine allows a model's kernels, and how far they are from it.
#pragma once

#include <string>
#include <vector>

#include "apps/driver/program.h"
#include "runtime/base/json.h"
#include "runtime/profiler.h"
#include "runtime/thread_pool.h"

namespace tensmith::cli {

/// What the machine did beside the runs. Units: operations and bytes a second, of all threads together.
struct MachineRates {
  double flops = 0;    ///< float32, from independent vector FMAs
  double weights = 0;  ///< bytes of weights read, as many as the model has
  double l1 = 0, l2 = 0, l3 = 0;
};

/// Measures the peak in windows between runs, so that it meets the same clock and load as they do; the bandwidths once.
class MachineMeter {
 public:
  /// `weight_bytes`: of the whole model. Cost: about 0.1 s.
  MachineMeter(const Target& target, int threads, int64_t weight_bytes);
  /// One window of the peak, half a millisecond. Units: operations a second of all threads.
  double window();
  /// The rates, the peak as the best of the windows. Requires: one window at least.
  MachineRates rates() const;

 private:
  const Target target_;
  const int threads_;
  MachineRates rates_;
};

/// One distinct kernel over all its calls of one run of the model. Units: microseconds a run unless said.
struct KernelGap {
  std::string name, first_node;
  int calls = 0;
  double us = 0;                ///< the least of each call
  double bound_us = 0;          ///< the least by operations and bytes; 0: a kernel without either
  bool is_compute = false;      ///< the bound comes from operations, not from bytes
  double flops = 0, bytes = 0;  ///< of all calls together
  double gap_us() const { return us - bound_us; }
  double of_bound() const { return us > 0 ? bound_us / us : 0; }
};

/// A run and the peak in the window just before it. Units: microseconds; operations a second of all threads.
struct RunBesidePeak {
  double us = 0, flops = 0;
};

/// Where a model's time goes, the largest gap first.
struct GapReport {
  MachineRates rates;
  double run_us = 0;      ///< the least of all runs
  double kernels_us = 0;  ///< of all kernels, the least of each call
  double flops = 0;       ///< that kernels execute in a run; Winograd's transformed sums, not the direct ones
  /// Of the peak that was measured before the run: the median over pairs, which load and a wandering clock spare.
  double fraction_of_peak = 0;
  std::vector<KernelGap> kernels;

  std::string table() const;
  /// The largest gaps in a sentence each.
  std::string largest(int count) const;
  Json json() const;
};

/// The bound of a kernel's call: the more of its operations at the peak, and of its bytes: weights as all weights of
/// the model stream in, what kernels hand on at the rate of the cache level that holds the call's share of a thread.
GapReport gap_report(const CompiledProgram& program, const Profiler& profiler, const MachineRates& rates,
                     const std::vector<RunBesidePeak>& runs);

}  // namespace tensmith::cli
