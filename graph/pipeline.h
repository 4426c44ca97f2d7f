/// The passes over the graph that need no schedule, as one table, and the runner that verifies, times and shows them.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/passes/rewrite.h"
#include "runtime/base/config.h"

namespace tensmith::graph {

/// One row of the table.
struct GraphPass {
  const char* name;
  const char* what;                              ///< what it does, in one sentence
  const char* why_here;                          ///< the reason for its place
  int level;                                     ///< lowest optimisation level (0 to 3) at which it runs
  bool required;                                 ///< it runs whatever the switches say: what follows relies on it
  int (*run)(GraphEditor&, const PassOptions&);  ///< how much it changed
};
std::span<const GraphPass> graph_passes();

/// How the table is run.
struct PipelineOptions {
  int level = 2;
  PassOptions passes = {};
  int64_t pass_limit = -1;              ///< number of optional passes that run; -1: all
  std::set<std::string> disabled = {};  ///< optional passes to leave out
  std::string stop_after = {};          ///< name of the last pass to run; empty: all
  bool verify_each = false;             ///< verify the graph after every pass that changed it
  /// Called around every pass that runs: before (`changes` < 0) and after it.
  std::function<void(const GraphPass&, const Graph&, int changes, double milliseconds)> observer = nullptr;
};
/// The switches of the process: pass limit, disabled passes, stop, verify, and an observer that prints and dumps as
/// they ask. Errors: UserError "unknown-pass" for a name that is no pass.
PipelineOptions pipeline_options(const Config& config, int level = 2);

/// What one pass did.
struct PassRecord {
  std::string name;
  int changes = 0;
  double milliseconds = 0;
  int64_t nodes_after = 0;
};

/// Runs the table in order; a pass may stand in it more than once.
/// Errors: InternalError naming the pass after which the graph does not verify (with `verify_each`), and what passes
/// throw.
std::vector<PassRecord> optimize(Graph& graph, const PipelineOptions& options = {});
/// A table of the records: name, changes, time, nodes.
std::string to_string(const std::vector<PassRecord>& records);

}  // namespace tensmith::graph
