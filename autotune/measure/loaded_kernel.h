/// A kernel in this process, ready to be called.
#pragma once

#include <span>
#include <vector>

#include "autotune/measure/task.h"
#include "codegen/jit.h"
#include "runtime/context.h"

namespace tensmith {

/// Code that is loaded, with what its parameters are like.
class LoadedKernel {
 public:
  /// Errors: those of JitModule::load; UserError `undefined-symbol` when the function is missing, `too-many-parameters`
  /// beyond 64.
  explicit LoadedKernel(const BuiltKernel& kernel);

  /// Runs it; `buffers` has one pointer a parameter. Returns the kernel's code: 0 is success.
  int32_t call(const tensmith_context* context, std::span<void* const> buffers) const {
    return call_(function_, context, buffers.data());
  }
  /// Everything but the code.
  const BuiltKernel& description() const { return description_; }

 private:
  using Call = int32_t (*)(void*, const tensmith_context*, void* const*);
  BuiltKernel description_;
  JitModule module_;
  void* function_ = nullptr;
  Call call_ = nullptr;
};

}  // namespace tensmith
