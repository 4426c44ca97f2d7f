/// The compiler as a whole: from a graph to objects.
#pragma once

#include <functional>
#include <map>

#include "apps/driver/program.h"

namespace tensmith {

struct CompileOptions {
  Target target = Target::host();
  int threads = 0;    ///< that schedules are made for; 0: the target's cores
  int opt_level = 2;  ///< 0: no graph passes but the necessary ones, no fusion; 1: no layouts; 2, 3: everything
  std::string prefix = "tensmith_";  ///< of every symbol
  bool want_asm = false;
  bool fast_math = false;  ///< vector math within 3.5 ulp
  bool explain = false;
  LowerOptions lower;  ///< hooks for dumps and timing (called from several threads, serialised)
  std::function<void(const char* stage, const std::string& name, const std::string& text)> dump = nullptr;
};

/// Compiles a graph with static dims. The graph is optimised in place. Errors: UnsupportedError, UserError with where
/// and way out; `symbolic-dims` when a dim is not bound. Cost: some ms a distinct kernel, on two threads.
CompiledProgram compile_graph(graph::Graph& graph, const CompileOptions& options);

}  // namespace tensmith
