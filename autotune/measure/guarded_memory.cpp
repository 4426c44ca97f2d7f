#include "autotune/measure/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "autotune/measure/worker_faults.h"
#include "runtime/base/error.h"

namespace tensmith {

namespace {
constexpr uint8_t kPattern = 0xA5;
}  // namespace

GuardedBuffer::GuardedBuffer(int64_t bytes, const std::string& name) : name_(name), bytes_(bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t used = (bytes + 63) / 64 * 64;
  const int64_t inner = std::max(page, (used + page - 1) / page * page);
  map_bytes_ = inner + 2 * page;
  void* map =
      mmap(nullptr, static_cast<size_t>(map_bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    throw DeviceError("out-of-memory", name + ": the system gives no " + std::to_string(map_bytes_) + " bytes");
  map_ = static_cast<uint8_t*>(map);
  data_ = map_ + page + inner - used;
  mprotect(map_, static_cast<size_t>(page), PROT_NONE);
  mprotect(map_ + page + inner, static_cast<size_t>(page), PROT_NONE);
  add_guard_zone(map_, page, "before " + name);
  add_guard_zone(map_ + page + inner, page, "behind " + name);
  std::memset(map_ + page, kPattern, static_cast<size_t>(data_ - map_ - page));
  std::memset(data_ + bytes_, kPattern, static_cast<size_t>(used - bytes_));
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : name_(std::move(other.name_)),
      map_(std::exchange(other.map_, nullptr)),
      map_bytes_(other.map_bytes_),
      data_(other.data_),
      bytes_(other.bytes_),
      read_only_(other.read_only_) {}

GuardedBuffer::~GuardedBuffer() {
  if (!map_) return;
  const int64_t page = sysconf(_SC_PAGESIZE);
  remove_guard_zone(map_);
  remove_guard_zone(map_ + map_bytes_ - page);
  if (read_only_) remove_guard_zone(map_ + page);
  munmap(map_, static_cast<size_t>(map_bytes_));
}

void GuardedBuffer::make_read_only() {
  if (read_only_) return;
  const int64_t page = sysconf(_SC_PAGESIZE);
  mprotect(map_ + page, static_cast<size_t>(map_bytes_ - 2 * page), PROT_READ);
  add_guard_zone(map_ + page, map_bytes_ - 2 * page, "into " + name_);
  read_only_ = true;
}

bool GuardedBuffer::intact() const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const auto clean = [](const uint8_t* from, const uint8_t* to) {
    return std::all_of(from, to, [](uint8_t byte) { return byte == kPattern; });
  };
  return clean(map_ + page, data_) && clean(data_ + bytes_, map_ + map_bytes_ - page);
}

}  // namespace tensmith
