/* The file of weights that lies beside an exported library: a header of one page, then the data as they are mapped. */
#ifndef TENSMITH_RUNTIME_EXPORT_WEIGHTS_FILE_H
#define TENSMITH_RUNTIME_EXPORT_WEIGHTS_FILE_H

#include <stdint.h>

#define TENSMITH_WEIGHTS_MAGIC "TSWEIGHT"
#define TENSMITH_WEIGHTS_VERSION 1
#define TENSMITH_WEIGHTS_HEADER_BYTES 4096

/* Little-endian; the rest of the header is zero. */
typedef struct tensmith_weights_header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t data_bytes;
  uint8_t sha256[32]; /* of the data */
} tensmith_weights_header;

#endif
