// Random parallel loops, run by hand: what the verifier accepts may not touch one element in two iterations where one
// of them writes. TS_FUZZ_COUNT: how many.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "tensor/print.h"
#include "tensor/verify.h"
#include "tests/unit/tensor/eval.h"

namespace tensmith {
namespace {

/// A loop over p = ((a * B) + b) * C + c with stores that index by these digits, under conditions that peel tails.
class RandomRaces {
 public:
  explicit RandomRaces(uint64_t seed) : random_(seed) {}

  LoopFunction make() {
    b_ = pick(2, 4);
    c_ = pick(2, 4);
    const int64_t extent = pick(1, 3) * b_ * c_ + (pick(0, 5) == 0 ? pick(0, 3) : 0);
    return {"f", {data_}, {}, {data_}, For::make(p_, 0, Expr(extent), ForKind::kParallel, statement(3)), {}};
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  Expr digit() {
    switch (pick(0, 6)) {
      case 0: return Expr(p_);
      case 1: return floor_div(p_, b_ * c_);
      case 2: return floor_mod(floor_div(p_, c_), b_);
      case 3: return floor_mod(p_, c_);
      case 4: return floor_div(p_, c_);
      case 5: return floor_mod(p_, b_ * c_);
      default: return inner_.empty() ? Expr(p_) : Expr(inner_[static_cast<size_t>(pick(0, ssize() - 1))]);
    }
  }
  int64_t ssize() const { return static_cast<int64_t>(inner_.size()); }
  Expr condition() {
    Expr left = digit();
    if (pick(0, 4) == 0) left = left + digit() * pick(1, 3);
    const Expr bound(pick(0, 4));
    switch (pick(0, 4)) {
      case 0: return left == bound;
      case 1: return left >= bound;
      case 2: return left < bound && digit() < pick(1, 4);
      case 3: return left < bound || digit() == pick(0, 3);
      default: return left < bound;
    }
  }
  Expr index() {
    // Mostly what a schedule makes: the digits with strides that fit, each slightly off at times.
    const int64_t w = pick(1, 4), slack = pick(0, 7) == 0 ? -1 : 0, row = c_ * w + pick(0, 2) + slack;
    Expr result(pick(0, 3) == 0 ? pick(0, 8) : 0);
    if (pick(0, 9) != 0) result = result + floor_div(p_, b_ * c_) * (row * b_ + (pick(0, 9) == 0 ? -1 : 0));
    if (pick(0, 3) != 0) result = result + floor_mod(floor_div(p_, c_), b_) * row;
    if (pick(0, 3) != 0) result = result + floor_mod(p_, c_) * w;
    for (const Var& v : inner_)
      if (pick(0, 3) != 0) result = result + v;
    if (pick(0, 5) == 0) result = result + digit() * pick(1, 9);
    return result;
  }
  Stmt statement(int depth) {
    switch (depth == 0 ? 9 : pick(0, 9)) {
      case 0:
      case 1:
      case 2: return If::make(condition(), statement(depth - 1), pick(0, 1) ? statement(depth - 1) : Stmt());
      case 3: return Block::make({statement(depth - 1), statement(depth - 1)});
      case 4:
      case 5: {
        const Var i("i" + std::to_string(++names_));
        inner_.push_back(i);
        const Stmt body = statement(depth - 1);
        inner_.pop_back();
        return For::make(i, 0, Expr(pick(1, 4)), ForKind::kSerial, body);
      }
      case 6: {
        const Var x("x" + std::to_string(++names_));
        const Expr value = digit();
        inner_.push_back(x);
        const Stmt body = statement(depth - 1);
        inner_.pop_back();
        return LetStmt::make(x, value, body);
      }
      default: {
        Expr value = FloatImm::make(kFloat32, 1);
        if (pick(0, 5) == 0) value = select(condition(), load(data_, {index()}), value);
        return Store::make(data_, {index()}, value);
      }
    }
  }

  std::mt19937_64 random_;
  int64_t b_ = 1, c_ = 1;
  int names_ = 0;
  Var p_{"p"};
  std::vector<Var> inner_;
  Buffer data_ = make_buffer("data", kFloat32, {Expr(100000)});
};

/// Runs one iteration and notes the elements.
struct Touched {
  std::set<int64_t> read, written;
};

void look_at(const Expr& e, testing::Env& env, Touched& touched) {
  if (const auto* choice = e.as<Select>())
    return look_at(testing::evaluate_scalar(choice->cond, env) != 0 ? choice->a : choice->b, env, touched);
  if (const auto* load = e.as<Load>()) touched.read.insert(testing::evaluate_scalar(load->indices[0], env));
}

void run(const Stmt& s, testing::Env& env, Touched& touched) {
  if (!s) return;
  const auto set = [&](const Var& v, int64_t value) { env[static_cast<const VarNode*>(v.get())] = value; };
  if (const auto* loop = s.as<For>()) {
    const int64_t extent = testing::evaluate_scalar(loop->extent, env);
    for (int64_t k = 0; k < extent; ++k) set(loop->var, k), run(loop->body, env, touched);
  } else if (const auto* branch = s.as<If>()) {
    run(testing::evaluate_scalar(branch->cond, env) != 0 ? branch->then : branch->otherwise, env, touched);
  } else if (const auto* block = s.as<Block>()) {
    for (const Stmt& part : block->stmts) run(part, env, touched);
  } else if (const auto* let = s.as<LetStmt>()) {
    set(let->var, testing::evaluate_scalar(let->value, env));
    run(let->body, env, touched);
  } else if (const auto* store = s.as<Store>()) {
    look_at(store->value, env, touched);
    touched.written.insert(testing::evaluate_scalar(store->indices[0], env));
  }
}

bool races(const For& loop) {
  std::map<int64_t, std::set<int64_t>> written, touched;  // iterations by element
  testing::Env env;
  const int64_t extent = testing::evaluate_scalar(loop.extent, env);
  for (int64_t p = 0; p < extent; ++p) {
    Touched here;
    env[static_cast<const VarNode*>(loop.var.get())] = p;
    run(loop.body, env, here);
    for (int64_t element : here.written) written[element].insert(p), touched[element].insert(p);
    for (int64_t element : here.read) touched[element].insert(p);
  }
  for (const auto& [element, iterations] : written)
    if (iterations.size() > 1 || touched[element].size() > 1) return true;
  return false;
}

TEST(RaceFuzzTest, AcceptsNoLoopThatRaces) {
  const char* wanted = std::getenv("TS_FUZZ_COUNT");
  const uint64_t count = wanted ? std::strtoull(wanted, nullptr, 10) : 4000;
  uint64_t free = 0, proven = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const LoopFunction function = RandomRaces(seed).make();
    VerifyOptions options;
    options.bounds = false;
    const Result<void> result = verify(function, options);
    ASSERT_TRUE(result.ok() || result.failure().id == "verify-race") << seed << ": " << result.failure().message;
    const bool racy = races(*function.body.as<For>());
    free += !racy;
    proven += !racy && result.ok();
    ASSERT_FALSE(racy && result.ok()) << "seed " << seed << "\n" << to_string(function);
  }
  // Most of what is free of races is seen to be; the rest are strides that fit by chance.
  EXPECT_GE(proven * 10, free * 7) << proven << " of " << free;
  RecordProperty("proven_percent", static_cast<int>(100 * proven / std::max<uint64_t>(free, 1)));
  std::printf("%llu of %llu loops without races proven, of %llu\n", static_cast<unsigned long long>(proven),
              static_cast<unsigned long long>(free), static_cast<unsigned long long>(count));
}

}  // namespace
}  // namespace tensmith
