// Random integer expressions over small ranges, every point enumerated: the simplifier keeps the meaning, is
// idempotent, bounds contain every value that is attained and no falsehood is proven. TS_FUZZ_COUNT sets the number of
// expressions a test, TS_FUZZ_SEED the first seed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tensor/simplify.h"
#include "tests/unit/tensor/eval.h"

namespace tensmith::testing {
namespace {

int64_t from_env(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

struct Domain {
  Var var;
  int64_t lo, hi;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {
    for (const char* name : {"x", "y", "z"}) {
      const int64_t lo = pick(3) == 0 ? pick(9) - 6 : 0;
      domains.push_back({Var(name), lo, lo + pick(9)});
    }
    narrow_ = {{"n8", DType(kInt8)}, {"n32", DType(kInt32)}, {"u8", DType(kUInt8)}, {"n64", DType(kInt64)}};
    for (const auto& [name, type] : narrow_) buffers_.push_back(make_buffer(name, type, {Expr(100), Expr(100)}));
    flag = Var("flag", kBool);
  }

  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Expr constant(DType type) {
    static const int64_t kNumbers[] = {0,  1,  2,  3,  4,  5,  6,  7,   8,    12,  16, 31,
                                       32, -1, -2, -3, -4, -7, -8, 127, -128, 255, 100};
    return make_const_int(type, kNumbers[pick(type == kInt64 ? 19 : 23)]);
  }

  /// An expression of the scalar integer type.
  Expr integer(DType type, int depth) {
    if (depth <= 0 || pick(8) == 0) {
      if (pick(3) == 0) return constant(type);
      if (with_loads && pick(6) == 0) return load_of(type, 0);
      const Var& var =
          lets_.empty() || pick(3) ? domains[pick(3)].var : lets_[pick(static_cast<int64_t>(lets_.size()))];
      return type == kInt64 ? Expr(var) : Cast::make(type, var);
    }
    const Expr a = integer(type, depth - 1);
    switch (pick(affine_only ? 4 : 22)) {
      case 0:
      case 1: return Binary::make(BinaryOp::kAdd, a, integer(type, depth - 1));
      case 2: return Binary::make(BinaryOp::kSub, a, integer(type, depth - 1));
      case 3:
      case 4: return Binary::make(BinaryOp::kMul, a, constant(type));
      case 5:
      case 6: return Binary::make(BinaryOp::kFloorDiv, a, divisor(type, depth));
      case 7:
      case 8: return Binary::make(BinaryOp::kFloorMod, a, divisor(type, depth));
      case 9: return Binary::make(BinaryOp::kTruncDiv, a, divisor(type, depth));
      case 10: return Binary::make(BinaryOp::kTruncMod, a, divisor(type, depth));
      case 11:
      case 12: return Binary::make(BinaryOp::kMin, a, integer(type, depth - 1));
      case 13:
      case 14: return Binary::make(BinaryOp::kMax, a, integer(type, depth - 1));
      case 15:
      case 16: return Select::make(boolean(depth - 1), a, integer(type, depth - 1));
      case 17: {
        const DType other = narrow_[pick(4)].second;
        return Cast::make(type, integer(other, depth - 1));
      }
      case 18: {
        if (type != kInt64) return Cast::make(type, boolean(depth - 1));
        Var var("t" + std::to_string(lets_.size()));
        lets_.push_back(var);
        const Expr body = integer(type, depth - 1);
        lets_.pop_back();
        return Let::make(var, a, body);
      }
      case 19: return Binary::make(BinaryOp::kMul, a, integer(type, depth - 2));
      case 20:
        if (with_loads) return load_of(type, depth - 1);
        return Binary::make(BinaryOp::kFloorDiv, a, divisor(type, depth));
      default: {
        static const BinaryOp kBits[] = {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kXor, BinaryOp::kShl, BinaryOp::kShr};
        const BinaryOp op = kBits[pick(5)];
        const bool shift = op == BinaryOp::kShl || op == BinaryOp::kShr;
        return Binary::make(op, a, shift ? make_const_int(type, pick(5)) : integer(type, depth - 1));
      }
    }
  }

  Expr boolean(int depth) {
    if (depth <= 0 && pick(2)) return flag;
    switch (pick(10)) {
      case 0: return Binary::make(BinaryOp::kAnd, boolean(depth - 1), boolean(depth - 1));
      case 1: return Binary::make(BinaryOp::kOr, boolean(depth - 1), boolean(depth - 1));
      case 2: return Not::make(boolean(depth - 1));
      case 3: return depth > 0 ? Select::make(boolean(depth - 1), boolean(depth - 1), boolean(depth - 1)) : Expr(flag);
      default: {
        static const BinaryOp kCompare[] = {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT,
                                            BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE};
        const DType type = pick(5) == 0 && !affine_only ? narrow_[pick(4)].second : kInt64;
        return Binary::make(kCompare[pick(6)], integer(type, depth - 1), integer(type, depth - 1));
      }
    }
  }

  /// Index arithmetic of tiles.
  Expr tile(int depth) {
    static const int64_t kStrides[] = {1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
    Expr sum = Expr(domains[pick(3)].var) * kStrides[pick(12)];
    for (int64_t more = pick(3); more > 0; --more) {
      const Expr part = depth > 0 && pick(3) == 0 ? tile(depth - 1) : Expr(domains[pick(3)].var);
      sum = pick(5) ? sum + part * kStrides[pick(12)] : sum - part * kStrides[pick(12)];
    }
    if (pick(2)) sum = sum + (pick(20) - 5);
    if (depth <= 0) return sum;
    const int64_t c = kStrides[2 + pick(10)], n = kStrides[2 + pick(4)];
    switch (pick(8)) {
      case 0: return floor_div(sum, c);
      case 1: return floor_mod(sum, c);
      case 2: return floor_div(sum, c) * c + floor_mod(sum, c);
      case 3: return floor_mod(floor_div(sum, c), n) * c + floor_mod(sum, c);
      case 4: return min(sum, tile(depth - 1)) + Expr(domains[pick(3)].var);
      case 5: return max(sum, Expr(pick(9))) - tile(depth - 1);
      case 6: return floor_div(floor_div(sum, c), n) - floor_div(tile(depth - 1), c);
      default: return sum;
    }
  }

  /// A vector of index arithmetic.
  Expr vector(int depth, int lanes) {
    if (depth <= 0 || pick(5) == 0) {
      if (pick(3) == 0) return Broadcast::make(integer(kInt64, 1), lanes);
      return Ramp::make(integer(kInt64, 2), pick(4) ? constant(kInt64) : integer(kInt64, 1), lanes);
    }
    const Expr a = vector(depth - 1, lanes);
    switch (pick(9)) {
      case 0: return Binary::make(BinaryOp::kAdd, a, vector(depth - 1, lanes));
      case 1: return Binary::make(BinaryOp::kSub, a, vector(depth - 1, lanes));
      case 2: return Binary::make(BinaryOp::kMul, a, Broadcast::make(constant(kInt64), lanes));
      case 3: return Binary::make(BinaryOp::kFloorDiv, a, Broadcast::make(divisor(kInt64, 1), lanes));
      case 4: return Binary::make(BinaryOp::kFloorMod, a, Broadcast::make(divisor(kInt64, 1), lanes));
      case 5: return Binary::make(BinaryOp::kMin, a, vector(depth - 1, lanes));
      case 6: return Binary::make(BinaryOp::kMax, a, vector(depth - 1, lanes));
      default: return Select::make(mask(depth - 1, lanes), a, vector(depth - 1, lanes));
    }
  }

  Expr mask(int depth, int lanes) {
    static const BinaryOp kCompare[] = {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT,
                                        BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE};
    if (depth > 0 && pick(4) == 0)
      return Binary::make(pick(2) ? BinaryOp::kAnd : BinaryOp::kOr, mask(depth - 1, lanes), mask(depth - 1, lanes));
    return Binary::make(kCompare[pick(6)], vector(depth - 1, lanes), vector(depth - 1, lanes));
  }

  std::vector<Domain> domains;
  Var flag;
  bool with_loads = false;
  bool affine_only = false;

 private:
  Expr divisor(DType type, int depth) {
    static const int64_t kNumbers[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 32, -1, -2, -3, -4, 0};
    if (pick(10) == 0) return integer(type, depth - 2);
    return make_const_int(type, kNumbers[pick(pick(4) ? 10 : 15)]);
  }
  Expr load_of(DType type, int depth) {
    for (size_t i = 0; i < narrow_.size(); ++i)
      if (narrow_[i].second == type) return Load::make(buffers_[i], {integer(kInt64, depth - 1), Expr(0)});
    return constant(type);
  }

  std::mt19937_64 random_;
  std::vector<std::pair<std::string, DType>> narrow_;
  std::vector<Buffer> buffers_;
  std::vector<Var> lets_;
};

/// Calls `fn(env)` for every point of the domains.
template <typename Fn>
void enumerate(const Generator& g, Fn fn) {
  Env env;
  const auto node = [](const Var& v) { return static_cast<const VarNode*>(v.get()); };
  for (int64_t x = g.domains[0].lo; x <= g.domains[0].hi; ++x)
    for (int64_t y = g.domains[1].lo; y <= g.domains[1].hi; ++y)
      for (int64_t z = g.domains[2].lo; z <= g.domains[2].hi; ++z) {
        env[node(g.domains[0].var)] = x;
        env[node(g.domains[1].var)] = y;
        env[node(g.domains[2].var)] = z;
        env[node(g.flag)] = (x + y + z) & 1;
        if (!fn(env)) return;
      }
}

Facts ranges_of(const Generator& g) {
  Facts facts;
  for (const Domain& d : g.domains) facts.set_range(d.var, Expr(d.lo), Expr(d.hi - d.lo + 1));
  return facts;
}

std::string describe(const Generator& g, uint64_t seed) {
  std::string text = "seed " + std::to_string(seed);
  for (const Domain& d : g.domains)
    text += ", " + d.var.name() + " in [" + std::to_string(d.lo) + ", " + std::to_string(d.hi) + "]";
  return text;
}

/// Meaning and idempotence.
void check_simplified(const Generator& g, uint64_t seed, const Expr& e, const Facts& facts,
                      const Expr& condition = {}) {
  const Expr s = simplify(e, facts);
  SCOPED_TRACE(describe(g, seed) + "\nbefore " + to_string(e) + "\nafter  " + to_string(s) +
               (condition ? "\nwhere  " + to_string(condition) : ""));
  ASSERT_EQ(s.dtype(), e.dtype());
  enumerate(g, [&](Env& env) {
    if (condition.get() && evaluate_scalar(condition, env) == 0) return true;
    const Lanes want = evaluate(e, env), got = evaluate(s, env);
    std::string point;
    for (const Domain& d : g.domains) point += " " + std::to_string(env[static_cast<const VarNode*>(d.var.get())]);
    EXPECT_EQ(want, got) << "at" << point;
    return want == got;
  });
  const Expr again = simplify(s, facts);
  EXPECT_TRUE(equal(again, s)) << "again  " << to_string(again);
}

class SimplifyFuzz : public ::testing::Test {
 protected:
  template <typename Fn>
  void run(int64_t count, Fn fn) {
    const int64_t n = from_env("TS_FUZZ_COUNT", count);
    const uint64_t first = static_cast<uint64_t>(from_env("TS_FUZZ_SEED", 1));
    for (uint64_t seed = first; seed < first + static_cast<uint64_t>(n) && !HasFailure(); ++seed) fn(seed);
  }
};

TEST_F(SimplifyFuzz, KeepsTheMeaningOfIndexArithmetic) {
  run(400, [](uint64_t seed) {
    Generator g(seed);
    const Expr e = g.integer(kInt64, 2 + static_cast<int>(g.pick(4)));
    check_simplified(g, seed, e, ranges_of(g));
  });
}

TEST_F(SimplifyFuzz, KeepsTheMeaningWithoutFacts) {
  run(200, [](uint64_t seed) {
    Generator g(seed);
    check_simplified(g, seed, g.integer(kInt64, 2 + static_cast<int>(g.pick(4))), {});
  });
}

TEST_F(SimplifyFuzz, KeepsTheMeaningOfWrappingTypesAndData) {
  run(400, [](uint64_t seed) {
    Generator g(seed);
    g.with_loads = true;
    static const DType kTypes[] = {kInt8, kInt32, kUInt8, kInt64, kInt64};
    check_simplified(g, seed, g.integer(kTypes[g.pick(5)], 2 + static_cast<int>(g.pick(3))), ranges_of(g));
  });
}

TEST_F(SimplifyFuzz, KeepsTheMeaningOfVectors) {
  run(300, [](uint64_t seed) {
    Generator g(seed);
    const int lanes = g.pick(2) ? 4 : 8;
    const Expr e = g.pick(3) ? g.vector(3, lanes) : g.mask(3, lanes);
    check_simplified(g, seed, e, ranges_of(g));
  });
}

TEST_F(SimplifyFuzz, KeepsTheMeaningUnderAssumptions) {
  run(300, [](uint64_t seed) {
    Generator g(seed);
    Facts facts = ranges_of(g);
    const Expr condition = g.boolean(2);
    facts.assume(condition);
    check_simplified(g, seed, g.pick(2) ? g.integer(kInt64, 3) : g.boolean(3), facts, condition);
  });
}

TEST_F(SimplifyFuzz, KeepsTheMeaningOfTiles) {
  // Sums of strides, divided and put together again, with clips: what splits, fused loops and layouts make.
  run(600, [](uint64_t seed) {
    Generator g(seed);
    check_simplified(g, seed, g.pick(4) ? g.tile(3) : g.tile(2) < g.tile(2), ranges_of(g));
  });
}

TEST_F(SimplifyFuzz, KeepsTheMeaningInSymbolicRanges) {
  // z runs over a range whose ends depend on x and y.
  run(400, [](uint64_t seed) {
    Generator g(seed);
    g.affine_only = g.pick(3) == 0;
    const Expr x = g.domains[0].var, y = g.domains[1].var, z = g.domains[2].var;
    const Expr lo = g.pick(2) ? Expr(g.pick(3)) : g.pick(2) ? max(x - g.pick(4), 0) : x * g.pick(3);
    const Expr extent = g.pick(3) == 0 ? floor_div(y + g.pick(3), 2 + g.pick(3))
                        : g.pick(2)    ? min(y + 1, Expr(3) - x)
                                       : y - g.pick(2);
    Facts facts;
    for (int i = 0; i < 2; ++i)
      facts.set_range(g.domains[i].var, Expr(g.domains[i].lo), Expr(g.domains[i].hi - g.domains[i].lo + 1));
    facts.set_range(g.domains[2].var, lo, extent);
    const Expr inside = lo <= z && z < lo + extent;
    check_simplified(g, seed,
                     g.pick(2)   ? g.integer(kInt64, 3)
                     : g.pick(2) ? g.boolean(3)
                                 : g.tile(2) < g.tile(2),
                     facts, inside);
  });
}

TEST_F(SimplifyFuzz, ProvesNoFalsehood) {
  run(500, [](uint64_t seed) {
    Generator g(seed);
    g.with_loads = g.pick(3) == 0;
    g.affine_only = g.pick(2) == 0;
    Facts facts = ranges_of(g);
    Expr assumed;
    if (g.pick(2)) {
      assumed = g.boolean(2);
      facts.assume(assumed);
    }
    const Expr e = g.boolean(3);
    if (!can_prove(e, facts)) return;
    SCOPED_TRACE(describe(g, seed) + "\nproven " + to_string(e));
    enumerate(g, [&](Env& env) {
      if (assumed.get() && evaluate_scalar(assumed, env) == 0) return true;
      const bool holds = evaluate_scalar(e, env);
      EXPECT_TRUE(holds) << (assumed ? "where " + to_string(assumed) : "");
      return holds;
    });
  });
}

TEST_F(SimplifyFuzz, ConstantBoundsContainEveryValue) {
  run(400, [](uint64_t seed) {
    Generator g(seed);
    g.with_loads = g.pick(3) == 0;
    static const DType kTypes[] = {kInt8, kInt32, kUInt8, kInt64, kInt64};
    const Expr e = g.integer(kTypes[g.pick(5)], 2 + static_cast<int>(g.pick(3)));
    const VarFacts bounds = constant_bounds(e, ranges_of(g));
    SCOPED_TRACE(describe(g, seed) + "\n" + to_string(e));
    enumerate(g, [&](Env& env) {
      const int64_t value = evaluate_scalar(e, env);
      const int64_t rest = ((value % bounds.modulus) + bounds.modulus) % bounds.modulus;
      const bool fits = (!bounds.lo || *bounds.lo <= value) && (!bounds.hi || value <= *bounds.hi) &&
                        (bounds.modulus == 1 || rest == bounds.remainder);
      EXPECT_TRUE(fits) << value << " outside " << bounds.lo.value_or(INT64_MIN) << ".."
                        << bounds.hi.value_or(INT64_MAX) << " mod " << bounds.modulus;
      return fits;
    });
  });
}

TEST_F(SimplifyFuzz, SymbolicBoundsContainEveryValueAndAreExactForAffine) {
  run(400, [](uint64_t seed) {
    Generator g(seed);
    g.affine_only = g.pick(3) == 0;
    const Expr e = g.integer(kInt64, 2 + static_cast<int>(g.pick(3)));
    // z runs over an interval that depends on x; x and y stay.
    const Domain &x = g.domains[0], &z = g.domains[2];
    const int64_t width = g.pick(5), scale = g.pick(4);
    const Expr lo = Expr(x.var) * scale + g.pick(5);
    Facts facts;
    facts.set_range(x.var, Expr(x.lo), Expr(x.hi - x.lo + 1));
    facts.set_range(g.domains[1].var, Expr(g.domains[1].lo), Expr(g.domains[1].hi - g.domains[1].lo + 1));
    const auto* zv = static_cast<const VarNode*>(z.var.get());
    const Interval bounds = bounds_of(e, {{zv, {lo, lo + width}}}, facts);
    SCOPED_TRACE(describe(g, seed) + "\n" + to_string(e) + "\nz from " + to_string(lo) + " wide " +
                 std::to_string(width) + "\nlo " + (bounds.lo ? to_string(bounds.lo) : "?") + "\nhi " +
                 (bounds.hi ? to_string(bounds.hi) : "?"));
    enumerate(g, [&](Env& env) {
      if (env[zv] != z.lo) return true;  // z takes its own interval below
      const int64_t first = evaluate_scalar(lo, env);
      int64_t least = INT64_MAX, greatest = INT64_MIN;
      for (int64_t value = first; value <= first + width; ++value) {
        env[zv] = value;
        const int64_t result = evaluate_scalar(e, env);
        least = std::min(least, result);
        greatest = std::max(greatest, result);
      }
      env.erase(zv);
      const int64_t below = bounds.lo ? evaluate_scalar(bounds.lo, env) : INT64_MIN;
      const int64_t above = bounds.hi ? evaluate_scalar(bounds.hi, env) : INT64_MAX;
      EXPECT_LE(below, least);
      EXPECT_GE(above, greatest);
      if (g.affine_only) {
        EXPECT_EQ(below, least);
        EXPECT_EQ(above, greatest);
      }
      env[zv] = z.lo;
      return !::testing::Test::HasFailure();
    });
  });
}

}  // namespace
}  // namespace tensmith::testing
