/* Making, changing and destroying instances. */
#include "runtime/export/instance.h"

#include <stddef.h>
#include <string.h>

#include "runtime/base/cpu_check.h"
#include "runtime/base/cpu_count.h"
#include "runtime/base/sha256_core.h"
#include "runtime/export/instance_state.h"

TS_C_API tensmith_text* tensmith_instance_message(tensmith_instance* instance) {
  tensmith_text_clear(&instance->error);
  tensmith_text_add(&instance->error, instance->model->name);
  tensmith_text_add(&instance->error, ": ");
  return &instance->error;
}

TS_C_API int32_t tensmith_choose_variant(const tensmith_model* model, const char* target, char* error,
                                         int64_t error_bytes) {
  tensmith_text text;
  int32_t i, best = -1;
  const char* missing = 0;
  const char* missing_target = "";
  for (i = 0; i < model->num_variants && best < 0; ++i) {
    const tensmith_variant* v = &model->variants[i];
    int32_t first;
    if (target && strncmp(v->target, target, strlen(target)) != 0) continue;
    first = tensmith_cpu_first_missing(v->requirements, v->num_requirements);
    if (first < 0) best = i;
    else { /* the last one asks for least: its missing feature tells most */
      missing = v->requirements[first].name;
      missing_target = v->target;
    }
  }
  if (best >= 0) return best;
  text.data = error;
  text.bytes = error_bytes;
  tensmith_text_clear(&text);
  tensmith_text_add(&text, model->name);
  if (missing) {
    tensmith_text_add(&text, ": this CPU lacks the feature ");
    tensmith_text_add(&text, missing);
    tensmith_text_add(&text, ", which the code for target ");
    tensmith_text_add(&text, missing_target);
    tensmith_text_add(&text, " needs; compile for a target that this CPU offers");
  } else {
    tensmith_text_add(&text, ": expected one of the targets");
    for (i = 0; i < model->num_variants; ++i) {
      tensmith_text_add(&text, i ? ", " : " ");
      tensmith_text_add(&text, model->variants[i].target);
    }
    tensmith_text_add(&text, "; got ");
    tensmith_text_add(&text, target ? target : "none");
  }
  return -1;
}

/* The options that the host knows of, the rest zero: its structure may be older and shorter than ours. */
static tensmith_options ts_read_options(const tensmith_options* given) {
  tensmith_options options;
  memset(&options, 0, sizeof options);
  if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  return options;
}

static void* ts_allocate(const tensmith_instance* instance, int64_t bytes) {
  return instance->allocate ? instance->allocate(instance->allocator_user, bytes, 64)
                            : tensmith_map_memory(bytes, instance->huge_pages);
}

static void ts_release(const tensmith_instance* instance, void* memory, int64_t bytes) {
  if (!memory) return;
  if (instance->release) instance->release(instance->allocator_user, memory, bytes);
  else if (!instance->allocate) tensmith_unmap_memory(memory, bytes);
}

static int32_t ts_find_weights(tensmith_instance* instance, const tensmith_options* options) {
  const tensmith_variant* v = instance->variant;
  if (v->weights || v->weights_bytes == 0) {
    instance->weights = v->weights;
  } else if (options->weights) {
    if (options->weights_bytes != v->weights_bytes || (uintptr_t)options->weights % 64 != 0) {
      tensmith_text* text = tensmith_instance_message(instance);
      tensmith_text_add(text, "weights: expected ");
      tensmith_text_add_int(text, v->weights_bytes);
      tensmith_text_add(text, " bytes aligned to 64, got ");
      tensmith_text_add_int(text, options->weights_bytes);
      tensmith_text_add(text, " bytes or another alignment");
      return TENSMITH_BAD_WEIGHTS;
    }
    instance->weights = options->weights;
  } else {
    char buffer[4096];
    tensmith_text path;
    path.data = buffer;
    path.bytes = sizeof buffer;
    tensmith_text_clear(&path);
    if (options->weights_path) {
      tensmith_text_add(&path, options->weights_path);
    } else if (!tensmith_path_beside(instance->model, v->weights_file, &path)) {
      tensmith_text_clear(&path);
      tensmith_text_add(&path, v->weights_file);
    }
    tensmith_instance_message(instance);
    if (tensmith_map_weights(buffer, v->weights_bytes, v->weights_sha256, &instance->mapping, &instance->weights,
                             &instance->error))
      return TENSMITH_BAD_WEIGHTS;
  }
  if ((options->flags & TENSMITH_VERIFY_WEIGHTS) && v->weights_sha256) {
    uint8_t digest[32];
    tensmith_weights_digest(instance->weights, v->weights_bytes, digest);
    if (memcmp(digest, v->weights_sha256, sizeof digest) != 0) {
      tensmith_text_add(tensmith_instance_message(instance), "weights: the data are damaged; copy the file again");
      return TENSMITH_BAD_WEIGHTS;
    }
  }
  if ((options->flags & TENSMITH_COPY_WEIGHTS) && v->weights_bytes > 0) {
    instance->weights_copy = tensmith_map_memory(v->weights_bytes, instance->huge_pages);
    if (instance->weights_copy) { /* only for speed: without memory for it the original serves */
      memcpy(instance->weights_copy, instance->weights, (size_t)v->weights_bytes);
      instance->weights = instance->weights_copy;
      tensmith_unmap_weights(&instance->mapping);
    }
  }
  return 0;
}

static int32_t ts_start_threads(tensmith_instance* instance, const tensmith_options* options) {
  int32_t threads = options->num_threads > 0 ? options->num_threads : instance->model->default_threads;
  instance->context.size = sizeof instance->context;
  instance->context.num_threads = 1;
  if (options->parallel_for)
    return tensmith_instance_set_parallel_for(instance, options->parallel_for, options->pool, options->num_threads);
  if (threads == 0) threads = tensmith_usable_cores();
  if (threads == 1) return 0;
  instance->pool = tensmith_pool_create(threads, options->spin_us == 0 ? 1000 : options->spin_us);
  if (!instance->pool) {
    tensmith_text_add(tensmith_instance_message(instance), "threads: the system gives no memory");
    return TENSMITH_OUT_OF_MEMORY;
  }
  instance->context.num_threads = tensmith_pool_threads(instance->pool);
  instance->context.parallel_for = tensmith_pool_parallel_for;
  instance->context.pool = instance->pool;
  return 0;
}

static int32_t ts_create(const tensmith_model* model, const tensmith_options* options, tensmith_text* error,
                         tensmith_instance** out) {
  tensmith_instance blank;
  tensmith_instance* instance;
  const int64_t dims = (int64_t)model->num_symbols + model->num_derived,
                io = (int64_t)model->num_inputs + model->num_outputs;
  int32_t code, variant;
  if (model->abi_version != TENSMITH_ABI_VERSION || options->num_threads < 0 ||
      options->num_threads > TENSMITH_MAX_THREADS || options->spin_us < -1 ||
      (options->allocate && !options->release) || (options->parallel_for && options->num_threads < 1)) {
    tensmith_text_add(error, model->name);
    tensmith_text_add(
        error, model->abi_version != TENSMITH_ABI_VERSION
                   ? ": the description has another version than the code that reads it"
                   : ": options: expected num_threads from 0 to 1024 (from 1 with parallel_for), spin_us from -1, and "
                     "release with allocate");
    return TENSMITH_BAD_ARGUMENT;
  }
  variant = tensmith_choose_variant(model, options->target, error->data, error->bytes);
  if (variant < 0) return TENSMITH_MISSING_CPU_FEATURE;
  memset(&blank, 0, offsetof(tensmith_instance, message));
  blank.bytes = (int64_t)sizeof blank + (dims + io) * (int64_t)sizeof(int64_t) + (io + 2) * (int64_t)sizeof(void*);
  blank.allocate = options->allocate;
  blank.release = options->release;
  blank.allocator_user = options->allocator_user;
  blank.huge_pages = !(options->flags & TENSMITH_NO_HUGE_PAGES);
  instance = (tensmith_instance*)ts_allocate(&blank, blank.bytes);
  if (!instance) {
    tensmith_text_add(error, model->name);
    tensmith_text_add(error, ": out of memory");
    return TENSMITH_OUT_OF_MEMORY;
  }
  memcpy(instance, &blank, offsetof(tensmith_instance, message));
  instance->model = model;
  instance->variant = &model->variants[variant];
  instance->dims = (int64_t*)(instance + 1);
  instance->io_bytes = instance->dims + dims;
  instance->buffers = (void**)(instance->io_bytes + io);
  instance->error.data = instance->message;
  instance->error.bytes = sizeof instance->message;
  tensmith_text_clear(&instance->error);
  code = ts_find_weights(instance, options);
  if (!code) code = ts_start_threads(instance, options);
  /* With fixed shapes the arena is known: take it now, so that runs never allocate. */
  if (!code && model->num_symbols == 0) code = tensmith_instance_derive(instance);
  if (!code && model->num_symbols == 0) code = tensmith_instance_reserve(instance);
  if (code) {
    tensmith_text_add(error, instance->message);
    tensmith_instance_destroy(instance);
    return code;
  }
  tensmith_text_clear(&instance->error);
  *out = instance;
  return 0;
}

TS_C_API int32_t tensmith_instance_create(const tensmith_model* model, const tensmith_options* given,
                                          tensmith_instance** out) {
  tensmith_options options = ts_read_options(given);
  char scratch[512];
  tensmith_text error;
  int32_t code;
  if (!out) return TENSMITH_BAD_ARGUMENT;
  *out = 0;
  error.data = scratch;
  error.bytes = sizeof scratch;
  tensmith_text_clear(&error);
  code = ts_create(model, &options, &error, out);
  if (options.error && options.error_bytes > 0) {
    tensmith_text host;
    host.data = options.error;
    host.bytes = options.error_bytes;
    tensmith_text_clear(&host);
    if (code) tensmith_text_add(&host, scratch);
  }
  return code;
}

TS_C_API void tensmith_instance_destroy(tensmith_instance* instance) {
  if (!instance) return;
  tensmith_pool_destroy(instance->pool);
  if (!instance->host_arena) ts_release(instance, instance->arena, instance->arena_bytes);
  tensmith_unmap_weights(&instance->mapping);
  tensmith_unmap_memory(instance->weights_copy, instance->variant->weights_bytes);
  ts_release(instance, instance, instance->bytes);
}

TS_C_API const char* tensmith_instance_last_error(const tensmith_instance* instance) {
  return instance ? instance->message : "no instance";
}

TS_C_API int64_t tensmith_instance_arena_size(tensmith_instance* instance) {
  const tensmith_variant* v = instance->variant;
  int64_t bytes = 0;
  int bad = 0;
  if (v->arena_size) bytes = v->arena_size(instance->dims, instance->context.num_threads);
  else
    bad = __builtin_mul_overflow(v->arena_bytes_per_thread, (int64_t)instance->context.num_threads, &bytes) ||
          __builtin_add_overflow(bytes, v->arena_bytes, &bytes);
  if (!bad && bytes >= 0) return bytes;
  tensmith_text_add(tensmith_instance_message(instance), "workspace: the dimensions are too large");
  return TENSMITH_BAD_TENSOR;
}

TS_C_API int32_t tensmith_instance_reserve(tensmith_instance* instance) {
  int64_t bytes = tensmith_instance_arena_size(instance);
  void* memory;
  if (bytes < 0) return (int32_t)bytes;
  if (bytes <= instance->arena_bytes) return 0;
  if (instance->host_arena) {
    tensmith_text* text = tensmith_instance_message(instance);
    tensmith_text_add(text, "workspace: expected at least ");
    tensmith_text_add_int(text, bytes);
    tensmith_text_add(text, " bytes, got ");
    tensmith_text_add_int(text, instance->arena_bytes);
    return TENSMITH_BAD_ARGUMENT;
  }
  ts_release(instance, instance->arena, instance->arena_bytes);
  instance->arena = 0;
  instance->arena_bytes = 0;
  memory = ts_allocate(instance, bytes);
  if (!memory || (uintptr_t)memory % 64 != 0) {
    tensmith_text* text = tensmith_instance_message(instance);
    ts_release(instance, memory, bytes);
    tensmith_text_add(text,
                      memory ? "workspace: expected memory aligned to 64 bytes for " : "workspace: no memory for ");
    tensmith_text_add_int(text, bytes);
    tensmith_text_add(text, " bytes");
    return TENSMITH_OUT_OF_MEMORY;
  }
  instance->arena = memory;
  instance->arena_bytes = bytes;
  return 0;
}

static int32_t ts_host_loop(void* pool, tensmith_loop_body body, void* closure, int64_t extent) {
  tensmith_instance* instance = (tensmith_instance*)pool;
  return instance->host_parallel_for(instance->host_pool, body, closure, extent);
}


TS_C_API int32_t tensmith_instance_set_workspace(tensmith_instance* instance, void* memory, int64_t bytes) {
  if (!instance || bytes < 0 || (uintptr_t)memory % 64 != 0) return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  if (!instance->host_arena) ts_release(instance, instance->arena, instance->arena_bytes);
  instance->arena = memory;
  instance->arena_bytes = memory ? bytes : 0;
  instance->host_arena = memory != 0;
  tensmith_instance_leave(instance);
  return 0;
}

TS_C_API int32_t tensmith_instance_set_parallel_for(tensmith_instance* instance, tensmith_parallel_for parallel_for,
                                                    void* pool, int32_t num_threads) {
  /* Null means one thread to generated code, but a host's pool may well be null: it gets the instance, which knows the
   * pool. */
  if (!instance || (parallel_for && (num_threads < 1 || num_threads > TENSMITH_MAX_THREADS)))
    return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  tensmith_pool_destroy(instance->pool);
  instance->pool = 0;
  instance->context.num_threads = parallel_for ? num_threads : 1;
  instance->context.parallel_for = parallel_for ? ts_host_loop : 0;
  instance->context.pool = parallel_for ? instance : 0;
  instance->host_parallel_for = parallel_for;
  instance->host_pool = pool;
  tensmith_instance_leave(instance);
  return 0;
}

TS_C_API int32_t tensmith_instance_set_on_kernel(tensmith_instance* instance,
                                                 void (*on_kernel)(void* user, int32_t kernel, int32_t is_end),
                                                 void* user) {
  if (!instance) return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  instance->context.on_kernel = on_kernel;
  instance->context.user = user;
  tensmith_instance_leave(instance);
  return 0;
}

TS_C_API int32_t tensmith_instance_variant(const tensmith_instance* instance) {
  return (int32_t)(instance->variant - instance->model->variants);
}

TS_C_API int32_t tensmith_instance_threads(const tensmith_instance* instance) { return instance->context.num_threads; }
