/* The file of weights that lies beside an exported library: a header of one page, the data as they are mapped, and the
 * digest of all that. The digest stands last so that whoever writes the file needs to go over the data only once. */
#ifndef TENSMITH_RUNTIME_EXPORT_WEIGHTS_FILE_H
#define TENSMITH_RUNTIME_EXPORT_WEIGHTS_FILE_H

#include <stdint.h>

#define TENSMITH_WEIGHTS_MAGIC "TSWEIGHT"
#define TENSMITH_WEIGHTS_VERSION 2
#define TENSMITH_WEIGHTS_HEADER_BYTES 4096
#define TENSMITH_WEIGHTS_DIGEST_BYTES 32 /* SHA-256 of header and data */

/* Little-endian; the rest of the header is zero. */
typedef struct tensmith_weights_header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t data_bytes;
} tensmith_weights_header;

#endif
