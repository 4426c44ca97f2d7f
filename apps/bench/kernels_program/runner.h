/// A kernel made by the default schedule, compiled, loaded and given memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/kernels_program/items.h"
#include "codegen/jit.h"
#include "runtime/base/target.h"
#include "runtime/tensor.h"
#include "runtime/thread_pool.h"

namespace tensmith::bench {

class Runner {
 public:
  Runner(const Item& item, const Target& target, int threads);
  void run();
  int threads() const { return pool_.threads(); }

  /// Units: milliseconds of processor time for schedule, lowering, code generation and loading.
  double compile_ms() const { return compile_ms_; }
  /// The schedule's own account of its choices.
  const std::string& explanation() const { return explanation_; }
  const std::string& assembly() const { return assembly_; }
  /// Units: bytes; of all parameters that are read, and of all that are written.
  int64_t bytes_read() const { return bytes_read_; }
  int64_t bytes_written() const { return bytes_written_; }

 private:
  ThreadPool pool_;
  tensmith_context context_;
  std::string explanation_, assembly_;
  std::unique_ptr<JitModule> module_;
  void* function_ = nullptr;
  double compile_ms_ = 0;
  int64_t bytes_read_ = 0, bytes_written_ = 0;
  HostMemory memory_;  // one piece, as a program's arena and weights are, so that it gets huge pages alike
  std::vector<void*> pointers_;
};

}  // namespace tensmith::bench
