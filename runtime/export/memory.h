/* Memory of instances: workspace with huge pages, mapped weights. In C; part of exported libraries. */
#ifndef TENSMITH_RUNTIME_EXPORT_MEMORY_H
#define TENSMITH_RUNTIME_EXPORT_MEMORY_H

#include "runtime/base/c_core.h"
#include "runtime/export/text.h"

/* Zeroed memory of the operating system, aligned to 64 bytes; from 4 MiB on aligned to 2 MiB and marked for huge pages
 * if asked. Null: there is none. */
TS_C_API void* tensmith_map_memory(int64_t bytes, int32_t huge_pages);
TS_C_API void tensmith_unmap_memory(void* memory, int64_t bytes);

/* A file mapped read-only. */
typedef struct tensmith_mapping {
  void* base;
  int64_t bytes;
} tensmith_mapping;

/* Maps a file of weights and checks its header and digest against what the library expects (the digest as it stands in
 * the file; tensmith_weights_digest computes it): 0 or TENSMITH_BAD_WEIGHTS with a
 * message. *data receives the address of the weights. */
TS_C_API int32_t tensmith_map_weights(const char* path, int64_t data_bytes, const uint8_t* sha256,
                                      tensmith_mapping* mapping, const void** data, tensmith_text* error);
/* The digest of a file with these data, 32 bytes. */
TS_C_API void tensmith_weights_digest(const void* data, int64_t data_bytes, uint8_t* digest);
TS_C_API void tensmith_unmap_weights(tensmith_mapping* mapping);

/* Path of a file beside the module (library or program) that contains `address`: 1, or 0 if that cannot be found out.
 */
TS_C_API int32_t tensmith_path_beside(const void* address, const char* file, tensmith_text* path);

#endif
