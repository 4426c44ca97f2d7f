#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/export/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/sha256_core.h"
#include "runtime/export/abi.h"
#include "runtime/export/weights_file.h"

#define TS_HUGE_PAGE ((int64_t)2 << 20)

static int64_t ts_mapped_bytes(int64_t bytes) {
  /* Two lines behind the end: vector code may read a whole last line. */
  int64_t unit = bytes >= 2 * TS_HUGE_PAGE ? TS_HUGE_PAGE : 4096;
  if (bytes < 0 || bytes > INT64_MAX / 2) return -1;
  return (bytes + 128 + unit - 1) / unit * unit;
}

TS_C_API void* tensmith_map_memory(int64_t bytes, int32_t huge_pages) {
  int64_t size = ts_mapped_bytes(bytes), slack = size >= 2 * TS_HUGE_PAGE ? TS_HUGE_PAGE : 0;
  char* base;
  if (size < 0) return 0;
  base = (char*)mmap(0, (size_t)(size + slack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                     0);
  if (base == (char*)MAP_FAILED) return 0;
  if (slack) { /* keep the part that begins at a multiple of 2 MiB */
    int64_t before = (TS_HUGE_PAGE - (int64_t)((uintptr_t)base % (uintptr_t)TS_HUGE_PAGE)) % TS_HUGE_PAGE;
    if (before) munmap(base, (size_t)before);
    munmap(base + before + size, (size_t)(slack - before));
    base += before;
    if (huge_pages) madvise(base, (size_t)size, MADV_HUGEPAGE);
  }
  return base;
}

TS_C_API void tensmith_unmap_memory(void* memory, int64_t bytes) {
  if (memory) munmap(memory, (size_t)ts_mapped_bytes(bytes));
}

static int32_t ts_bad_weights(tensmith_text* error, const char* path, const char* what) {
  tensmith_text_add(error, "weights ");
  tensmith_text_add(error, path);
  tensmith_text_add(error, ": ");
  tensmith_text_add(error, what);
  return TENSMITH_BAD_WEIGHTS;
}

static const char* ts_why(int code) {
  return code == ENOENT   ? "no such file; keep it beside the library or pass its path"
         : code == EACCES ? "may not be read"
                          : "cannot be read";
}

/* Not memcmp, which compilers leave as a call for that many bytes: one more symbol that a library would need. */
static int ts_same_digest(const uint8_t* a, const uint8_t* b) {
  uint8_t differing = 0;
  int i;
  for (i = 0; i < TENSMITH_WEIGHTS_DIGEST_BYTES; ++i) differing |= (uint8_t)(a[i] ^ b[i]);
  return differing == 0;
}

TS_C_API int32_t tensmith_map_weights(const char* path, int64_t data_bytes, const uint8_t* sha256,
                                      tensmith_mapping* mapping, const void** data, tensmith_text* error) {
  tensmith_weights_header header;
  uint8_t digest[TENSMITH_WEIGHTS_DIGEST_BYTES];
  int64_t size;
  void* base;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make the host wait */
  if (file < 0) return ts_bad_weights(error, path, ts_why(errno));
  size = lseek(file, 0, SEEK_END);
  if (size < TENSMITH_WEIGHTS_HEADER_BYTES || pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header ||
      memcmp(header.magic, TENSMITH_WEIGHTS_MAGIC, sizeof header.magic) != 0) {
    close(file);
    return ts_bad_weights(error, path, "is not a file of weights");
  }
  if (header.version != TENSMITH_WEIGHTS_VERSION || header.header_bytes != TENSMITH_WEIGHTS_HEADER_BYTES) {
    close(file);
    return ts_bad_weights(error, path, "has a format that this library does not know; export both again");
  }
  if (header.data_bytes != (uint64_t)data_bytes) {
    close(file);
    return ts_bad_weights(error, path, "belongs to another library; export both again");
  }
  if (data_bytes > INT64_MAX - TENSMITH_WEIGHTS_HEADER_BYTES - TENSMITH_WEIGHTS_DIGEST_BYTES ||
      size != TENSMITH_WEIGHTS_HEADER_BYTES + data_bytes + TENSMITH_WEIGHTS_DIGEST_BYTES ||
      pread(file, digest, sizeof digest, TENSMITH_WEIGHTS_HEADER_BYTES + data_bytes) != (ssize_t)sizeof digest) {
    close(file);
    return ts_bad_weights(error, path, "is cut off or too long; copy it again");
  }
  if (!ts_same_digest(digest, sha256)) {
    close(file);
    return ts_bad_weights(error, path, "belongs to another library; export both again");
  }
  base = mmap(0, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (base == MAP_FAILED) return ts_bad_weights(error, path, "cannot be mapped");
  mapping->base = base;
  mapping->bytes = size;
  *data = (char*)base + TENSMITH_WEIGHTS_HEADER_BYTES;
  return 0;
}

TS_C_API void tensmith_weights_digest(const void* data, int64_t data_bytes, uint8_t* digest) {
  static const uint8_t zeros[256];
  tensmith_weights_header header;
  tensmith_sha256 hash;
  size_t left = TENSMITH_WEIGHTS_HEADER_BYTES - sizeof header;
  memset(&header, 0, sizeof header);
  memcpy(header.magic, TENSMITH_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = TENSMITH_WEIGHTS_VERSION;
  header.header_bytes = TENSMITH_WEIGHTS_HEADER_BYTES;
  header.data_bytes = (uint64_t)data_bytes;
  tensmith_sha256_init(&hash);
  tensmith_sha256_update(&hash, &header, sizeof header);
  while (left > 0) {
    size_t count = left < sizeof zeros ? left : sizeof zeros;
    tensmith_sha256_update(&hash, zeros, count);
    left -= count;
  }
  tensmith_sha256_update(&hash, data, (size_t)data_bytes);
  tensmith_sha256_final(&hash, digest);
}

TS_C_API void tensmith_unmap_weights(tensmith_mapping* mapping) {
  if (mapping->base) munmap(mapping->base, (size_t)mapping->bytes);
  mapping->base = 0;
}

/* First `c` in [p, end), or null. */
static char* ts_find(char* p, const char* end, char c) {
  for (; p < end; ++p)
    if (*p == c) return p;
  return 0;
}

/* A hexadecimal number at `p` up to `end`; moves *p behind it. */
static uint64_t ts_hex(const char** p, const char* end) {
  uint64_t value = 0;
  for (; *p < end; ++*p) {
    char c = **p;
    if (c >= '0' && c <= '9') value = value << 4 | (uint64_t)(c - '0');
    else if (c >= 'a' && c <= 'f') value = value << 4 | (uint64_t)(c - 'a' + 10);
    else break;
  }
  return value;
}

/* Path of the module that holds an address, from the kernel's list of mappings (dladdr would need another library on
 * older systems, and static programs have none). */
TS_C_API int32_t tensmith_path_beside(const void* address, const char* file, tensmith_text* path) {
  char buffer[8192];
  int64_t used = 0;
  int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return 0;
  for (;;) {
    char* line = buffer;
    char* end;
    ssize_t got = read(maps, buffer + used, sizeof buffer - (size_t)used);
    if (got > 0) used += got;
    /* Whole lines:  from-to rights offset device inode   path  */
    while ((end = ts_find(line, buffer + used, '\n')) != 0) {
      const char* p = line;
      uint64_t from = ts_hex(&p, end), to;
      ++p;
      to = ts_hex(&p, end);
      if ((uintptr_t)address >= from && (uintptr_t)address < to) {
        const char* slash = ts_find(line, end, '/');
        const char* last = end;
        close(maps);
        if (!slash) return 0;
        while (last > slash && last[-1] != '/') --last;
        tensmith_text_clear(path);
        tensmith_text_add_bytes(path, slash, last - slash);
        tensmith_text_add(path, file);
        return path->used + 1 < path->bytes; /* else it was cut off */
      }
      line = end + 1;
    }
    if (got <= 0) break;
    used = buffer + used - line;
    memmove(buffer, line, (size_t)used);
    if (used == (int64_t)sizeof buffer) used = 0; /* a line longer than the buffer is not ours */
  }
  close(maps);
  return 0;
}
