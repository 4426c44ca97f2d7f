/* What generated code receives from whoever calls it: threads and observation. Every generated function has the form
 *   int32_t NAME(const tensmith_context* ctx, void* buffer0, ..., scalar0, ...)
 * and returns 0, or the code of the assertion that failed. A null `ctx` means: one thread, nothing observed.
 * Plain C, since it is also copied into the header of an exported library. */
#ifndef TENSMITH_RUNTIME_CONTEXT_H
#define TENSMITH_RUNTIME_CONTEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Part of a parallel loop: runs iterations [begin, end) on thread `thread` (0 <= thread < num_threads); no two parts
 * that run at the same time have the same thread number. Returns 0 or an error code. */
typedef int32_t (*tensmith_loop_body)(void* closure, int64_t begin, int64_t end, int32_t thread);

/* Fields are only ever appended; `size` says which of them exist. */
typedef struct tensmith_context {
  uint32_t size;       /* sizeof(tensmith_context) of whoever filled it in */
  int32_t num_threads; /* 1: parallel loops run in the calling thread */
  /* Runs all of [0, extent) through `body` in parts, on up to num_threads threads with the caller among them, and
   * returns when all is done: 0, or one of the error codes that parts returned. Bodies never call it again. */
  int32_t (*parallel_for)(void* pool, tensmith_loop_body body, void* closure, int64_t extent);
  void* pool; /* first argument of parallel_for; null: as num_threads == 1 */
  /* Called before (is_end = 0) and after (is_end = 1) each kernel of a program; may be null. */
  void (*on_kernel)(void* user, int32_t kernel_index, int32_t is_end);
  void* user; /* first argument of on_kernel */
} tensmith_context;

#ifdef __cplusplus
}
#endif

#endif /* TENSMITH_RUNTIME_CONTEXT_H */
