#include "tensor/equal_hash.h"

#include <bit>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tensmith {

namespace {

/// Calls `fn` with the node as its own class.
template <typename F>
auto dispatch(const Node& node, F&& fn) {
  using Var = VarNode;  // the class of kind kVar
  switch (node.kind) {
#define TS_EXPR_KIND(Name) \
  case NodeKind::k##Name:  \
    return fn(static_cast<const Name&>(node));
#define TS_STMT_KIND(Name) TS_EXPR_KIND(Name)
#include "tensor/node_kinds.def"
#undef TS_EXPR_KIND
#undef TS_STMT_KIND
  }
  TS_UNREACHABLE() << static_cast<int>(node.kind);
}

/// All NaNs are one value; +0 and -0 are two.
uint64_t float_bits(double value) { return std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<uint64_t>(value); }

/// Which object of the one side stands for which of the other; several bindings of one object shadow each other.
class Pairs {
 public:
  struct Saved {
    const Shared *a, *b, *old_of_a, *old_of_b;
  };
  Saved bind(const Shared* a, const Shared* b) {
    const Saved saved{a, b, std::exchange(forward_[a], b), std::exchange(backward_[b], a)};
    renamed_ += a != b;
    return saved;
  }
  void unbind(const Saved& saved) {
    restore(forward_, saved.a, saved.old_of_a);
    restore(backward_, saved.b, saved.old_of_b);
    renamed_ -= saved.a != saved.b;
  }
  bool match(const Shared* a, const Shared* b) const {
    const auto x = forward_.find(a), y = backward_.find(b);
    if (x == forward_.end() && y == backward_.end()) return a == b;
    return x != forward_.end() && y != backward_.end() && x->second == b && y->second == a;
  }
  /// Every bound object stands for itself, so one node on both sides is equal to itself.
  bool is_identity() const { return renamed_ == 0; }

 private:
  using Map = std::unordered_map<const Shared*, const Shared*>;
  static void restore(Map& map, const Shared* key, const Shared* old) {
    if (old) map[key] = old;
    else map.erase(key);
  }
  Map forward_, backward_;
  int renamed_ = 0;
};

class Comparer {
 public:
  bool same(const Expr& a, const Expr& b) { return same_nodes<ExprNode>(a, b); }
  bool same(const Stmt& a, const Stmt& b) { return same_nodes<StmtNode>(a, b); }

  bool same(const LoopFunction& a, const LoopFunction& b) {
    if (a.buffers.size() != b.buffers.size() || a.scalars.size() != b.scalars.size() ||
        a.outputs.size() != b.outputs.size() || a.attrs != b.attrs)
      return false;
    for (size_t k = 0; k < a.scalars.size(); ++k) {
      if (a.scalars[k].dtype() != b.scalars[k].dtype()) return false;
      pairs_.bind(a.scalars[k].get(), b.scalars[k].get());
    }
    for (size_t k = 0; k < a.buffers.size(); ++k) {
      if (!same_type(a.buffers[k], b.buffers[k])) return false;
      pairs_.bind(a.buffers[k].get(), b.buffers[k].get());
    }
    for (size_t k = 0; k < a.outputs.size(); ++k)
      if (!pairs_.match(a.outputs[k].get(), b.outputs[k].get())) return false;
    return same(a.body, b.body);
  }

 private:
  template <typename N>
  bool same_nodes(const Ref<N>& a, const Ref<N>& b) {
    if (!a || !b) return !a && !b;
    if (a.same_as(b) && pairs_.is_identity()) return true;
    if (a->kind != b->kind) return false;
    return dispatch(
        *a, [&](const auto& x) { return same_node(x, static_cast<decltype(x)>(static_cast<const Node&>(*b))); });
  }

  template <typename T>
  bool same_node(const T& a, const T& b) {
    if constexpr (std::is_base_of_v<ExprNode, T>) {
      if (a.dtype != b.dtype) return false;
    }
    return same_fields(a.fields(), b.fields(), std::make_index_sequence<std::tuple_size_v<decltype(a.fields())>>());
  }
  bool same_node(const VarNode& a, const VarNode& b) { return a.dtype == b.dtype && pairs_.match(&a, &b); }
  bool same_node(const Let& a, const Let& b) {
    return a.dtype == b.dtype && same(a.value, b.value) && under(a.var, b.var, a.body, b.body);
  }
  bool same_node(const LetStmt& a, const LetStmt& b) {
    return same(a.value, b.value) && under(a.var, b.var, a.body, b.body);
  }
  bool same_node(const For& a, const For& b) {
    return a.for_kind == b.for_kind && a.attrs == b.attrs && same(a.min, b.min) && same(a.extent, b.extent) &&
           under(a.var, b.var, a.body, b.body);
  }
  bool same_node(const Allocate& a, const Allocate& b) {
    if (!same_type(a.buffer, b.buffer)) return false;
    const auto saved = pairs_.bind(a.buffer.get(), b.buffer.get());
    const bool result = same(a.body, b.body);
    pairs_.unbind(saved);
    return result;
  }

  template <typename T>
  bool under(const Var& x, const Var& y, const T& a, const T& b) {
    if (x.dtype() != y.dtype()) return false;
    const auto saved = pairs_.bind(x.get(), y.get());
    const bool result = same(a, b);
    pairs_.unbind(saved);
    return result;
  }

  bool same_type(const Buffer& a, const Buffer& b) {
    return a->dtype == b->dtype && a->scope == b->scope && a->alignment == b->alignment &&
           same_field(a->shape, b->shape);
  }

  template <typename Tuple, size_t... k>
  bool same_fields(const Tuple& a, const Tuple& b, std::index_sequence<k...>) {
    return (same_field(std::get<k>(a), std::get<k>(b)) && ...);
  }
  bool same_field(const Expr& a, const Expr& b) { return same(a, b); }
  bool same_field(const Stmt& a, const Stmt& b) { return same(a, b); }
  bool same_field(const Buffer& a, const Buffer& b) { return pairs_.match(a.get(), b.get()); }
  bool same_field(double a, double b) { return float_bits(a) == float_bits(b); }
  template <typename T>
  bool same_field(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (size_t k = 0; k < a.size(); ++k)
      if (!same(a[k], b[k])) return false;
    return true;
  }
  template <typename T>
  bool same_field(const T& a, const T& b) {
    return a == b;
  }

  Pairs pairs_;
};

/// Own mixing: std::hash may differ between libraries, and hashes go into records.
class Hasher {
 public:
  uint64_t value() const { return state_; }

  void add(const Expr& e) { add_node<ExprNode>(e); }
  void add(const Stmt& s) { add_node<StmtNode>(s); }
  void add(const LoopFunction& f) {
    number(f.scalars.size());
    for (const Var& var : f.scalars) {
      type(var.dtype());
      bind(var.get());
    }
    number(f.buffers.size());
    for (const Buffer& buffer : f.buffers) {
      buffer_type(buffer);
      bind(buffer.get());
    }
    for (const Buffer& buffer : f.outputs) field(buffer);
    field(f.attrs);
    add(f.body);
  }

 private:
  void number(uint64_t x) {
    // The finaliser of splitmix64 over state and value.
    uint64_t z = state_ * 0x9e3779b97f4a7c15u + x + 0x2545f4914f6cdd1du;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    state_ = z ^ (z >> 31);
  }
  void text(std::string_view text) {
    number(text.size());
    for (const char c : text) number(static_cast<unsigned char>(c));
  }
  void type(DType t) { number(static_cast<uint64_t>(t.code) << 32 | static_cast<uint64_t>(t.bits) << 16 | t.lanes); }

  template <typename N>
  void add_node(const Ref<N>& ref) {
    if (!ref) return number(0);
    number(static_cast<uint64_t>(ref->kind) + 1);
    dispatch(*ref, [&](const auto& node) { this->node(node); });
  }

  template <typename T>
  void node(const T& node) {
    if constexpr (std::is_base_of_v<ExprNode, T>) type(node.dtype);
    std::apply([&](const auto&... f) { (field(f), ...); }, node.fields());
  }
  void node(const VarNode& var) {
    type(var.dtype);
    object(&var, var.name);
  }
  void node(const Let& let) {
    add(let.value);
    under(let.var, let.body);
  }
  void node(const LetStmt& let) {
    add(let.value);
    under(let.var, let.body);
  }
  void node(const For& loop) {
    number(static_cast<uint64_t>(loop.for_kind));
    field(loop.attrs);
    add(loop.min);
    add(loop.extent);
    under(loop.var, loop.body);
  }
  void node(const Allocate& allocate) {
    buffer_type(allocate.buffer);
    const int64_t old = bind(allocate.buffer.get());
    add(allocate.body);
    unbind(allocate.buffer.get(), old);
  }
  template <typename T>
  void under(const Var& var, const T& body) {
    type(var.dtype());
    const int64_t old = bind(var.get());
    add(body);
    unbind(var.get(), old);
  }

  // Bound objects count by their place among the open bindings, free ones by name (equal structures have the same free
  // objects).
  int64_t bind(const Shared* object) {
    const auto [it, fresh] = levels_.try_emplace(object, -1);
    return std::exchange(it->second, next_level_++);
  }
  void unbind(const Shared* object, int64_t old) {
    --next_level_;
    if (old < 0) levels_.erase(object);
    else levels_[object] = old;
  }
  void object(const Shared* object, std::string_view name) {
    if (const auto it = levels_.find(object); it != levels_.end()) number(static_cast<uint64_t>(it->second) + 1);
    else text(name);
  }
  void buffer_type(const Buffer& buffer) {
    type(buffer->dtype);
    number(static_cast<uint64_t>(buffer->scope));
    number(static_cast<uint64_t>(buffer->alignment));
    field(buffer->shape);
  }

  void field(const Expr& e) { add(e); }
  void field(const Stmt& s) { add(s); }
  void field(const Buffer& buffer) { object(buffer.get(), buffer->name); }
  void field(double value) { number(float_bits(value)); }
  void field(int64_t value) { number(static_cast<uint64_t>(value)); }
  void field(int value) { number(static_cast<uint64_t>(value)); }
  void field(const std::string& value) { text(value); }
  void field(BinaryOp op) { number(static_cast<uint64_t>(op)); }
  void field(Intrinsic id) { number(static_cast<uint64_t>(id)); }
  void field(const Attrs& attrs) {
    number(attrs.size());
    for (const auto& [key, value] : attrs) {
      text(key);
      number(static_cast<uint64_t>(value));
    }
  }
  template <typename T>
  void field(const std::vector<T>& list) {
    number(list.size());
    for (const T& item : list) add(item);
  }

  uint64_t state_ = 0;
  int64_t next_level_ = 0;
  std::unordered_map<const Shared*, int64_t> levels_;
};

template <typename T>
uint64_t hash_of(const T& value) {
  Hasher hasher;
  hasher.add(value);
  return hasher.value();
}

}  // namespace

bool equal(const Expr& a, const Expr& b) { return Comparer().same(a, b); }
bool equal(const Stmt& a, const Stmt& b) { return Comparer().same(a, b); }
bool equal(const LoopFunction& a, const LoopFunction& b) { return Comparer().same(a, b); }

uint64_t structural_hash(const Expr& e) { return hash_of(e); }
uint64_t structural_hash(const Stmt& s) { return hash_of(s); }
uint64_t structural_hash(const LoopFunction& f) { return hash_of(f); }

}  // namespace tensmith
