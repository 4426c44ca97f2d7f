/// What it takes to repeat a failure: small texts in a folder.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "runtime/base/error.h"

namespace tensmith {

/// The files of a reproducer by name.
using ReproducerFiles = std::map<std::string, std::string>;

/// An internal error together with what repeats it.
class ReproducibleError : public InternalError {
 public:
  ReproducibleError(std::string message, ReproducerFiles files)
      : InternalError(std::move(message)), files_(std::move(files)) {}
  const ReproducerFiles& files() const { return files_; }

 private:
  ReproducerFiles files_;
};

/// The graph as text that `tensmith run FILE.graph` takes: alone when its constants are small (below 16 MiB), else with
/// constants named by type and digest only, to be read.
std::string reproducer_graph(const graph::Graph& graph);

/// Writes the files into `folder`, or into a new one under the folder for temporary files when it is "". Returns the
/// folder. Errors: cannot-write.
Result<std::string> write_reproducer(const std::string& folder, const ReproducerFiles& files);

}  // namespace tensmith
