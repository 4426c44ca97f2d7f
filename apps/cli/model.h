/// A model as the sub-commands use it: compiled in this process, or an exported library.
#pragma once

#include <memory>
#include <optional>

#include "apps/cli/options.h"
#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "graph/import/onnx_import.h"
#include "runtime/tensor.h"

namespace tensmith::cli {

/// Whether the path names an exported library (by suffix).
bool is_library(const std::string& path);
/// Whether the path names a graph as text (by suffix `.graph`), as reproducers and `print-graph` have it.
bool is_graph_text(const std::string& path);

/// Reads `NAME=N` items. Errors: UserError `bad-dim`.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& items);
/// `1 thread`, `2 threads`.
std::string counted(size_t count, const char* what);
/// Reads `NAME=VALUE` items. Errors: UserError `bad-assignment`.
std::map<std::string, std::string> parse_assignments(const std::vector<std::string>& items, const char* flag);

/// Imports an ONNX model, or reads a graph text, with its dims bound: by `--dim`, else by the sizes of `arrays` (by
/// input name).
graph::ImportResult import_model(const Options& options, const std::map<std::string, HostTensor>& arrays = {});

/// Errors: UserError `symbolic-dims` for the first input with an open dim, with the flags that would close it.
void check_dims_known(const graph::Graph& graph);

/// Options of the compiler from those of the command line. Errors: UserError `bad-target`.
CompileOptions compile_options(const Options& options);

/// A loaded model.
struct LoadedModel {
  std::optional<graph::Graph> graph;               ///< as imported; none for a library
  std::shared_ptr<const CompiledProgram> program;  ///< null for a library
  std::optional<Module> module;
  std::string digest;
  std::vector<std::string> fixed;  ///< inputs whose given values decide shapes: constants of this compilation
  double import_ms = 0, load_ms = 0;
};
/// Compiles and loads MODEL, or loads the library. Arrays given as inputs bind open dims; where shapes depend on the
/// values of some (axes, target shapes, limits), the model is compiled for these values.
/// `references`: with KernelCall::reference. `records`: instead of those that the options name.
LoadedModel load_model(const Options& options, const std::map<std::string, HostTensor>& arrays, bool keep_graph = false,
                       bool references = false, std::shared_ptr<const RecordIndex> records = nullptr);

/// Finds out before minutes of work that a file cannot be written; "" and what exists as a device pass.
/// Errors: cannot-write, with the flag.
void check_writable(const char* flag, const std::string& path);

/// Arrays read from `--input NAME=@FILE`.
std::map<std::string, HostTensor> read_arrays(const Options& options);
/// All inputs of the model: arrays, fills, or random:0 for what is not named; what is fixed is passed over.
/// Errors: UserError `unknown-input`, `input-shape`, `input-dtype`.
std::vector<HostTensor> make_inputs(const LoadedModel& model, const Options& options,
                                    std::map<std::string, HostTensor> arrays);

/// Throws a failure as an error: of the target when library and machine do not fit together, else of the user.
[[noreturn]] void raise(const Failure& failure);
/// The value or the failure as an exception.
template <typename T>
T take(Result<T> result) {
  if (!result) raise(result.failure());
  return std::move(result).value();
}
inline void take(Result<void> result) {
  if (!result) raise(result.failure());
}

/// An instance with the threads of the command line.
Instance make_instance(const Module& module, const Options& options);

/// Adds the kernels of an instance's runs to the process's time line, from construction to destruction, when the switch
/// `profile` asks for one.
class RunProfile {
 public:
  explicit RunProfile(Instance& instance);
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;
  ~RunProfile();

 private:
  Instance& instance_;
  std::unique_ptr<Profiler> profiler_;
};

/// Header of JSON outputs for a model: of a library the target, threads and digest of the model that it was made from.
Provenance provenance(const char* schema, const Options& options, const LoadedModel& model, int threads);
/// The same from the command line alone, when nothing is loaded (any more).
Provenance file_provenance(const char* schema, const Options& options);

}  // namespace tensmith::cli
