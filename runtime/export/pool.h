/* The thread pool, in C: it serves the tool (runtime/thread_pool.h) and, as part of the support object, every exported
 * library.
 *
 * The caller takes part as thread 0. Each thread has a contiguous part of the loop, always the same one, so that data
 * stay in its caches from loop to loop; who is done early takes over pieces from the back of other parts. Each worker
 * has one cache line through which it gets its part and tells that it is done: a hand-off costs one line going there
 * and back. Workers spin for a while after their last part, then sleep. Since the caller takes over whatever nobody has
 * begun, a sleeping or preempted worker delays nobody by more than the piece that it runs. That also makes a child
 * process after fork() correct: there the caller does all.
 *
 * Nothing is allocated after creation. A pool that is busy (nested calls, two callers at once) runs the loop in the
 * calling thread. */
#ifndef TENSMITH_RUNTIME_EXPORT_POOL_H
#define TENSMITH_RUNTIME_EXPORT_POOL_H

#include "runtime/base/c_core.h"
#include "runtime/context.h"

typedef struct tensmith_pool tensmith_pool;

#define TENSMITH_MAX_THREADS 1024

/* A pool of `threads` threads, the caller included; 0: as many as usable cores. Fewer if the system refuses more.
 * Workers spin for `spin_us` microseconds before they sleep. They inherit the affinity mask and are pinned no further.
 * Null: out of memory. */
TS_C_API tensmith_pool* tensmith_pool_create(int32_t threads, int64_t spin_us);
/* Ends the workers. No loop may be running. */
TS_C_API void tensmith_pool_destroy(tensmith_pool* pool);
TS_C_API int32_t tensmith_pool_threads(const tensmith_pool* pool);
/* Has the form of tensmith_context.parallel_for. Calls the body for contiguous pieces; several with the same thread
 * number follow one another. All pieces are run even if one fails; returns the code of the lowest piece that failed, or
 * 0. */
TS_C_API int32_t tensmith_pool_parallel_for(void* pool, tensmith_loop_body body, void* closure, int64_t extent);

#endif
