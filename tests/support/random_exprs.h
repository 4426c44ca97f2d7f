/// Well-formed random expressions over given variables and buffers.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tensor/stmt.h"

namespace tensmith {

/// What random programs may contain.
struct RandomLoopOptions {
  /// Element types; those of buffers are drawn from them too.
  std::vector<DType> types = {kBool,   kInt8,   kInt16,   kInt32,   kInt64,   kUInt8,   kUInt16,
                              kUInt32, kUInt64, kFloat32, kFloat64, kFloat16, kBFloat16};
  int nests = 3;             ///< loop nests one after the other
  int depth = 3;             ///< statements inside each other, below a nest's outermost loop
  int expression_depth = 4;  ///< operations inside each other
  bool vectors = true;       ///< values of several lanes, gathers, predicates
  /// Loops that lowering removes before code generation sees the program.
  bool special_loops = true;
  /// Leaves out what correct implementations may compute differently: functions with a rounding error, the order of
  /// float sums over lanes, the sign of zeros from min and max, the bits of a NaN.
  bool only_exact = false;
};

/// Makes expressions of a wanted type.
class RandomExprs {
 public:
  RandomExprs(std::mt19937_64& random, const RandomLoopOptions& options) : random_(random), options_(options) {}

  /// A variable that may be used. Integers that index arithmetic may use are known to lie in [low, high].
  struct Variable {
    Var var;
    bool has_range = false;
    int64_t low = 0, high = 0;
  };
  /// A buffer of constant extents that may be read. A row variable (which runs over the first extent) pins the first
  /// index.
  struct Readable {
    Buffer buffer;
    std::vector<int64_t> extents;
    Expr row;
  };
  std::vector<Variable> variables;
  std::vector<Readable> readable;

  /// An expression of the type (with its lanes).
  Expr make(DType type, int depth);
  Expr make(DType type) { return make(type, options_.expression_depth); }
  /// Indices inside a buffer. With lanes > 1 the last index is a vector; `distinct`: with no lane twice.
  std::vector<Expr> indices(const Readable& from, int lanes, bool distinct);
  /// An i64 scalar in [0, extent).
  Expr index(int64_t extent);

  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  DType type() { return options_.types[static_cast<size_t>(below(static_cast<int>(options_.types.size())))]; }

 private:
  Expr leaf(DType type);
  Expr constant(DType type);
  Expr vector(DType type, int depth);
  Expr binary(BinaryOp op, DType type, int depth);
  Expr boolean(DType type, int depth);
  Expr integer(DType type, int depth);
  Expr floating(DType type, int depth);
  Expr common(DType type, int depth);
  Expr read(const Readable& from, int lanes, int depth);

  std::mt19937_64& random_;
  const RandomLoopOptions& options_;
};

}  // namespace tensmith
