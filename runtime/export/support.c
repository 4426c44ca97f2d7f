/* The support object of exported libraries: every C part as static functions of one translation unit, and the entries
 * of one model. The exporter links it with the generated code after renaming tensmith_support_X to the library's prefix
 * and X (runtime/export/elf_rename.h), so any number of libraries fit into one program. It is compiled for the weakest
 * CPU of its architecture: it runs before the check. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define TS_C_API static __attribute__((unused))

/* clang-format off: each part's own header follows what it needs. */
#include "runtime/base/cpu_check.c"
#include "runtime/base/cpu_count.c"
#include "runtime/base/sha256_core.c"
#include "runtime/export/text.c"
#include "runtime/export/memory.c"
#include "runtime/export/pool.c"
#include "runtime/export/instance.c"
#include "runtime/export/instance_run.c"
/* clang-format on */

#define TS_ENTRY __attribute__((visibility("default")))

/* The model's description, generated with the code. */
extern const tensmith_model tensmith_support_model __attribute__((visibility("hidden")));

TS_ENTRY int32_t tensmith_support_create(const tensmith_options* options, tensmith_instance** instance) {
  return tensmith_instance_create(&tensmith_support_model, options, instance);
}
TS_ENTRY void tensmith_support_destroy(tensmith_instance* instance) { tensmith_instance_destroy(instance); }
TS_ENTRY int32_t tensmith_support_run_buffers(tensmith_instance* instance, const void* const* inputs,
                                              void* const* outputs, const int64_t* symbols) {
  return tensmith_instance_run_buffers(instance, inputs, outputs, symbols);
}
TS_ENTRY int32_t tensmith_support_run_tensors(tensmith_instance* instance, const tensmith_tensor* inputs,
                                              const tensmith_tensor* outputs) {
  return tensmith_instance_run_tensors(instance, inputs, outputs);
}
TS_ENTRY int32_t tensmith_support_output_shape(tensmith_instance* instance, const tensmith_tensor* inputs,
                                               int32_t output, int64_t* shape) {
  return tensmith_instance_output_shape(instance, inputs, output, shape);
}
TS_ENTRY const char* tensmith_support_last_error(const tensmith_instance* instance) {
  return tensmith_instance_last_error(instance);
}
TS_ENTRY int64_t tensmith_support_workspace_size(tensmith_instance* instance, const int64_t* symbols) {
  return tensmith_instance_workspace_size(instance, symbols);
}
TS_ENTRY int32_t tensmith_support_set_workspace(tensmith_instance* instance, void* memory, int64_t bytes) {
  return tensmith_instance_set_workspace(instance, memory, bytes);
}
TS_ENTRY int32_t tensmith_support_set_parallel_for(tensmith_instance* instance, tensmith_parallel_for parallel_for,
                                                   void* pool, int32_t num_threads) {
  return tensmith_instance_set_parallel_for(instance, parallel_for, pool, num_threads);
}
TS_ENTRY int32_t tensmith_support_set_on_kernel(tensmith_instance* instance,
                                                void (*on_kernel)(void* user, int32_t kernel, int32_t is_end),
                                                void* user) {
  return tensmith_instance_set_on_kernel(instance, on_kernel, user);
}

TS_ENTRY const tensmith_api* tensmith_support_get_api(uint32_t max_version) {
  static const tensmith_api api = {
      sizeof(tensmith_api),           TENSMITH_ABI_VERSION,
      &tensmith_support_model,        tensmith_support_create,
      tensmith_support_destroy,       tensmith_support_run_buffers,
      tensmith_support_run_tensors,   tensmith_support_output_shape,
      tensmith_support_last_error,    tensmith_support_workspace_size,
      tensmith_support_set_workspace, tensmith_support_set_parallel_for,
      tensmith_support_set_on_kernel, tensmith_instance_variant,
      tensmith_instance_threads,
  };
  return max_version >= TENSMITH_ABI_VERSION ? &api : 0;
}
