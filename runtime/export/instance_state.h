/* The state of an instance; shared by instance.c and instance_run.c only. */
#ifndef TENSMITH_RUNTIME_EXPORT_INSTANCE_STATE_H
#define TENSMITH_RUNTIME_EXPORT_INSTANCE_STATE_H

#include "runtime/export/instance.h"
#include "runtime/export/memory.h"
#include "runtime/export/pool.h"
#include "runtime/export/text.h"

struct tensmith_instance {
  const tensmith_model* model;
  const tensmith_variant* variant;
  tensmith_context context;
  tensmith_pool* pool; /* built-in threads; null: one thread or the host's */
  tensmith_parallel_for host_parallel_for;
  void* host_pool;
  int64_t* dims;     /* symbols, derived dimensions */
  void** buffers;    /* inputs, outputs, weights, arena: what the generated code gets */
  int64_t* io_bytes; /* bytes of each input and output in the run at hand */
  const void* weights;
  tensmith_mapping mapping; /* of the weights file */
  void* weights_copy;       /* in huge pages */
  void* arena;
  int64_t arena_bytes;
  int64_t bytes; /* of this block: dims, buffers and io_bytes lie behind the structure */
  void* (*allocate)(void* user, int64_t bytes, int64_t alignment);
  void (*release)(void* user, void* memory, int64_t bytes);
  void* allocator_user;
  int32_t host_arena; /* 1: the arena belongs to the host */
  int32_t huge_pages;
  uint32_t running;
  tensmith_text error;
  char message[512];
};

/* Marks the instance as running; 0 if another thread does. */
static inline int tensmith_instance_enter(tensmith_instance* instance) {
  return !__atomic_exchange_n(&instance->running, 1, __ATOMIC_ACQUIRE);
}
static inline void tensmith_instance_leave(tensmith_instance* instance) {
  __atomic_store_n(&instance->running, 0, __ATOMIC_RELEASE);
}

/* Starts a new message with "<model>: " and returns it. */
TS_C_API tensmith_text* tensmith_instance_message(tensmith_instance* instance);
/* Sets dims[] from the symbols' values and computes the derived ones: 0 or TENSMITH_BAD_TENSOR with a message. */
TS_C_API int32_t tensmith_instance_derive(tensmith_instance* instance);
/* Bytes of arena for the dims, at least 0; or TENSMITH_BAD_TENSOR with a message. */
TS_C_API int64_t tensmith_instance_arena_size(tensmith_instance* instance);
/* Makes the arena large enough for the dims: 0 or a code with a message. */
TS_C_API int32_t tensmith_instance_reserve(tensmith_instance* instance);

#endif
