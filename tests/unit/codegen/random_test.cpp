// Random programs: generated code gives what the interpreter gives, bit for bit, on every instruction set of this
// machine. TENSMITH_RANDOM_PROGRAMS sets how many, TENSMITH_RANDOM_SEED the first.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "tensor/print.h"
#include "tensor/walk.h"
#include "tests/support/random_loops.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

/// Row-major flat indices, as lowering leaves them.
class Flatten : public Mutator {
 public:
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    const Expr changed = mutate_children(e);
    const Load* load = changed.as<Load>();
    return load ? Load::make(load->buffer, flat(load->buffer, load->indices), load->predicate) : changed;
  }
  Stmt mutate(const Stmt& s) override {
    const Stmt changed = mutate_children(s);
    const Store* store = changed.as<Store>();
    return store ? Store::make(store->buffer, flat(store->buffer, store->indices), store->value, store->predicate)
                 : changed;
  }

 private:
  static std::vector<Expr> flat(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (indices.empty()) return {Expr(0)};
    Expr sum = indices[0];
    for (size_t d = 1; d < indices.size(); ++d) sum = sum * buffer->shape[d] + indices[d];
    return {sum};
  }
};

int32_t run_in_threads(void*, tensmith_loop_body body, void* closure, int64_t extent) {
  int32_t results[2];
  std::thread other([&] { results[1] = body(closure, extent / 2, extent, 1); });
  results[0] = body(closure, 0, extent / 2, 0);
  other.join();
  return results[0] ? results[0] : results[1];
}

class RandomTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, RandomTest, testing::ValuesIn(runnable_targets()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(RandomTest, CodeAgreesWithTheInterpreter) {
  const int64_t first = setting("TENSMITH_RANDOM_SEED", 1), count = setting("TENSMITH_RANDOM_PROGRAMS", 25);
  RandomLoopOptions options;
  options.special_loops = false;
  options.only_exact = true;
  CodegenOptions strict;
  strict.contract_fma = false;
  int pool = 0;
  const tensmith_context threads = {sizeof(tensmith_context), 2, &run_in_threads, &pool, nullptr, nullptr};
  for (int64_t seed = first; seed < first + count; ++seed) {
    RandomLoops program = random_loops(static_cast<uint64_t>(seed), options);
    std::vector<InterpValue> expected = program.buffers, actual = program.buffers;
    std::vector<InterpValue*> expected_buffers, actual_buffers;
    for (InterpValue& value : expected) expected_buffers.push_back(&value);
    for (InterpValue& value : actual) actual_buffers.push_back(&value);
    const Result<void> reference =
        interpret(program.function, expected_buffers, program.scalars, InterpFloat::kRounded);
    ASSERT_TRUE(reference.ok()) << "seed " << seed << ": " << reference.failure().message;
    LoopFunction flat = program.function;
    flat.body = Flatten().mutate(flat.body);
    ASSERT_EQ(run_code(flat, GetParam(), actual_buffers, program.scalars, seed % 2 ? &threads : nullptr, strict), 0)
        << "seed " << seed;
    for (size_t i = 0; i < actual.size(); ++i)
      expect_same(actual[i], expected[i], "seed " + std::to_string(seed) + " " + program.function.buffers[i]->name);
    if (HasFailure()) FAIL() << to_string(program.function);
  }
}

}  // namespace
}  // namespace tensmith
