/// A loop over one function, compiled and loaded.
#pragma once

#include "codegen/jit.h"
#include "runtime/base/target.h"

namespace tensmith {

/// out[i] = f(in0[i], in1[i]) for i in [0, count), count a multiple of `lanes`.
class ElementKernel {
 public:
  /// `lanes` elements a step. Without a function (`arity` 0): a copy of in0.
  ElementKernel(Intrinsic id, int arity, DType type, int lanes, const Target& target, const CodegenOptions& options);
  /// Units: elements. Buffers hold the kernel's type, 64-byte aligned; in1 counts for functions of two arguments.
  void operator()(const void* in0, const void* in1, void* out, int64_t count) const;
  const std::string& assembly() const { return assembly_; }

 private:
  std::string assembly_;  // before module_, whose initialiser fills it
  JitModule module_;
  int32_t (*run_)(const void* context, const void*, const void*, void*, int64_t);
};

}  // namespace tensmith
