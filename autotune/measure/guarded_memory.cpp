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
/// Addresses on each side that may not be touched; they cost no memory. A row too far is still inside.
constexpr int64_t kGuardBytes = 64 << 10;
}  // namespace

GuardedBuffer::GuardedBuffer(int64_t bytes, const std::string& name) : name_(name), bytes_(bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t used = (bytes + 63) / 64 * 64;
  const int64_t inner = std::max(page, (used + page - 1) / page * page);
  map_bytes_ = inner + 2 * kGuardBytes;
  void* map =
      mmap(nullptr, static_cast<size_t>(map_bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    throw DeviceError("out-of-memory", name + ": the system gives no " + std::to_string(map_bytes_) + " bytes");
  map_ = static_cast<uint8_t*>(map);
  data_ = map_ + kGuardBytes + inner - used;
  mprotect(map_, static_cast<size_t>(kGuardBytes), PROT_NONE);
  mprotect(map_ + kGuardBytes + inner, static_cast<size_t>(kGuardBytes), PROT_NONE);
  add_guard_zone(map_, kGuardBytes, "before " + name);
  add_guard_zone(map_ + kGuardBytes + inner, kGuardBytes, "behind " + name);
  std::memset(map_ + kGuardBytes, kPattern, static_cast<size_t>(data_ - map_ - kGuardBytes));
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
  remove_guard_zone(map_);
  remove_guard_zone(map_ + map_bytes_ - kGuardBytes);
  if (read_only_) remove_guard_zone(map_ + kGuardBytes);
  munmap(map_, static_cast<size_t>(map_bytes_));
}

void GuardedBuffer::make_read_only() {
  if (read_only_) return;
  mprotect(map_ + kGuardBytes, static_cast<size_t>(map_bytes_ - 2 * kGuardBytes), PROT_READ);
  add_guard_zone(map_ + kGuardBytes, map_bytes_ - 2 * kGuardBytes, "into " + name_);
  read_only_ = true;
}

bool GuardedBuffer::intact() const {
  const auto clean = [](const uint8_t* from, const uint8_t* to) {
    return std::all_of(from, to, [](uint8_t byte) { return byte == kPattern; });
  };
  return clean(map_ + kGuardBytes, data_) && clean(data_ + bytes_, map_ + map_bytes_ - kGuardBytes);
}

}  // namespace tensmith
