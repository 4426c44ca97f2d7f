/// The base of all loop IR nodes: immutable, shared by an intrusive atomic reference count, tagged by kind.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tensmith {

/// The kinds of nodes; one line each in node_kinds.def.
enum class NodeKind : uint8_t {
#define TS_EXPR_KIND(Name) k##Name,
#define TS_STMT_KIND(Name) k##Name,
#include "tensor/node_kinds.def"
#undef TS_EXPR_KIND
#undef TS_STMT_KIND
};

/// An object that `Ref` can share.
class Shared {
 public:
  Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  virtual ~Shared() = default;

 private:
  template <typename T>
  friend class Ref;
  mutable std::atomic<uint32_t> uses_{0};
};

/// A node of the loop IR. Never changed after it was made.
class Node : public Shared {
 public:
  explicit Node(NodeKind kind) : kind(kind) {}
  const NodeKind kind;
};

/// A shared pointer to an immutable node or other shared object; null when default-constructed.
/// Threads: the count is atomic, so threads may share nodes.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(const T* node) : node_(node) { retain(); }  // NOLINT: implicit by design
  Ref(const Ref& other) : node_(other.node_) { retain(); }
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref() { release(); }

  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  /// Same node, not same structure (see `equal` in tensor/equal_hash.h).
  bool same_as(const Ref& other) const { return node_ == other.node_; }

 private:
  void retain() {
    if (node_) static_cast<const Shared*>(node_)->uses_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (node_ && static_cast<const Shared*>(node_)->uses_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }
  const T* node_ = nullptr;
};

}  // namespace tensmith
