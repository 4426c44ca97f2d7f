#include "runtime/thread_pool.h"

#include "runtime/base/config.h"
#include "runtime/base/error.h"

namespace tensmith {

ThreadPool::ThreadPool(int threads) : pool_(tensmith_pool_create(threads, config()->spin_us)) {
  if (!pool_) throw DeviceError("out-of-memory", "thread pool: the system gives no memory");
}

tensmith_context ThreadPool::context() {
  tensmith_context context = {};
  context.size = sizeof context;
  context.num_threads = threads();
  context.parallel_for = tensmith_pool_parallel_for;
  context.pool = pool_.get();
  return context;
}

}  // namespace tensmith
