/* SHA-256 in C: the tool's digests (sha256.h) and the check of mapped weights in exported libraries. Source: FIPS
 * 180-4. */
#ifndef TENSMITH_RUNTIME_BASE_SHA256_CORE_H
#define TENSMITH_RUNTIME_BASE_SHA256_CORE_H

#include <stddef.h>

#include "runtime/base/c_core.h"

typedef struct tensmith_sha256 {
  uint32_t state[8];
  uint8_t buffer[64];
  uint64_t total;
} tensmith_sha256;

TS_C_API void tensmith_sha256_init(tensmith_sha256* hash);
TS_C_API void tensmith_sha256_update(tensmith_sha256* hash, const void* data, size_t size);
/* The 32 bytes; the hash must not be updated after. */
TS_C_API void tensmith_sha256_final(tensmith_sha256* hash, uint8_t* digest);

#endif
