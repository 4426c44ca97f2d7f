/// A task in a runner: its inputs, the outputs that are right, and the kernels that are loaded for it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/check.h"
#include "autotune/measure/guarded_memory.h"
#include "autotune/measure/inputs.h"
#include "autotune/measure/timing.h"

namespace tensmith {

/// A failure of a candidate, on its way to the answer.
class MeasureFault : public std::exception {
 public:
  MeasureFault(MeasureFailure failure, std::string message) : failure_(failure), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  MeasureFailure failure() const { return failure_; }

 private:
  MeasureFailure failure_;
  std::string message_;
};

/// Every method throws MeasureFault for what a kernel did wrong, Error for requests that make no sense.
class RunnerTask {
 public:
  explicit RunnerTask(MeasureTask task);

  const MeasureTask& task() const { return task_; }
  void load(const std::string& name, const BuiltKernel& kernel);
  void drop(const std::string& name) { kernels_.erase(name); }
  bool has(const std::string& name) const { return kernels_.count(name) != 0; }
  /// Makes a kernel's outputs those that are right, after comparing some of their elements with the float64
  /// interpreter. Returns what is worth knowing, or nothing: "unchecked" outputs, inputs that had to be changed.
  std::string make_reference(const std::string& name);
  /// Runs it on sets of inputs between guard pages and compares the outputs.
  void check(const std::string& name, const std::vector<int>& sets);
  /// Times a kernel that was checked. `incumbent` may be empty.
  TimingReport measure(const std::string& name, const std::string& incumbent, const TimingOptions& options,
                       bool to_the_cap);

 private:
  struct Kernel {
    explicit Kernel(const BuiltKernel& kernel) : loaded(kernel) {}
    LoadedKernel loaded;
    bool is_checked = false;
    std::vector<HostMemory> memory;  ///< constants and workspaces for timing
    std::unique_ptr<TimedKernel> timed;
  };
  using Values = std::vector<std::vector<uint8_t>>;  ///< row-major, by parameter
  struct Set {
    InputSet kind = InputSet::kRandom;
    InputDraw draw;
    Values inputs, outputs;
    std::vector<GuardedBuffer> guarded;  ///< inputs that are no constants, in their layouts
    std::vector<int> guarded_index;      ///< by input; -1: constant
    bool is_ready = false, has_outputs = false;
  };

  Kernel& find(const std::string& name);
  Set& inputs_of(int set);
  /// The set with its right outputs.
  Set& ready_set(int set);
  /// Outputs of a run between guard pages, row-major.
  Values run_guarded(const Kernel& kernel, Set& set);
  /// Empty, or how the outputs of the set differ from the interpreter's; `unchecked` counts points left out.
  std::string compare_points(const Set& set, int* unchecked) const;
  void prepare_timing(Kernel& kernel);

  MeasureTask task_;
  std::vector<MeasureParameter> inputs_, outputs_;
  std::vector<OutputTolerance> tolerances_;
  std::array<Set, kNumInputSets> sets_;
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;
  std::string reference_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<MeasureYardstick> yardstick_;  ///< made when first needed
  tensmith_context context_{};
  std::vector<HostMemory> timing_inputs_, timing_outputs_;
  HostMemory cold_;
};

}  // namespace tensmith
