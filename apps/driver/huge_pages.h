/// Memory for large constant data: huge pages where the system gives them (one thread reads weights from DRAM a third
/// faster).
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace tensmith {

/// An allocator that starts large blocks at huge pages and asks the system for them.
template <typename T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (!memory) throw std::bad_alloc();
    if (bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }
};

/// Bytes of weights, aligned to 64 bytes at least.
using WeightBytes = std::vector<uint8_t, HugePageAllocator<uint8_t>>;

}  // namespace tensmith
