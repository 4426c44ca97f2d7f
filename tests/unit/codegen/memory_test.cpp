// Reads and writes of every form: strides, gathers, masks, selects that guard a read, register tiles.
#include <sys/mman.h>

#include <numeric>

#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

class MemoryTest : public testing::TestWithParam<std::string> {
 protected:
  const std::string& target() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Targets, MemoryTest, testing::ValuesIn(runnable_targets()),
                         [](const auto& info) { return test_name(info.param); });

InterpValue counted(DType type, int count) {
  std::vector<double> f;
  std::vector<int64_t> n;
  for (int i = 0; i < count; ++i) f.push_back(i - 7), n.push_back(type.is_bool() ? i % 3 == 0 : i - 7);
  return type.is_float() ? values(type, f) : int_values(type, n);
}

double at(const InterpValue& v, int64_t i) { return v.dtype.is_float() ? v.f[i] : static_cast<double>(v.i[i]); }

/// x and y of `count` elements; y[...] = x[...] as the body says.
struct Copy {
  Copy(DType type, int64_t count)
      : x(make_buffer("x", type, {Expr(count)})), y(make_buffer("y", type, {Expr(count)})) {}
  LoopFunction function(Stmt body) const { return {"copy", {x, y}, {}, {y}, std::move(body), {}}; }
  Buffer x, y;
};

TEST_P(MemoryTest, StridedReads) {
  for (DType type : {kFloat32, kInt8, kFloat64, kBool, kFloat16, kInt64}) {
    for (int lanes : {4, 8, 16, 5}) {
      for (int64_t stride : {1, 2, 3, 4, 5, -1, -2, 0}) {
        Copy c(type, 100);
        const int64_t base = stride < 0 ? 90 : 3;
        InterpValue x = counted(type, 100), y = make_interp_value(type, 100), want = make_interp_value(type, 100);
        ASSERT_EQ(run_code(c.function(Store::make(c.y, {Ramp::make(Expr(1), Expr(1), lanes)},
                                                  Load::make(c.x, {Ramp::make(Expr(base), Expr(stride), lanes)}))),
                           target(), {&x, &y}),
                  0);
        for (int i = 0; i < lanes; ++i)
          (type.is_float() ? want.f[1 + i] : (want.f.resize(100), want.f[1 + i])) = at(x, base + i * stride);
        if (!type.is_float()) want = int_values(type, {want.f.begin(), want.f.end()});
        expect_equal(y, want, to_string(type.with_lanes(lanes)) + " stride " + std::to_string(stride));
      }
    }
  }
}

TEST_P(MemoryTest, StridedWrites) {
  for (DType type : {kFloat32, kInt8, kBool}) {
    for (int64_t stride : {1, 2, 7, -3, 0}) {
      Copy c(type, 100);
      const int64_t base = stride < 0 ? 90 : 3;
      InterpValue x = counted(type, 100), y = make_interp_value(type, 100);
      ASSERT_EQ(run_code(c.function(Store::make(c.y, {Ramp::make(Expr(base), Expr(stride), 8)},
                                                Load::make(c.x, {Ramp::make(Expr(9), Expr(1), 8)}))),
                         target(), {&x, &y}),
                0);
      std::vector<double> want(100);
      for (int i = 0; i < 8; ++i) want[base + i * stride] = at(x, 9 + i);
      for (int i = 0; i < 100; ++i)
        EXPECT_EQ(at(y, i), want[i]) << to_string(type) << " stride " << stride << " at " << i;
    }
  }
}

TEST_P(MemoryTest, RampPlusBroadcastIsOneRead) {
  Copy c(kFloat32, 64);
  Var i("i");
  // 8 + (ramp * 1) in several dressings; all must stay vector reads, which shows in the code.
  Expr index = Binary::make(BinaryOp::kAdd, Broadcast::make(i * 8, 8), Ramp::make(Expr(0), Expr(1), 8));
  LoopFunction f =
      c.function(For::make(i, Expr(0), Expr(8), ForKind::kSerial, Store::make(c.y, {index}, Load::make(c.x, {index}))));
  InterpValue x = counted(kFloat32, 64), y = make_interp_value(kFloat32, 64);
  ASSERT_EQ(run_code(f, target(), {&x, &y}), 0);
  expect_equal(y, x, "copy");
  CodegenOptions options;
  options.want_llvm_ir = true;
  EXPECT_EQ(compile({{f}}, Target::parse(target()).value(), options).llvm_ir.find("gather"), std::string::npos);
}

TEST_P(MemoryTest, GatherAndScatter) {
  const int64_t count = 40;
  for (DType type : {kFloat32, kUInt8, kFloat64}) {
    Buffer x = make_buffer("x", type, {Expr(count)}), index = make_buffer("index", kInt64, {Expr(count)}),
           y = make_buffer("y", type, {Expr(count)}), z = make_buffer("z", type, {Expr(count)});
    Var i("i");
    Expr lanes = Ramp::make(i * 8, Expr(1), 8);
    Expr where = Load::make(index, {lanes});
    Stmt body =
        Block::make({Store::make(y, {lanes}, Load::make(x, {where})), Store::make(z, {where}, Load::make(x, {lanes}))});
    LoopFunction f{
        "gather", {x, index, y, z}, {}, {y, z}, For::make(i, Expr(0), Expr(count / 8), ForKind::kSerial, body), {}};
    std::vector<int64_t> permutation(count);
    for (int64_t k = 0; k < count; ++k) permutation[k] = (k * 7 + 3) % count;
    InterpValue vx = counted(type, count), vi = int_values(kInt64, permutation), vy = make_interp_value(type, count),
                vz = make_interp_value(type, count);
    ASSERT_EQ(run_code(f, target(), {&vx, &vi, &vy, &vz}), 0);
    for (int64_t k = 0; k < count; ++k) {
      EXPECT_EQ(at(vy, k), at(vx, permutation[k])) << to_string(type) << " gather " << k;
      EXPECT_EQ(at(vz, permutation[k]), at(vx, k)) << to_string(type) << " scatter " << k;
    }
  }
}

TEST_P(MemoryTest, PredicatesMaskReadsAndWrites) {
  for (DType type : {kFloat32, kInt8, kFloat64, kBool}) {
    for (int64_t limit : {0, 1, 5, 8}) {
      Copy c(type, 16);
      Expr ramp = Ramp::make(Expr(0), Expr(1), 8),
           mask = Binary::make(BinaryOp::kLT, ramp, Broadcast::make(Expr(limit), 8));
      InterpValue x = counted(type, 16), y = make_interp_value(type, 16);
      Stmt body = Block::make({Store::make(c.y, {ramp}, Load::make(c.x, {ramp}, mask)),
                               Store::make(c.y, {Ramp::make(Expr(8), Expr(1), 8)}, Load::make(c.x, {ramp}), mask)});
      ASSERT_EQ(run_code(c.function(body), target(), {&x, &y}), 0);
      for (int i = 0; i < 16; ++i)
        EXPECT_EQ(at(y, i), i % 8 < limit ? at(x, i % 8) : 0) << to_string(type) << " limit " << limit << " at " << i;
    }
    // A scalar predicate, and a strided masked pair.
    Copy c(type, 16);
    Var i("i");
    Stmt body = For::make(i, Expr(0), Expr(8), ForKind::kSerial,
                          Store::make(c.y, {i}, Load::make(c.x, {i}, i < Expr(6)), i < Expr(7)));
    Expr odd = Ramp::make(Expr(8), Expr(2), 4),
         half = Binary::make(BinaryOp::kGE, Ramp::make(Expr(0), Expr(1), 4), Broadcast::make(Expr(2), 4));
    body = Block::make({body, Store::make(c.y, {odd}, Load::make(c.x, {odd}, half), half)});
    InterpValue x = counted(type, 16), y = make_interp_value(type, 16);
    ASSERT_EQ(run_code(c.function(body), target(), {&x, &y}), 0);
    for (int k = 0; k < 16; ++k)
      EXPECT_EQ(at(y, k), k < 6 || k == 12 || k == 14 ? at(x, k) : 0) << to_string(type) << " at " << k;
  }
}

TEST_P(MemoryTest, LaneLimitsOfAllComparisons) {
  Buffer y = make_buffer("y", kBool, {Expr(8)});
  for (BinaryOp op : {BinaryOp::kLT, BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE, BinaryOp::kEQ}) {
    for (int64_t limit : {-100, 2, 4, 9, 10, 1000}) {
      Var base("base");
      Expr test = Binary::make(op, Ramp::make(base, Expr(1), 8), Broadcast::make(Expr(limit), 8));
      LoopFunction f{"limit", {y}, {base}, {y}, Store::make(y, {Ramp::make(Expr(0), Expr(1), 8)}, test), {}};
      InterpValue out = make_interp_value(kBool, 8);
      ASSERT_EQ(run_code(f, target(), {&out}, {3}), 0);
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t v = 3 + i;
        const bool want = op == BinaryOp::kLT   ? v < limit
                          : op == BinaryOp::kLE ? v <= limit
                          : op == BinaryOp::kGT ? v > limit
                          : op == BinaryOp::kGE ? v >= limit
                                                : v == limit;
        EXPECT_EQ(out.i[i], want) << "op " << static_cast<int>(op) << " limit " << limit << " lane " << i;
      }
    }
  }
}

/// Memory whose end, or whose start, borders on a page that must not be touched.
class GuardedPage {
 public:
  GuardedPage()
      : base_(static_cast<uint8_t*>(mmap(nullptr, 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(base_ + kPage, kPage, PROT_READ | PROT_WRITE);
  }
  ~GuardedPage() { munmap(base_, 3 * kPage); }
  uint8_t* begin() { return base_ + kPage; }
  uint8_t* end() { return base_ + 2 * kPage; }

 private:
  static constexpr size_t kPage = 4096;
  uint8_t* base_;
};

TEST_P(MemoryTest, SelectGuardsReadsOutOfBounds) {
  // Padding: y[i] = 0 <= i - pad < n ? x[i - pad] : 0, with x at either edge of its page, scalar and by vectors.
  const int64_t n = 24, pad = 8;
  Buffer x = make_buffer("x", kFloat32, {Expr(n)}, Scope::kGlobal, 4),
         y = make_buffer("y", kFloat32, {Expr(n + 2 * pad)});
  for (int lanes : {1, 8, 16}) {
    for (bool nested : {false, true}) {
      Var i("i");
      const Expr point = lanes == 1 ? Expr(i) : Ramp::make(i * lanes, Expr(1), lanes);
      const Expr from = point - make_const_int(kInt64.with_lanes(lanes), pad);
      Expr above = from >= make_const_int(kInt64.with_lanes(lanes), 0),
           below = from < make_const_int(kInt64.with_lanes(lanes), n);
      Expr zero = make_zero(kFloat32.with_lanes(lanes)), read = Load::make(x, {from});
      // Also a scalar read that only counts where some lane is inside, at an index beyond the page elsewhere.
      Expr first =
          lanes == 1
              ? zero
              : Broadcast::make(
                    load(x, {select(i * lanes < Expr(n + pad), max(i * lanes - pad, Expr(0)), Expr(100000))}), lanes);
      Expr inside = read + first - first;
      Expr value = nested ? select(above, select(below, inside, zero), zero) : select(above && below, inside, zero);
      LoopFunction f{
          "pad",
          {x, y},
          {},
          {y},
          For::make(i, Expr(0), Expr((n + 2 * pad) / lanes), ForKind::kSerial, Store::make(y, {point}, value)),
          {}};
      const ObjectCode object = compile({{f}}, Target::parse(target()).value());
      const JitModule module = JitModule::load(std::span(&object, 1));
      auto* run = module.function<int32_t(const tensmith_context*, const float*, float*)>("pad");
      for (bool at_end : {false, true}) {
        GuardedPage page;
        float* data = reinterpret_cast<float*>(at_end ? page.end() - n * 4 : page.begin());
        std::iota(data, data + n, 1.0f);
        alignas(64) float out[40] = {};
        ASSERT_EQ(run(nullptr, data, out), 0);
        const int64_t covered = (n + 2 * pad) / lanes * lanes;
        for (int64_t k = 0; k < covered; ++k)
          EXPECT_EQ(out[k], k >= pad && k < n + pad ? k - pad + 1 : 0) << lanes << " lanes, element " << k;
      }
    }
  }
}

TEST_P(MemoryTest, SelectOfSafeReadsHasNoBranch) {
  // Both branches read inside the buffers: the inner loop must stay straight.
  Buffer x = make_buffer("x", kFloat32, {Expr(64)}), y = make_buffer("y", kFloat32, {Expr(64)});
  Var i("i");
  Expr value =
      select(load(x, {i}) > make_const(kFloat32, 0), load(x, {Expr(63) - i}), load(x, {floor_div(i, Expr(2))}));
  LoopFunction f{"pick", {x, y}, {}, {y}, For::make(i, Expr(0), Expr(64), ForKind::kSerial, Store::make(y, {i}, value)),
                 {}};
  CodegenOptions options;
  options.want_llvm_ir = true;
  const std::string ir = compile({{f}}, Target::parse(target()).value(), options).llvm_ir;
  EXPECT_EQ(ir.find("then:"), std::string::npos) << ir;
  InterpValue vx = counted(kFloat32, 64), vy = make_interp_value(kFloat32, 64);
  ASSERT_EQ(run_code(f, target(), {&vx, &vy}), 0);
  for (int k = 0; k < 64; ++k) EXPECT_EQ(vy.f[k], vx.f[k] > 0 ? vx.f[63 - k] : vx.f[k / 2]);
}

TEST_P(MemoryTest, TailsOfStridedReadsAreNoGathers) {
  for (const int64_t stride : {2, 3, 4})
    for (const int64_t limit : {1, 5, 7, 15}) {
      const int64_t size = (limit - 1) * stride + 4;  // ends with the last element wanted
      Buffer x = make_buffer("x", kFloat32, {Expr(size)}, Scope::kGlobal, 4),
             y = make_buffer("y", kFloat32, {Expr(16)});
      Expr ramp = Ramp::make(Expr(0), Expr(1), 16),
           mask = Binary::make(BinaryOp::kLT, ramp, Broadcast::make(Expr(limit), 16));
      LoopFunction f{
          "tail", {x, y}, {}, {y}, Store::make(y, {ramp}, Load::make(x, {Ramp::make(Expr(3), Expr(stride), 16)}, mask)),
          {}};
      CodegenOptions options;
      options.want_llvm_ir = true;
      const ObjectCode object = compile({{f}}, Target::parse(target()).value(), options);
      EXPECT_EQ(object.llvm_ir.find("gather"), std::string::npos);
      const JitModule module = JitModule::load(std::span(&object, 1));
      GuardedPage page;
      auto* data = reinterpret_cast<float*>(page.end()) - size;
      for (int64_t k = 0; k < size; ++k) data[k] = static_cast<float>(k + 1);
      alignas(64) float out[16];
      std::fill(out, out + 16, -1.0f);
      module.function<int32_t(const tensmith_context*, const float*, float*)>("tail")(nullptr, data, out);
      for (int64_t lane = 0; lane < 16; ++lane)
        EXPECT_EQ(out[lane], lane < limit ? static_cast<float>(3 + lane * stride + 1) : 0) << stride << " " << lane;
    }
}

TEST_P(MemoryTest, MaskedReadsTouchNothingElse) {
  // Eight lanes of which the last three lie beyond the page; and a strided read that ends with the page.
  Buffer x = make_buffer("x", kFloat32, {Expr(64)}, Scope::kGlobal, 4), y = make_buffer("y", kFloat32, {Expr(16)});
  Expr ramp = Ramp::make(Expr(0), Expr(1), 8);
  Expr masked = Load::make(x, {ramp}, Binary::make(BinaryOp::kLT, ramp, Broadcast::make(Expr(5), 8)));
  Expr strided = Load::make(x, {Ramp::make(Expr(-19), Expr(3), 8)});  // ends at element 2
  LoopFunction f{
      "edge",
      {x, y},
      {},
      {y},
      Block::make({Store::make(y, {ramp}, masked), Store::make(y, {Ramp::make(Expr(8), Expr(1), 8)}, strided)}),
      {}};
  const ObjectCode object = compile({{f}}, Target::parse(target()).value());
  const JitModule module = JitModule::load(std::span(&object, 1));
  GuardedPage page;
  auto* data = reinterpret_cast<float*>(page.end()) - 5;
  for (int i = -19; i < 5; ++i) data[i] = static_cast<float>(i);
  alignas(64) float out[16] = {};
  // The buffer is stated larger than it is, so that only what is really read counts.
  module.function<int32_t(const tensmith_context*, const float*, float*)>("edge")(nullptr, data, out);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i], i < 5 ? i : 0);
    EXPECT_EQ(out[8 + i], -19 + 3 * i);
  }
}

TEST_P(MemoryTest, RegisterTileMixesVectorsAndLanes) {
  // Filled by vectors of eight, updated in a loop, read lane by lane, in halves and as a whole; one lane written alone.
  for (DType type : {kFloat32, kBFloat16, kInt32, kBool}) {
    Buffer x = make_buffer("x", type, {Expr(16)}), y = make_buffer("y", type, {Expr(48)});
    Buffer acc = make_buffer("acc", type, {Expr(16)}, Scope::kRegister);
    auto ramp = [](int64_t base, int lanes) { return Ramp::make(Expr(base), Expr(1), lanes); };
    std::vector<Stmt> body;
    for (int half : {0, 8}) body.push_back(Store::make(acc, {ramp(half, 8)}, Load::make(x, {ramp(half, 8)})));
    Var k("k");
    std::vector<Stmt> turn;
    for (int half : {0, 8}) {
      Expr old = Load::make(acc, {ramp(half, 8)});
      turn.push_back(Store::make(acc, {ramp(half, 8)},
                                 type.is_bool() ? Expr(Not::make(old)) : old + make_const(type.with_lanes(8), 1)));
    }
    body.push_back(For::make(k, Expr(0), Expr(3), ForKind::kSerial, Block::make(turn)));
    body.push_back(Store::make(acc, {Expr(5)}, make_const(type, 1)));
    body.push_back(Store::make(acc, {ramp(12, 2)}, make_const(type.with_lanes(2), 0)));
    for (int i = 0; i < 16; ++i) body.push_back(Store::make(y, {Expr(i)}, load(acc, {Expr(i)})));
    for (int quarter : {0, 4, 8, 12})
      body.push_back(Store::make(y, {ramp(16 + quarter, 4)}, Load::make(acc, {ramp(quarter, 4)})));
    for (int half : {0, 8}) body.push_back(Store::make(y, {ramp(32 + half, 8)}, Load::make(acc, {ramp(half, 8)})));
    LoopFunction f{"tile", {x, y}, {}, {y}, Allocate::make(acc, Block::make(body)), {}};
    InterpValue vx = counted(type, 16), vy = make_interp_value(type, 48);
    ASSERT_EQ(run_code(f, target(), {&vx, &vy}), 0);
    for (int i = 0; i < 48; ++i) {
      const int lane = i % 16;
      const double updated = type.is_bool() ? !at(vx, lane) : at(vx, lane) + 3;
      EXPECT_EQ(at(vy, i), lane == 5                  ? 1
                           : lane == 12 || lane == 13 ? 0
                                                      : updated)
          << to_string(type) << " element " << i;
    }
  }
}

TEST_P(MemoryTest, RegisterTailsKeepTheirMask) {
  // A tail of five lanes is summed up in a loop. Where everything stands under its mask, what the other lanes hold is
  // nobody's business; where one read sees them all, or another mask more of them, they stay what they were.
  enum { kSame, kSeenWhole, kSeenWider };
  for (int seen : {kSame, kSeenWhole, kSeenWider}) {
    Buffer x = make_buffer("x", kFloat32, {Expr(8)}), y = make_buffer("y", kFloat32, {Expr(8)});
    Buffer acc = make_buffer("acc", kFloat32, {Expr(8)}, Scope::kRegister);
    const Expr lanes = Ramp::make(Expr(0), Expr(1), 8);
    const auto below = [&](int64_t count) {
      return Expr(Binary::make(BinaryOp::kLT, lanes, Broadcast::make(Expr(count), 8)));
    };
    const Expr tail = below(5);
    std::vector<Stmt> body;
    if (seen != kSame) body.push_back(Store::make(acc, {lanes}, make_const(kFloat32.with_lanes(8), 100)));
    body.push_back(Store::make(acc, {lanes}, make_const(kFloat32.with_lanes(8), 7), tail));
    Var k("k");
    const Expr sum = Load::make(acc, {lanes}, tail) + Load::make(x, {lanes});
    body.push_back(For::make(k, Expr(0), Expr(3), ForKind::kSerial, Store::make(acc, {lanes}, sum, tail)));
    if (seen == kSame) body.push_back(Store::make(y, {lanes}, Load::make(acc, {lanes}, tail)));
    else body.push_back(Store::make(y, {lanes}, Load::make(acc, {lanes}, seen == kSeenWhole ? Expr() : below(7))));
    LoopFunction f{"tails", {x, y}, {}, {y}, Allocate::make(acc, Block::make(body)), {}};
    InterpValue vx = counted(kFloat32, 8), vy = make_interp_value(kFloat32, 8);
    ASSERT_EQ(run_code(f, target(), {&vx, &vy}), 0);
    for (int i = 0; i < 8; ++i) {
      const double outside = seen == kSame || (seen == kSeenWider && i == 7) ? 0 : 100;
      EXPECT_EQ(at(vy, i), i < 5 ? 7 + 3 * at(vx, i) : outside) << "lane " << i << ", seen " << seen;
    }
  }
}

std::string error_of(const LoopFunction& f) {
  try {
    compile({{f}}, Target::host());
  } catch (const Error& error) {
    return error.id();
  }
  return "none";
}

TEST(RegisterTile, RefusesOverlapAndVariableIndices) {
  Buffer y = make_buffer("y", kFloat32, {Expr(16)}), acc = make_buffer("acc", kFloat32, {Expr(16)}, Scope::kRegister);
  auto store = [&](Expr index) {
    const int lanes = index.dtype().lanes;
    return Store::make(acc, {index}, make_const(kFloat32.with_lanes(lanes), 1));
  };
  auto function = [&](Stmt body) { return LoopFunction{"f", {y}, {}, {y}, Allocate::make(acc, std::move(body)), {}}; };
  EXPECT_EQ(
      error_of(function(Block::make({store(Ramp::make(Expr(0), Expr(1), 8)), store(Ramp::make(Expr(4), Expr(1), 8))}))),
      "register-overlap");
  EXPECT_EQ(
      error_of(function(Block::make({store(Ramp::make(Expr(0), Expr(1), 4)), store(Ramp::make(Expr(3), Expr(1), 2))}))),
      "register-overlap");
  EXPECT_EQ(error_of(function(Block::make(
                {store(Ramp::make(Expr(0), Expr(1), 4)), store(Ramp::make(Expr(4), Expr(1), 8)), store(Expr(3))}))),
            "none");
  Var i("i");
  EXPECT_EQ(error_of(function(For::make(i, Expr(0), Expr(4), ForKind::kSerial, store(i)))), "register-index");
  EXPECT_EQ(error_of(function(For::make(i, Expr(0), Expr(4), ForKind::kParallel, store(Expr(0))))),
            "register-captured");
}

}  // namespace
}  // namespace tensmith
