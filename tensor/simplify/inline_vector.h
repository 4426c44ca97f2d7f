/// A growable array of trivially copyable values that keeps the first N in place: term lists are short and made all the
/// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace tensmith::simplifier {

template <typename T, uint32_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() : data_(reinterpret_cast<T*>(inline_)) {}
  InlineVector(std::initializer_list<T> list) : InlineVector() {
    for (const T& value : list) push_back(value);
  }
  InlineVector(const InlineVector& other) : InlineVector() { *this = other; }
  InlineVector& operator=(const InlineVector& other) {
    if (this == &other) return *this;
    size_ = 0;
    reserve(other.size_);
    if (other.size_) std::memcpy(static_cast<void*>(data_), other.data_, other.size_ * sizeof(T));
    size_ = other.size_;
    return *this;
  }

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void push_back(const T& value) {
    const T copy = value;  // `value` may live in this array
    if (size_ == capacity_) reserve(capacity_ * 2);
    data_[size_++] = copy;
  }
  void insert(uint32_t at, const T& value) {
    push_back(value);
    const T last = back();
    for (uint32_t i = size_ - 1; i > at; --i) data_[i] = data_[i - 1];
    data_[at] = last;
  }
  void erase(uint32_t at) {
    for (uint32_t i = at; i + 1 < size_; ++i) data_[i] = data_[i + 1];
    --size_;
  }

 private:
  void reserve(uint32_t count) {
    if (count <= capacity_) return;
    std::unique_ptr<std::byte[]> larger(new std::byte[count * sizeof(T)]);
    if (size_) std::memcpy(static_cast<void*>(larger.get()), data_, size_ * sizeof(T));
    heap_ = std::move(larger);
    data_ = reinterpret_cast<T*>(heap_.get());
    capacity_ = count;
  }

  alignas(T) std::byte inline_[N * sizeof(T)];
  T* data_;
  uint32_t size_ = 0, capacity_ = N;
  std::unique_ptr<std::byte[]> heap_;
};

}  // namespace tensmith::simplifier
