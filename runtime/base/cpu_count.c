/* Affinity mask, control-group quota and hyper-threads. Plain C without allocation: part of exported libraries. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/base/cpu_count.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TS_MAX_CPUS 4096

/* Reads a small text file; the number of bytes, 0 if it cannot be read. */
static int64_t ts_read_text(const char* path, char* text, int64_t size) {
  int64_t used = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  while (used < size - 1) {
    ssize_t got = read(file, text + used, (size_t)(size - 1 - used));
    if (got <= 0) break;
    used += got;
  }
  close(file);
  text[used] = 0;
  return used;
}

/* Decimal number at `*p`, which is moved behind it; -1 if there is none. */
static int64_t ts_number(const char** p) {
  int64_t value = 0;
  const char* s = *p;
  if (*s < '0' || *s > '9') return -1;
  while (*s >= '0' && *s <= '9') {
    if (value > INT64_MAX / 16) return -1;
    value = value * 10 + (*s++ - '0');
  }
  *p = s;
  return value;
}

/* The raw system call: glibc's CPU_COUNT is a function that other C libraries lack. Returns the bytes written. */
static long ts_affinity(unsigned char* mask) {
  memset(mask, 0, TS_MAX_CPUS / 8);
  return syscall(SYS_sched_getaffinity, 0, (unsigned long)(TS_MAX_CPUS / 8), mask);
}

TS_C_API int32_t tensmith_affinity_cpus(void) {
  unsigned char mask[TS_MAX_CPUS / 8];
  int32_t count = 0;
  long i, bytes = ts_affinity(mask);
  for (i = 0; i < bytes * 8; ++i) count += mask[i / 8] >> (i % 8) & 1;
  return count > 0 ? count : 1;
}

/* Appends to a path buffer; 0 if it does not fit. */
static int ts_append(char* buffer, size_t size, const char* text, size_t length) {
  size_t used = strlen(buffer);
  if (used + length + 1 > size) return 0;
  memcpy(buffer + used, text, length);
  buffer[used + length] = 0;
  return 1;
}

static int64_t ts_milli(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 && quota < INT64_MAX / 1000 ? quota * 1000 / period : 0;
}

/* The quota of one group folder: version 2's `cpu.max` or version 1's pair of files; 0 = none. */
static int64_t ts_group_quota(const char* folder, int version) {
  char path[1200], text[128];
  const char* p = text;
  int64_t quota, period;
  path[0] = 0;
  if (!ts_append(path, sizeof path, folder, strlen(folder))) return 0;
  if (version == 2) {
    if (!ts_append(path, sizeof path, "/cpu.max", 8) || !ts_read_text(path, text, sizeof text)) return 0;
    quota = ts_number(&p); /* "max" gives -1 */
    while (*p == ' ') ++p;
    return ts_milli(quota, ts_number(&p));
  }
  if (!ts_append(path, sizeof path, "/cpu.cfs_quota_us", 17) || !ts_read_text(path, text, sizeof text)) return 0;
  quota = ts_number(&p); /* "-1" gives -1 */
  path[strlen(folder)] = 0;
  if (!ts_append(path, sizeof path, "/cpu.cfs_period_us", 18) || !ts_read_text(path, text, sizeof text)) return 0;
  p = text;
  period = ts_number(&p);
  return ts_milli(quota, period);
}

/* Smallest quota from a group up to the root: any ancestor may be the one that limits. */
static int64_t ts_path_quota(const char* root, const char* group, size_t length, int version) {
  char folder[1024];
  size_t base = strlen(root);
  int64_t best = 0;
  folder[0] = 0;
  if (!ts_append(folder, sizeof folder, root, base)) return 0;
  if (!ts_append(folder, sizeof folder, group, length)) folder[base] = 0;
  for (;;) {
    int64_t quota = ts_group_quota(folder, version);
    size_t end = strlen(folder);
    if (quota > 0 && (best == 0 || quota < best)) best = quota;
    if (end <= base) return best;
    while (end > base && folder[end - 1] != '/') --end;
    folder[end > base ? end - 1 : base] = 0;
  }
}

TS_C_API int64_t tensmith_cgroup_milli_cpus(void) {
  char text[4096];
  const char* line = text;
  int64_t best = 0;
  if (!ts_read_text("/proc/self/cgroup", text, sizeof text)) return 0;
  while (*line) { /* lines of the form  number:controllers:path */
    const char* end = line;
    const char* names;
    const char* group;
    int64_t quota = 0;
    while (*end && *end != '\n') ++end;
    names = line;
    while (names < end && *names != ':') ++names;
    group = names < end ? names + 1 : end;
    while (group < end && *group != ':') ++group;
    if (group < end) {
      const char* controllers = names + 1;
      size_t length = (size_t)(end - group - 1);
      if (controllers == group) {
        quota = ts_path_quota("/sys/fs/cgroup", group + 1, length, 2);
      } else {
        const char* p = controllers;
        while (p < group) { /* comma-separated; ours is "cpu" */
          const char* q = p;
          while (q < group && *q != ',') ++q;
          if (q - p == 3 && memcmp(p, "cpu", 3) == 0) quota = ts_path_quota("/sys/fs/cgroup/cpu", group + 1, length, 1);
          p = q + 1;
        }
      }
    }
    if (quota > 0 && (best == 0 || quota < best)) best = quota;
    line = *end ? end + 1 : end;
  }
  return best;
}

/* First CPU of the hyper-thread siblings of `cpu`: two CPUs with the same first sibling share a core. */
static int64_t ts_first_sibling(int64_t cpu) {
  char path[128] = "/sys/devices/system/cpu/cpu", digits[24], text[64];
  const char* p = text;
  int64_t value = cpu, first;
  size_t n = sizeof digits;
  do {
    digits[--n] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  ts_append(path, sizeof path, digits + n, sizeof digits - n);
  ts_append(path, sizeof path, "/topology/thread_siblings_list", 30);
  if (!ts_read_text(path, text, sizeof text)) return cpu;
  first = ts_number(&p);
  return first >= 0 && first < TS_MAX_CPUS ? first : cpu;
}

TS_C_API int32_t tensmith_usable_cores(void) {
  unsigned char mask[TS_MAX_CPUS / 8], cores[TS_MAX_CPUS / 8];
  int32_t count = 0;
  int64_t quota = tensmith_cgroup_milli_cpus();
  long i, bytes = ts_affinity(mask);
  memset(cores, 0, sizeof cores);
  for (i = 0; i < bytes * 8; ++i) {
    if (mask[i / 8] >> (i % 8) & 1) {
      int64_t core = ts_first_sibling(i);
      if (!(cores[core / 8] >> (core % 8) & 1)) ++count;
      cores[core / 8] = (unsigned char)(cores[core / 8] | 1u << (core % 8));
    }
  }
  if (count < 1) count = 1;
  if (quota > 0 && (quota + 999) / 1000 < count) count = (int32_t)((quota + 999) / 1000);
  return count;
}
