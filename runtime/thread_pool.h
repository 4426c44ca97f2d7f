/// Threads for parallel loops of generated code: a C++ owner of the C pool that exported libraries carry too.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/context.h"
#include "runtime/export/pool.h"

namespace tensmith {

/// A pool whose caller takes part. Workers spin for `config().spin_us` after their last part, then sleep.
/// Threads: `parallel_for` may be called from any thread; while one loop runs, further and nested calls run serially.
/// Cost: a hand-off to a spinning worker takes well under a microsecond; nothing is allocated.
class ThreadPool {
 public:
  /// `threads` includes the caller; 0 = usable cores (affinity mask and control-group quota). Errors: out-of-memory
  /// (DeviceError).
  explicit ThreadPool(int threads = 0);

  int threads() const { return tensmith_pool_threads(pool_.get()); }
  /// Runs `body(closure, begin, end, thread)` over [0, extent) in one contiguous part a thread.
  /// Returns the code of the lowest part that failed, or 0.
  int32_t parallel_for(tensmith_loop_body body, void* closure, int64_t extent) {
    return tensmith_pool_parallel_for(pool_.get(), body, closure, extent);
  }
  /// What generated code takes; valid while the pool lives.
  tensmith_context context();

 private:
  struct Destroy {
    void operator()(tensmith_pool* pool) const { tensmith_pool_destroy(pool); }
  };
  std::unique_ptr<tensmith_pool, Destroy> pool_;
};

}  // namespace tensmith
