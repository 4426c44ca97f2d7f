#include "tests/support/random_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensmith {

namespace {

class Generator {
 public:
  Generator(uint64_t seed, const RandomLoopOptions& options)
      : random_(seed), options_(options), exprs_(random_, options_) {}

  RandomLoops run() {
    add_scalars();
    const int inputs = 2 + exprs_.below(3), outputs = 1 + exprs_.below(3);
    for (int k = 0; k < inputs; ++k) inputs_.push_back(add_buffer("in" + std::to_string(k)));
    for (int k = 0; k < outputs; ++k) {
      outputs_.push_back(add_buffer("out" + std::to_string(k)));
      result_.function.outputs.push_back(outputs_.back().buffer);
    }
    std::vector<Stmt> stmts;
    for (int k = 0; k < options_.nests; ++k) stmts.push_back(nest());
    result_.function.name = "random";
    result_.function.body = Block::make(std::move(stmts));
    return std::move(result_);
  }

 private:
  using Readable = RandomExprs::Readable;

  void add_scalars() {
    const int64_t n = exprs_.below(6);
    result_.function.scalars.emplace_back("n");
    result_.scalars.push_back(n);
    // Its range is not known to the generator of indices: a loop over n gives a variable without a range.
    exprs_.variables.push_back({result_.function.scalars[0]});
    result_.function.scalars.emplace_back("x", kInt32);
    result_.scalars.push_back(exprs_.below(200) - 100);
    exprs_.variables.push_back({result_.function.scalars[1]});
  }

  Readable add_buffer(const std::string& name) {
    std::vector<int64_t> extents;
    std::vector<Expr> shape;
    int64_t count = 1;
    for (int rank = 1 + exprs_.below(3), d = 0; d < rank; ++d) {
      // The last extent has room for vectors.
      extents.push_back(d + 1 == rank && d > 0 ? 8 + exprs_.below(12) : 2 + exprs_.below(4));
      shape.emplace_back(extents.back());
      count *= extents.back();
    }
    const DType type = exprs_.type();
    Readable made{make_buffer(name, type, shape), extents, {}};
    InterpValue value = make_interp_value(type, count);
    for (double& f : value.f) f = number(type);
    for (int64_t& i : value.i)
      i = make_const_int(type, static_cast<int64_t>(random_()) >> (random_() % 64)).as<IntImm>()->value;
    result_.function.buffers.push_back(made.buffer);
    result_.buffers.push_back(std::move(value));
    return made;
  }

  double number(DType type) {
    if (exprs_.chance(3))
      return exprs_.chance(50) ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
    const double value = std::ldexp(static_cast<double>(exprs_.below(4001) - 2000), exprs_.below(12) - 11);
    return FloatImm::make(type, value).as<FloatImm>()->value;
  }

  /// A nest over the rows of one or more outputs: everything written or read of these stays in the row of its
  /// iteration.
  Stmt nest() {
    const Readable& chosen = outputs_[static_cast<size_t>(exprs_.below(static_cast<int>(outputs_.size())))];
    const int64_t rows = chosen.extents[0];
    const Var row("i");
    exprs_.readable = inputs_;
    writable_.clear();
    for (Readable output : outputs_) {
      if (output.extents[0] == rows) {
        output.row = row;
        writable_.push_back(output);
      }
      exprs_.readable.push_back(output);
    }
    exprs_.variables.push_back({row, true, 0, rows - 1});
    Stmt body = block(options_.depth);
    exprs_.variables.pop_back();
    const ForKind kind = exprs_.chance(40) ? ForKind::kParallel : ForKind::kSerial;
    return For::make(row, 0, rows, kind, std::move(body));
  }

  Stmt block(int depth) {
    std::vector<Stmt> stmts;
    for (int count = 1 + exprs_.below(3); count-- > 0;) stmts.push_back(stmt(depth));
    return Block::make(std::move(stmts));
  }

  Stmt stmt(int depth) {
    if (depth <= 0) return store();
    switch (exprs_.below(12)) {
      case 0:
      case 1:
      case 2: return loop(depth);
      case 3: {
        // One draw after the other: the order of arguments is up to the compiler.
        const Expr cond = exprs_.make(kBool, 2);
        const Stmt then = block(depth - 1), otherwise = exprs_.chance(40) ? block(depth - 1) : Stmt();
        return If::make(cond, then, otherwise);
      }
      case 4:
      case 5: return let(depth);
      case 6: return local(depth);
      case 7: return counting(depth);
      case 8:
        if (options_.special_loops) return vectorized();
        return store();
      case 9: return exprs_.chance(30) ? check() : store();
      default: return store();
    }
  }

  Stmt loop(int depth) {
    const Var var("j");
    if (exprs_.chance(15)) {
      exprs_.variables.push_back({var});
      Stmt body = block(depth - 1);
      exprs_.variables.pop_back();
      return For::make(var, 0, result_.function.scalars[0], ForKind::kSerial, std::move(body));
    }
    const int64_t low = exprs_.chance(25) ? exprs_.below(3) : 0, extent = 1 + exprs_.below(5);
    exprs_.variables.push_back({var, true, low, low + extent - 1});
    Stmt body = block(depth - 1);
    exprs_.variables.pop_back();
    const ForKind kind = options_.special_loops && exprs_.chance(20) ? ForKind::kUnrolled : ForKind::kSerial;
    const Attrs attrs = exprs_.chance(10) ? Attrs{{"hint", exprs_.below(9)}} : Attrs{};
    return For::make(var, low, extent, kind, std::move(body), attrs);
  }

  Stmt let(int depth) {
    if (exprs_.chance(40)) {
      const int64_t extent = 1 + exprs_.below(8);
      const Var var("k");
      const Expr value = exprs_.index(extent);
      exprs_.variables.push_back({var, true, 0, extent - 1});
      Stmt body = block(depth - 1);
      exprs_.variables.pop_back();
      return LetStmt::make(var, value, std::move(body));
    }
    const int lanes = options_.vectors && exprs_.chance(30) ? 2 + exprs_.below(7) : 1;
    const Var var("v", exprs_.type().with_lanes(lanes));
    const Expr value = exprs_.make(var.dtype());
    exprs_.variables.push_back({var});
    Stmt body = block(depth - 1);
    exprs_.variables.pop_back();
    return LetStmt::make(var, value, std::move(body));
  }

  /// A buffer of the thread, filled before anything reads it.
  Stmt local(int depth) {
    const int64_t extent = 4 + exprs_.below(10);
    const DType type = exprs_.type();
    const Buffer buffer = make_buffer("t", type, {extent}, Scope::kStack, exprs_.chance(30) ? 16 : 64);
    const Var var("f");
    exprs_.variables.push_back({var, true, 0, extent - 1});
    const Stmt fill =
        For::make(var, 0, extent, ForKind::kSerial, Store::make(buffer, {var}, exprs_.make(buffer->dtype, 2)));
    exprs_.variables.pop_back();
    exprs_.readable.push_back({buffer, {extent}, {}});
    writable_.push_back(exprs_.readable.back());
    Stmt body = block(depth - 1);
    exprs_.readable.pop_back();
    writable_.pop_back();
    return Allocate::make(buffer, Block::make({fill, body}));
  }

  Stmt counting(int depth) {
    const Buffer count = make_buffer("count", kInt64, {}, Scope::kStack);
    const Stmt turn = Block::make({block(depth - 1), Store::make(count, {}, load(count, {}) + 1)});
    const int64_t turns = exprs_.below(4);
    return Allocate::make(count,
                          Block::make({Store::make(count, {}, Expr(0)), While::make(load(count, {}) < turns, turn)}));
  }

  /// Every lane writes an element of its own and reads only inputs.
  Stmt vectorized() {
    const Readable& to = writable_[static_cast<size_t>(exprs_.below(static_cast<int>(writable_.size())))];
    const int64_t room = to.extents.back();
    if (room < 4 || (to.extents.size() == 1 && to.row.get())) return store();
    const Var var("l");
    const int64_t extent = room >= 8 && exprs_.chance(50) ? 8 : 4;
    std::vector<Readable> all = inputs_;
    std::swap(all, exprs_.readable);
    std::vector<Expr> place = exprs_.indices(to, 1, false);
    place.back() = Expr(var) + static_cast<int64_t>(exprs_.below(static_cast<int>(room - extent + 1)));
    exprs_.variables.push_back({var, true, 0, extent - 1});
    const Expr value = exprs_.make(to.buffer->dtype);
    Stmt body = Store::make(to.buffer, std::move(place), value);
    exprs_.variables.pop_back();
    std::swap(all, exprs_.readable);
    return For::make(var, 0, extent, ForKind::kVectorized, std::move(body));
  }

  Stmt check() {
    const Expr n = result_.function.scalars[0];
    if (exprs_.chance(50)) return Assert::make(n >= 0, 1 + exprs_.below(100), "n counts");
    return Evaluate::make(
        Call::make(kInt32, Intrinsic::kPrefetch, {load(inputs_[0].buffer, exprs_.indices(inputs_[0], 1, false)), 3}));
  }

  Stmt store() {
    const Readable& to = writable_[static_cast<size_t>(exprs_.below(static_cast<int>(writable_.size())))];
    const bool row_only = to.extents.size() == 1 && to.row.get();
    int lanes = options_.vectors && !row_only && exprs_.chance(40) ? 2 + exprs_.below(7) : 1;
    if (to.extents.back() < lanes) lanes = 1;
    std::vector<Expr> place = exprs_.indices(to, lanes, /*distinct=*/true);
    Expr predicate;
    if (lanes > 1 && exprs_.chance(30)) predicate = exprs_.make(kBool.with_lanes(lanes), 2);
    const Expr value = exprs_.make(to.buffer->dtype.with_lanes(lanes));
    return Store::make(to.buffer, std::move(place), value, predicate);
  }

  std::mt19937_64 random_;
  RandomLoopOptions options_;
  RandomExprs exprs_;
  RandomLoops result_;
  std::vector<Readable> inputs_, outputs_, writable_;
};

}  // namespace

RandomLoops random_loops(uint64_t seed, const RandomLoopOptions& options) { return Generator(seed, options).run(); }

void expect_same(const InterpValue& actual, const InterpValue& expected, const std::string& what) {
  ASSERT_EQ(actual.f.size(), expected.f.size()) << what;
  for (size_t k = 0; k < expected.f.size(); ++k) {
    if (std::isnan(actual.f[k]) && std::isnan(expected.f[k])) continue;
    ASSERT_EQ(actual.f[k], expected.f[k]) << what << "[" << k << "]";
  }
  ASSERT_EQ(actual.i, expected.i) << what;
}

}  // namespace tensmith
