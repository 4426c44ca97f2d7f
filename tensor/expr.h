/// Expressions of the loop IR.
///
/// Semantics, stated once for interpreter, simplifier and code generators:
/// - Integers wrap modulo 2^n. Index arithmetic is 64-bit signed (`kInt64`) and may not overflow, so it may be
/// reassociated.
/// - `kFloorDiv`/`kFloorMod` round towards minus infinity and are what index arithmetic uses; `kTruncDiv`/`kTruncMod`
/// truncate
///   (ONNX integer Div, Mod fmod=1; the sign of TruncMod follows the dividend). Division of an integer by zero gives 0,
///   and so does the remainder; INT_MIN / -1 wraps. `kDiv` is floating-point division.
/// - NaN and infinity are kept. `kMin`, `kMax` propagate NaN from either side; min(-0, +0) may be either. Comparisons
/// with NaN
///   are false except kNE.
/// - Float to integer casts truncate, saturate, and map NaN to 0. Integer casts wrap. Anything to bool is `!= 0`; bool
/// to number is 0 or 1.
///   Float to a narrower float rounds to nearest even.
/// - Nothing is reassociated outside a reduction. a*b+c may be contracted to an FMA unless switched off.
/// - Children may be evaluated in any order, and not at all when the result does not need them: the branch of a Select
/// that is
///   not taken need not be in bounds. All other loads must be in bounds; reading outside a buffer is undefined and
///   refused by the verifier.
/// - Shifts: `kShr` is arithmetic for signed types, logical for unsigned; a count >= the width gives 0 (or -1 for
/// negative signed kShr).
/// - Vector operations work lane by lane; both operands have the same lanes (constructors broadcast a scalar operand).
#pragma once

#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/dtype.h"
#include "tensor/node.h"

namespace tensmith {

class ExprNode;
class BufferNode;
class StageNode;

/// A reference to an immutable expression.
class Expr : public Ref<ExprNode> {
 public:
  Expr() = default;
  Expr(const ExprNode* node) : Ref(node) {}  // NOLINT: implicit by design
  /// An index constant (kInt64).
  Expr(int64_t value);                                    // NOLINT
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}  // NOLINT

  DType dtype() const;
  NodeKind kind() const;
  /// The node as kind `T`, or null when it is of another kind: `if (auto* load = e.as<Load>())`.
  template <typename T>
  const T* as() const;
};

class ExprNode : public Node {
 public:
  ExprNode(NodeKind kind, DType dtype) : Node(kind), dtype(dtype) {}
  const DType dtype;
};

inline DType Expr::dtype() const { return (*this)->dtype; }
inline NodeKind Expr::kind() const { return (*this)->kind; }
template <typename T>
const T* Expr::as() const {
  return get() && get()->kind == T::kKind ? static_cast<const T*>(get()) : nullptr;
}

/// A buffer as an object: identity counts, the name only serves printing.
using Buffer = Ref<BufferNode>;

/// The base that ties a node class to its kind. Each class lists its children and plain fields once in `fields()`;
/// walking, rebuilding, equality, hashing and printing derive from that.
template <NodeKind kind_value>
class ExprOf : public ExprNode {
 public:
  static constexpr NodeKind kKind = kind_value;

 protected:
  explicit ExprOf(DType dtype) : ExprNode(kind_value, dtype) {}
};

/// An integer or bool constant, always scalar; unsigned 64-bit values are stored as their bit pattern.
struct IntImm : ExprOf<NodeKind::kIntImm> {
  static Expr make(DType dtype, int64_t value);
  const int64_t value;
  auto fields() const { return std::tie(value); }

 private:
  IntImm(DType dtype, int64_t value) : ExprOf(dtype), value(value) {}
};

/// A floating-point constant, always scalar, already rounded to its type.
struct FloatImm : ExprOf<NodeKind::kFloatImm> {
  static Expr make(DType dtype, double value);
  const double value;
  auto fields() const { return std::tie(value); }

 private:
  FloatImm(DType dtype, double value) : ExprOf(dtype), value(value) {}
};

/// A scalar variable: loop variables, let variables, symbolic dims, scalar parameters. Compared by identity.
struct VarNode : ExprOf<NodeKind::kVar> {
  VarNode(std::string name, DType dtype) : ExprOf(dtype), name(std::move(name)) {}
  const std::string name;
  auto fields() const { return std::tie(name); }
};
/// A reference that is known to be a variable.
class Var : public Expr {
 public:
  Var() = default;
  explicit Var(std::string name, DType dtype = kInt64) : Expr(new VarNode(std::move(name), dtype)) {}
  explicit Var(const VarNode* node) : Expr(node) {}
  const VarNode* get() const { return static_cast<const VarNode*>(Expr::get()); }
  const VarNode* operator->() const { return get(); }
  const std::string& name() const { return (*this)->name; }
};

/// Conversion of values (not of bits), see the head of this file.
struct Cast : ExprOf<NodeKind::kCast> {
  /// Returns `value` itself when the type is the same already.
  static Expr make(DType dtype, Expr value);
  const Expr value;
  auto fields() const { return std::tie(value); }

 private:
  Cast(DType dtype, Expr value) : ExprOf(dtype), value(std::move(value)) {}
};

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kFloorMod,
  kTruncDiv,
  kTruncMod,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,  // kAnd, kOr, kXor: bitwise on integers, logical on bool
  kEQ,
  kNE,
  kLT,
  kLE,
  kGT,
  kGE,
};
inline bool is_compare(BinaryOp op) { return op >= BinaryOp::kEQ; }

/// An operation on two values of one type; comparisons give bool.
struct Binary : ExprOf<NodeKind::kBinary> {
  /// Types must be equal; a scalar beside a vector is broadcast. Folds nothing.
  static Expr make(BinaryOp op, Expr a, Expr b);
  const BinaryOp op;
  const Expr a, b;
  auto fields() const { return std::tie(op, a, b); }

 private:
  Binary(DType dtype, BinaryOp op, Expr a, Expr b) : ExprOf(dtype), op(op), a(std::move(a)), b(std::move(b)) {}
};

/// Logical not of a bool, bitwise not of an integer.
struct Not : ExprOf<NodeKind::kNot> {
  static Expr make(Expr value);
  const Expr value;
  auto fields() const { return std::tie(value); }

 private:
  Not(DType dtype, Expr value) : ExprOf(dtype), value(std::move(value)) {}
};

/// `cond ? a : b`, lane by lane when the condition is a vector.
struct Select : ExprOf<NodeKind::kSelect> {
  static Expr make(Expr cond, Expr a, Expr b);
  const Expr cond, a, b;
  auto fields() const { return std::tie(cond, a, b); }

 private:
  Select(DType dtype, Expr cond, Expr a, Expr b)
      : ExprOf(dtype), cond(std::move(cond)), a(std::move(a)), b(std::move(b)) {}
};

/// A read. Before flattening there is one index per dimension, afterwards one flat element index. An index that is a
/// vector (Ramp, or any int64 vector: a gather) makes a vector load. `predicate` (bool, same lanes) may be null: all
/// lanes; lanes that are off are not read and give 0.
struct Load : ExprOf<NodeKind::kLoad> {
  static Expr make(Buffer buffer, std::vector<Expr> indices, Expr predicate = {});
  const Buffer buffer;
  const std::vector<Expr> indices;
  const Expr predicate;
  auto fields() const { return std::tie(buffer, indices, predicate); }

 private:
  Load(DType dtype, Buffer buffer, std::vector<Expr> indices, Expr predicate)
      : ExprOf(dtype), buffer(std::move(buffer)), indices(std::move(indices)), predicate(std::move(predicate)) {}
};

/// The vector base, base + stride, ..., base + (lanes - 1) * stride; base and stride are scalar integers.
struct Ramp : ExprOf<NodeKind::kRamp> {
  static Expr make(Expr base, Expr stride, int lanes);
  const Expr base, stride;
  const int lanes;
  auto fields() const { return std::tie(base, stride, lanes); }

 private:
  Ramp(DType dtype, Expr base, Expr stride, int lanes)
      : ExprOf(dtype), base(std::move(base)), stride(std::move(stride)), lanes(lanes) {}
};

/// A scalar in every lane.
struct Broadcast : ExprOf<NodeKind::kBroadcast> {
  /// Returns the value itself for lanes == 1.
  static Expr make(Expr value, int lanes);
  const Expr value;
  const int lanes;
  auto fields() const { return std::tie(value, lanes); }

 private:
  Broadcast(DType dtype, Expr value, int lanes) : ExprOf(dtype), value(std::move(value)), lanes(lanes) {}
};

/// `body` with `var` standing for `value`, which is evaluated at most once.
struct Let : ExprOf<NodeKind::kLet> {
  static Expr make(Var var, Expr value, Expr body);
  const Var var;
  const Expr value, body;
  auto fields() const { return std::tie(var, value, body); }

 private:
  Let(Var var, Expr value, Expr body)
      : ExprOf(body.dtype()), var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
};

/// The functions that expressions may call; one line each in intrinsics.def.
enum class Intrinsic : uint8_t {
#define TS_INTRINSIC(name, text, arity, purity) k##name,
#include "tensor/intrinsics.def"
#undef TS_INTRINSIC
};

/// What is known of an intrinsic.
struct IntrinsicInfo {
  const char* name;  ///< text form
  int arity;         ///< -1: any number of arguments
  bool pure;         ///< no effect, same result for same arguments
};
const IntrinsicInfo& intrinsic_info(Intrinsic id);

/// A call of an intrinsic, or (Intrinsic::kExtern) of a function `symbol` of the same program or the runtime.
struct Call : ExprOf<NodeKind::kCall> {
  static Expr make(DType dtype, Intrinsic id, std::vector<Expr> args);
  static Expr make_extern(DType dtype, std::string symbol, std::vector<Expr> args);
  const Intrinsic id;
  const std::string symbol;  // only for kExtern
  const std::vector<Expr> args;
  auto fields() const { return std::tie(id, symbol, args); }

 private:
  Call(DType dtype, Intrinsic id, std::string symbol, std::vector<Expr> args)
      : ExprOf(dtype), id(id), symbol(std::move(symbol)), args(std::move(args)) {}
};

/// Where a buffer lives.
enum class Scope : uint8_t {
  kGlobal,    ///< memory of the caller or the arena
  kStack,     ///< small memory of the thread that runs the surrounding code
  kRegister,  ///< values only: every index must be constant after unrolling and vectorising
  kConstant,  ///< read-only data of the program
  kShared,    ///< GPU shared memory
};

/// Memory with a name, an element type and a row-major shape.
class BufferNode : public Shared {
 public:
  BufferNode(std::string name, DType dtype, std::vector<Expr> shape, Scope scope, int alignment)
      : name(std::move(name)), dtype(dtype), shape(std::move(shape)), scope(scope), alignment(alignment) {}
  const std::string name;
  const DType dtype;
  const std::vector<Expr> shape;
  const Scope scope;
  const int alignment;  ///< Units: bytes
  /// The stage of a workload that defines this buffer, while that stage lives; null for all other buffers.
  mutable const StageNode* stage = nullptr;
};

/// Shapes: `shape` in elements, row-major and dense; alignment in bytes of the first element.
Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope = Scope::kGlobal,
                   int alignment = 64);
/// The product of the shape.
Expr num_elements(const Buffer& buffer);
/// A read of a buffer: `load(b, {i, j})`.
Expr load(const Buffer& buffer, std::vector<Expr> indices);

/// The constant value when `e` is an integer constant (also a broadcast one).
bool as_const_int(const Expr& e, int64_t* value);
bool is_const_int(const Expr& e, int64_t value);
bool is_const_float(const Expr& e, double value);

/// A constant of any scalar type (vectors become broadcasts); the value is converted by the cast rules.
Expr make_const(DType dtype, double value);
Expr make_const_int(DType dtype, int64_t value);
Expr make_zero(DType dtype);
Expr make_bool(bool value, int lanes = 1);
/// The lowest and highest value of a type; -inf and +inf for floats.
Expr min_value(DType dtype);
Expr max_value(DType dtype);

/// Operators make nodes and fold constants where that is exact and obvious (int op int, x+0, x*1, x*0 for integers), so
/// that index expressions stay readable; everything else is the simplifier's work. Errors: InternalError when types
/// differ; an integer literal beside a float expression is converted.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
/// Floats: division. Integers: refused (say floor_div or trunc_div).
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);
Expr operator!=(Expr a, Expr b);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);
/// Logical not of a bool. `!e` is deleted: it would read as a test for null (say `e.get() == nullptr`).
Expr logical_not(Expr a);
Expr operator!(const Expr& a) = delete;
Expr floor_div(Expr a, Expr b);
Expr floor_mod(Expr a, Expr b);
/// Ceiling of a / b for positive b.
Expr ceil_div(Expr a, Expr b);
Expr trunc_div(Expr a, Expr b);
Expr trunc_mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr select(Expr cond, Expr a, Expr b);
Expr cast(DType dtype, Expr value);
Expr let(Var var, Expr value, Expr body);
/// A call of an intrinsic whose result has the type of its first argument.
Expr call(Intrinsic id, std::vector<Expr> args);

}  // namespace tensmith
