/// A compiled model: what the compiler gives, before it is loaded or exported.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/driver/cost.h"
#include "apps/driver/program_weights.h"
#include "autotune/default_schedule.h"
#include "codegen/artifact.h"
#include "graph/pipeline.h"
#include "runtime/base/target.h"
#include "schedule/lower/lowering.h"

namespace tensmith {

/// An input or output of a model.
struct PortSpec {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t bytes() const;
};

/// One distinct kernel; equal groups share one.
struct CompiledKernel {
  explicit CompiledKernel(Schedule schedule) : schedule(std::move(schedule)) {}
  std::string name;
  std::vector<std::string> ops;  ///< operator names of the group
  std::string first_node;        ///< name of the first node that uses it
  Schedule schedule;             ///< with the workload
  ScheduleRequest request;       ///< what the schedule was made for
  LoweredKernel lowered;
  std::string explanation;  ///< why this schedule
  GroupCost cost;           ///< of a call
  bool is_plain = false;    ///< the default schedule failed and plain loops took its place
  bool is_tuned = false;    ///< the schedule is a record's
  std::string tuning;       ///< which record, or why none; "" when no records were given
  double schedule_ms = 0, lower_ms = 0, codegen_ms = 0;
  std::string assembly;  ///< when asked for
};

/// One call of a kernel by `main`, in order.
struct KernelCall {
  int kernel = 0;
  std::string label;  ///< node names, for profiles
  /// The nodes of this call as a graph whose inputs are the workload's but for constants; null unless asked for.
  std::shared_ptr<const graph::Graph> reference;
};

/// How a pass over the graph went where it had more than one way.
struct MadeChoice {
  graph::ChoiceSite site;
  size_t taken = 0;       ///< of site.ways
  bool is_tuned = false;  ///< the way is a record's
  std::string tuning;     ///< which record, or why none; "" when no records were given
};
struct MadeChoices {
  std::string structure;         ///< equal for models of the same operators and tensors, whatever their weights
  std::vector<MadeChoice> list;  ///< each place once, in the order of the passes
};

/// Figures of a compilation.
struct CompileStats {
  double import_ms = 0, passes_ms = 0, kernels_ms = 0, weights_ms = 0, total_ms = 0;
  int64_t arena_bytes = 0, arena_lower_bound = 0, weight_bytes = 0;
  int nodes_in = 0, nodes_out = 0, groups = 0;
};

/// Objects that define `<prefix>main` (ABI: see codegen/artifact.h; buffers: inputs, outputs, weights, arena) and
/// `<prefix>main_packed` (the table of those pointers, and the dims: the `run` of runtime/export/abi.h), and everything
/// they need.
struct CompiledProgram {
  std::string prefix;
  Target target;
  int threads = 1;          ///< that schedules are made for
  int default_threads = 0;  ///< that an exported library runs with when its host says nothing; 0: usable cores
  std::vector<ObjectCode> objects;
  LoopFunction main;
  std::vector<PortSpec> inputs, outputs;
  std::shared_ptr<ProgramWeights> weights;  ///< null once an export has taken them
  int64_t arena_bytes = 0;
  std::vector<CompiledKernel> kernels;
  std::vector<KernelCall> calls;
  std::vector<std::string> messages;  ///< what the codes 1, 2, ... of a run mean: checks of data that failed
  CompileStats stats;
  std::string model_digest;
  std::vector<graph::PassRecord> pass_records;
  MadeChoices choices;
};

}  // namespace tensmith
