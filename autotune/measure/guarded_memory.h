/// Memory for a kernel's parameters that tells of accesses outside of it.
#pragma once

#include <cstdint>
#include <string>

namespace tensmith {

/// A buffer between two ranges of 64 KiB that may not be touched. It ends within 64 bytes of the one behind it; the
/// bytes in between and those before it hold a pattern that `intact` compares. Aligned to 64 bytes. Errors:
/// out-of-memory (DeviceError).
class GuardedBuffer {
 public:
  /// `name` shows in messages: "output Y".
  GuardedBuffer(int64_t bytes, const std::string& name);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;
  ~GuardedBuffer();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  /// No writes from now on: they are faults, told apart from others.
  void make_read_only();
  /// Whether the pattern around the buffer is as it was.
  bool intact() const;

 private:
  std::string name_;
  uint8_t* map_ = nullptr;
  int64_t map_bytes_ = 0;
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
  bool read_only_ = false;
};

}  // namespace tensmith
