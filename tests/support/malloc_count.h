/// Counts allocations of a test program that lists malloc_count.cpp among its sources.
#pragma once

#include <cstdint>

namespace tensmith::test {

/// Calls of malloc, calloc, realloc, aligned_alloc and posix_memalign since the start, by all threads (operator new
/// included).
int64_t malloc_count();
/// False where a sanitizer owns the allocator: then `malloc_count` stays 0 and tests skip.
bool counts_mallocs();

}  // namespace tensmith::test
