/* C interface to programs in files: loads an exported library by path, without the host having to know its prefix.
 * Everything else goes through the table of functions that the library itself offers (runtime/export/abi.h). C89 but
 * for stdint.h.
 *
 *     tensmith_library* library;
 *     tensmith_instance* instance;
 *     const tensmith_api* api;
 *     if (tensmith_library_open("./libnet.so", 0, &library) != TENSMITH_OK) { puts(tensmith_last_message()); ... }
 *     api = tensmith_library_api(library);
 *     tensmith_library_create(library, 2, &instance);
 *     api->run_tensors(instance, inputs, outputs);
 *     api->destroy(instance);
 *     tensmith_library_close(library);
 */
#ifndef TENSMITH_RUNTIME_C_API_H
#define TENSMITH_RUNTIME_C_API_H

#include "runtime/export/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TENSMITH_EXPORT __attribute__((visibility("default")))
#else
#define TENSMITH_EXPORT
#endif

/* Further codes of this interface. */
#define TENSMITH_CANNOT_LOAD \
  (-20) /* no such file, no library, wrong architecture, another interface version, changed since export */
#define TENSMITH_INTERNAL (-21) /* our fault */

typedef struct tensmith_library tensmith_library;

/* Version of the tool, such as "0.1.0". */
TENSMITH_EXPORT const char* tensmith_version(void);
/* Message of the last failure in this thread, "" if there is none. Valid until the next call in this thread. */
TENSMITH_EXPORT const char* tensmith_last_message(void);

/* Loads an exported library. `prefix` (such as "net_") chooses a program if there are several in it, else null. The
 * file is machine code that runs with the rights of this process. */
TENSMITH_EXPORT int32_t tensmith_library_open(const char* path, const char* prefix, tensmith_library** library);
/* Closes it; all instances must have been destroyed. Null is allowed. */
TENSMITH_EXPORT void tensmith_library_close(tensmith_library* library);
/* The library's table of functions; valid until it is closed. */
TENSMITH_EXPORT const tensmith_api* tensmith_library_api(const tensmith_library* library);
/* Makes an instance with that many threads (0: as compiled); its message is kept for tensmith_last_message. Other
 * options: api->create. */
TENSMITH_EXPORT int32_t tensmith_library_create(const tensmith_library* library, int32_t num_threads,
                                                tensmith_instance** instance);

#ifdef __cplusplus
}
#endif

#endif /* TENSMITH_RUNTIME_C_API_H */
