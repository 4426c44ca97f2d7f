/// Times of single kernels of a program, through the observer that generated code calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/time_line.h"

namespace tensmith {

/// What is known of a kernel before it runs.
struct KernelInfo {
  std::string name;
  double flops = 0;  ///< Of one call; 0 if unknown.
  double bytes = 0;  ///< Read and written by one call at least; 0 if unknown.
};

/// Gathers the times. Pass `hook` and `this` as on_kernel and user. Nothing is allocated while a program runs.
/// Threads: one program at a time. Cost: about 50 ns a kernel.
class Profiler {
 public:
  /// `max_events` limits the time line; sums go on beyond it.
  explicit Profiler(std::vector<KernelInfo> kernels, int64_t max_events = 1 << 16);

  static void hook(void* profiler, int32_t kernel, int32_t is_end);
  /// Forgets all times (after warm-up).
  void reset();
  /// Counts one run of the program that took that long; gives the share outside of kernels.
  void add_run(int64_t ns);

  /// One kernel's times over all runs.
  struct Row {
    std::string name;
    int64_t calls = 0;
    double total_us = 0;
    double min_us = 0;   ///< Of one call.
    double percent = 0;  ///< Of the time of all runs, or of all kernels if runs were not counted.
    double gflops = 0;   ///< From the mean; 0 if unknown.
    double gbytes = 0;   ///< GB/s from the mean; 0 if unknown.
  };
  /// Kernels that ran, longest total first.
  std::vector<Row> rows() const;
  int64_t runs() const { return runs_; }
  /// Time of all runs that was spent outside of kernels. Units: microseconds; 0 if runs were not counted.
  double outside_us() const;

  /// The rows as text with a headline, at most `limit` rows (0: all).
  std::string table(int limit = 0) const;
  Json json(const Provenance& from) const;
  /// Adds the time line.
  void add_to(TimeLine& line) const;

 private:
  struct Sum {
    int64_t calls = 0, total_ns = 0, min_ns = INT64_MAX, start_ns = 0;
  };
  struct Event {
    int32_t kernel;
    int64_t start_ns, end_ns;
  };

  std::vector<KernelInfo> kernels_;
  std::vector<Sum> sums_;
  std::vector<Event> events_;
  size_t used_ = 0;
  int64_t runs_ = 0;
  int64_t run_ns_ = 0;
};

}  // namespace tensmith
