/// Programs ready to run: exported libraries loaded from files, and programs compiled in this process, behind one
/// class.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/export/model_image.h"
#include "runtime/profiler.h"
#include "runtime/tensor.h"

namespace tensmith {

/// How an instance is made.
struct InstanceOptions {
  int threads = 0;              ///< The caller included; 0: as compiled.
  std::string target;           ///< Take the variant whose target begins so; "": the best that this CPU can run.
  std::string weights_path;     ///< "": beside the library.
  bool verify_weights = false;  ///< Compare the SHA-256 of mapped weights.
  bool copy_weights = false;    ///< Copy weights into huge pages: more memory, faster where they come from DRAM.
};

/// How a library is loaded.
struct LoadOptions {
  bool verify = true;  ///< Compare with the manifest beside the library, if there is one. Cost: 1 ms per MB.
  std::string prefix;  ///< Which program, such as "net_", if the library holds several; "": the only one.
};

class Module;

/// A program with its memory and threads. Threads: one run at a time; other instances may run at the same time.
class Instance {
 public:
  Instance(Instance&&) noexcept;
  Instance& operator=(Instance&&) = delete;
  ~Instance();

  /// Runs and returns the outputs in new tensors. Errors: bad-tensor, run-failed, ... (see the C interface's codes).
  Result<std::vector<HostTensor>> run(std::span<HostTensor> inputs);
  /// Runs into tensors that exist. Nothing is allocated once shapes have been seen.
  Result<void> run_into(std::span<HostTensor> inputs, std::span<HostTensor> outputs);
  /// Shapes of all outputs for these inputs.
  Result<std::vector<std::vector<int64_t>>> output_shapes(std::span<HostTensor> inputs);
  /// Observes kernels from now on; null: no more. The profiler must outlive its use.
  void set_profiler(Profiler* profiler);
  /// Calls `hook` before (is_end = 0) and after each kernel of a run from now on, in the place of a profiler; null: no
  /// more. The hook must not throw.
  void set_on_kernel(void (*hook)(void* user, int32_t kernel, int32_t is_end), void* user);
  /// Runs use this memory, aligned to 64 bytes, from now on; null: the instance allocates again. Errors: bad-argument.
  Result<void> set_workspace(void* memory, int64_t bytes);
  /// A profiler for this instance's kernels.
  std::unique_ptr<Profiler> make_profiler() const;

  const tensmith_model& model() const;
  const tensmith_variant& variant() const;
  int threads() const;

 private:
  friend class Module;
  struct State;
  explicit Instance(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A loaded program; makes instances. Copies share it, instances keep it alive.
class Module {
 public:
  /// Loads an exported library. It is machine code and runs with this process's rights: load only what you trust.
  /// Errors: cannot-read, bad-object (no ELF file), wrong-architecture, not-a-module, abi-mismatch, manifest-mismatch,
  /// cannot-load.
  static Result<Module> load(const std::string& path, const LoadOptions& options = {});
  /// A program compiled in this process. `code` keeps what `resolve` gives addresses into (functions, weights) alive.
  /// Errors: undefined-symbol.
  static Result<Module> from_memory(const ModelDescription& description,
                                    const std::function<const void*(const std::string&)>& resolve,
                                    std::shared_ptr<const void> code);

  const tensmith_model& model() const;
  /// The functions of a loaded library; for programs from memory `create` in it is null.
  const tensmith_api* api() const;
  /// Errors: bad-argument, missing-cpu-feature, bad-weights, out-of-memory.
  Result<Instance> create(const InstanceOptions& options = {}) const;

 private:
  friend class Instance;
  struct State;
  explicit Module(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// The id of a code of the C interface: "bad-tensor", "missing-cpu-feature", ...; positive codes: "run-failed".
const char* error_id_of_code(int32_t code);

}  // namespace tensmith
