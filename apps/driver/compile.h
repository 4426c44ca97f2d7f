/// The compiler as a whole: from a graph to objects.
#pragma once

#include "apps/driver/program.h"
#include "autotune/records/record_index.h"

namespace tensmith {

/// More threads than that are not started for compiling.
inline constexpr int kMaxCompileThreads = 1024;

struct CompileOptions {
  Target target = Target::host();
  int threads = 0;    ///< that schedules are made for; 0: the target's cores
  int opt_level = 2;  ///< 0: no graph passes but the necessary ones, no fusion; 1: no layouts; 2, 3: everything
  std::string prefix = "tensmith_";  ///< of every symbol
  bool want_asm = false;
  bool fast_math = false;        ///< vector math within 3.5 ulp
  bool contract_fma = true;      ///< a*b+c may be rounded once; the switch `contract` can forbid it too
  bool want_references = false;  ///< fill KernelCall::reference; the switch `check` asks for it too
  int compile_threads = 0;       ///< 0: as the switch `compile-threads` says
  std::shared_ptr<const RecordIndex> records = nullptr;  ///< of tuning: where one fits, its schedule is taken
  OtherBuilds other_builds = OtherBuilds::kRefuse;       ///< what becomes of records of other builds
  bool require_tuned = false;                            ///< refuse kernels that no record fits
  LowerOptions lower;  ///< hooks for dumps and timing (called from several threads at a time)
};

/// Compiles a graph with static dims, as the process's switches say. The graph is optimised in place. Errors:
/// UnsupportedError, UserError with where and way out: `symbolic-dims` when a dim is not bound, `arena-too-large`
/// beyond the switch `memory-limit-mib`; ReproducibleError when it is our fault; CompilationStopped when the switch
/// `stop-after` says so; `untuned-kernel` with `require_tuned`. Cost: some ms a distinct kernel, on all cores.
CompiledProgram compile_graph(graph::Graph& graph, const CompileOptions& options);

}  // namespace tensmith
