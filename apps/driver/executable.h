/// A compiled program loaded into this process.
#pragma once

#include <memory>
#include <span>

#include "apps/driver/program.h"
#include "codegen/jit.h"
#include "runtime/context.h"
#include "runtime/thread_pool.h"

namespace tensmith {

/// Runs a CompiledProgram. One instance serves one thread at a time; instances may share the program.
class Executable {
 public:
  /// Loads the objects and allocates the arena. Errors: TargetError `missing-cpu-feature` when this machine cannot run the target.
  explicit Executable(std::shared_ptr<const CompiledProgram> program, int threads = 0);

  const CompiledProgram& program() const { return *program_; }
  int threads() const;
  /// Runs once. Shapes: inputs and outputs as the program's ports, element-aligned row-major memory. No memory is allocated.
  /// Returns 0 or the code of a failed assertion.
  int run(std::span<const void* const> inputs, std::span<void* const> outputs);
  /// Called before and after each kernel with its number in CompiledProgram::calls; null: no more.
  void observe(void (*on_kernel)(void* user, int32_t kernel, int32_t is_end), void* user);

 private:
  struct AlignedFree {
    void operator()(void* p) const;
  };
  std::shared_ptr<const CompiledProgram> program_;
  JitModule module_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<void, AlignedFree> arena_;
  std::vector<void*> table_;
  tensmith_context context_{};
  int32_t (*main_)(const tensmith_context*, void*) = nullptr;
};

}  // namespace tensmith
