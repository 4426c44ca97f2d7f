/* Instances of a described model: everything between the interface (abi.h) and the generated code. In C: the tool runs
 * programs that it compiled in memory through the same functions that an exported library carries. */
#ifndef TENSMITH_RUNTIME_EXPORT_INSTANCE_H
#define TENSMITH_RUNTIME_EXPORT_INSTANCE_H

#include "runtime/base/c_core.h"
#include "runtime/export/abi.h"

/* As the functions of tensmith_api, for a model given as its description. The description must outlive the instance. */
TS_C_API int32_t tensmith_instance_create(const tensmith_model* model, const tensmith_options* options,
                                          tensmith_instance** instance);
TS_C_API void tensmith_instance_destroy(tensmith_instance* instance);
TS_C_API int32_t tensmith_instance_run_buffers(tensmith_instance* instance, const void* const* inputs,
                                               void* const* outputs, const int64_t* symbols);
TS_C_API int32_t tensmith_instance_run_tensors(tensmith_instance* instance, const tensmith_tensor* inputs,
                                               const tensmith_tensor* outputs);
TS_C_API int32_t tensmith_instance_output_shape(tensmith_instance* instance, const tensmith_tensor* inputs,
                                                int32_t output, int64_t* shape);
TS_C_API const char* tensmith_instance_last_error(const tensmith_instance* instance);
TS_C_API int64_t tensmith_instance_workspace_size(tensmith_instance* instance, const int64_t* symbols);
TS_C_API int32_t tensmith_instance_set_workspace(tensmith_instance* instance, void* memory, int64_t bytes);
TS_C_API int32_t tensmith_instance_set_parallel_for(tensmith_instance* instance, tensmith_parallel_for parallel_for,
                                                    void* pool, int32_t num_threads);
TS_C_API int32_t tensmith_instance_set_on_kernel(tensmith_instance* instance,
                                                 void (*on_kernel)(void* user, int32_t kernel, int32_t is_end),
                                                 void* user);
TS_C_API int32_t tensmith_instance_variant(const tensmith_instance* instance);
TS_C_API int32_t tensmith_instance_threads(const tensmith_instance* instance);

/* Index of the best variant that this CPU can run and whose target begins with `target` (null: any); -1 with a message
 * if none. */
TS_C_API int32_t tensmith_choose_variant(const tensmith_model* model, const char* target, char* error,
                                         int64_t error_bytes);

#endif
