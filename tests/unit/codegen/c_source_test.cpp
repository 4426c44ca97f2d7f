// Loop IR as plain C: it builds with the system's C compiler and gives what the interpreter gives.
#include "codegen/c_source.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "runtime/base/files.h"
#include "runtime/base/rng.h"
#include "schedule/lower/lowering.h"
#include "schedule/primitive_def.h"
#include "tensor/parse.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"
#include "tests/support/golden.h"
#include "tests/support/random_loops.h"
#include "tests/unit/codegen/run_code.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

/// A C file built as a library. What has no meaning in C ends the process.
class CLibrary {
 public:
  CLibrary(const std::string& source, const std::string& flags) {
    const std::string file = folder_.file("source.c"), library = folder_.file("source.so");
    EXPECT_TRUE(write_file(file, source).ok());
    const std::string command =
        "gcc -std=c99 -O1 -ffp-contract=off -shared -fPIC "
        "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow "
        "-fsanitize-undefined-trap-on-error " +
        flags + " " + file + " -o " + library + " -lm 2> " + folder_.file("errors");
    if (std::system(command.c_str()) == 0) handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    else ADD_FAILURE() << *read_file(folder_.file("errors")) << "\n" << source.substr(0, 20000);
  }
  ~CLibrary() {
    if (handle_) dlclose(handle_);
  }
  CLibrary(const CLibrary&) = delete;
  CLibrary& operator=(const CLibrary&) = delete;
  bool is_built() const { return handle_ != nullptr; }

  /// Runs a function on the buffers; scalars are 64-bit integers.
  int32_t run(const std::string& name, const std::vector<InterpValue*>& buffers, const std::vector<int64_t>& scalars) {
    std::vector<std::vector<uint8_t>> memory;
    for (const InterpValue* value : buffers) memory.push_back(to_bytes(*value));
    std::vector<int64_t> a;
    for (std::vector<uint8_t>& bytes : memory) a.push_back(reinterpret_cast<int64_t>(bytes.data()));
    a.insert(a.end(), scalars.begin(), scalars.end());
    EXPECT_LE(a.size(), 14u) << name;
    a.resize(14);
    void* function = dlsym(handle_, name.c_str());
    if (!function) {
      ADD_FAILURE() << "no " << name;
      return -1;
    }
    using F = int32_t (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                          int64_t, int64_t, int64_t, int64_t);
    const int32_t result = reinterpret_cast<F>(function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                                         a[10], a[11], a[12], a[13]);
    for (size_t k = 0; k < buffers.size(); ++k) from_bytes(memory[k], buffers[k]);
    return result;
  }

 private:
  TempDir folder_;
  void* handle_ = nullptr;
};

std::vector<InterpValue*> pointers_to(std::vector<InterpValue>& values) {
  std::vector<InterpValue*> pointers;
  for (InterpValue& value : values) pointers.push_back(&value);
  return pointers;
}

TEST(CSource, RandomProgramsAgreeWithTheInterpreter) {
  const char* count_text = std::getenv("TENSMITH_RANDOM_PROGRAMS");
  const char* seed_text = std::getenv("TENSMITH_RANDOM_SEED");
  const uint64_t first = seed_text ? std::strtoull(seed_text, nullptr, 10) : 1;
  const uint64_t count = count_text ? std::strtoull(count_text, nullptr, 10) : 25;
  RandomLoopOptions options;
  options.only_exact = true;
  std::vector<RandomLoops> all;
  LoopProgram program;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    all.push_back(random_loops(seed, options));
    all.back().function.name = "random_" + std::to_string(seed);
    program.functions.push_back(all.back().function);
  }
  CLibrary library(to_c(program), "");
  ASSERT_TRUE(library.is_built());
  for (RandomLoops& random : all) {
    std::vector<InterpValue> expected = random.buffers, actual = random.buffers;
    const Result<void> reference =
        interpret(random.function, pointers_to(expected), random.scalars, InterpFloat::kRounded);
    ASSERT_TRUE(reference.ok()) << random.function.name << ": " << reference.failure().message;
    ASSERT_EQ(library.run(random.function.name, pointers_to(actual), random.scalars), 0) << random.function.name;
    for (size_t k = 0; k < actual.size(); ++k)
      expect_same(actual[k], expected[k], random.function.name + " " + random.function.buffers[k]->name);
    ASSERT_FALSE(HasFailure()) << to_c({{random.function}});
  }
}

TEST(CSource, LoweredSchedulesAgreeWithTheInterpreter) {
  struct Case {
    std::string name;
    LoopFunction function;
    std::vector<int64_t> dims;
  };
  std::vector<Case> cases;
  LoopProgram program;
  for (const PrimitiveDef* def : all_primitives())
    for (const PrimitiveSample& sample : def->samples) {
      const SizedWorkload sized = sample_workload(sample.workload);
      LoopFunction f = lower(make_schedule(sized.workload, sample.steps)).function;
      f.name = def->name + "_" + std::to_string(cases.size());
      cases.push_back({f.name, f, sized.dims});
      program.functions.push_back(f);
    }
  CLibrary library(to_c(program), "-Wall -Wextra -Werror -Wno-unused-parameter");
  ASSERT_TRUE(library.is_built());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Rng rng(1, c.name);
    VarMap sizes;
    for (size_t k = 0; k < c.dims.size(); ++k) sizes[c.function.scalars[k].get()] = Expr(c.dims[k]);
    std::vector<InterpValue> expected;
    for (const Buffer& buffer : c.function.buffers) {
      int64_t count = 1;
      for (const Expr& extent : buffer->shape) {
        int64_t value = 0;
        ASSERT_TRUE(as_const_int(simplify(substitute(extent, sizes)), &value));
        count *= value;
      }
      InterpValue value = make_interp_value(buffer->dtype, count);
      for (double& number : value.f) number = static_cast<double>(rng.between(-64, 64)) / 32;
      for (int64_t& number : value.i) number = buffer->dtype.is_uint() ? rng.between(0, 100) : rng.between(-50, 50);
      expected.push_back(std::move(value));
    }
    std::vector<InterpValue> actual = expected;
    ASSERT_TRUE(interpret(c.function, pointers_to(expected), c.dims, InterpFloat::kRounded).ok());
    ASSERT_EQ(library.run(c.name, pointers_to(actual), c.dims), 0);
    for (size_t k = 0; k < actual.size(); ++k) {
      EXPECT_EQ(actual[k].i, expected[k].i);
      for (size_t n = 0; n < actual[k].f.size(); ++n)
        ASSERT_TRUE(actual[k].f[n] == expected[k].f[n] ||
                    std::fabs(actual[k].f[n] - expected[k].f[n]) <= 1e-5 * std::fabs(expected[k].f[n]) + 1e-6)
            << c.function.buffers[k]->name << " " << n << "\n"
            << to_c({{c.function}});
    }
  }
}

TEST(CSource, ProgramsCallTheirFunctionsAndEndWithTheirCode) {
  const LoopProgram program = parse_program(R"(
    func half(x: f32[4], y: f32[4]; n: i64) -> y {
      assert n <= 4, 42, "n fits"
      for i in n { y[i] = x[i] * 0.5 }
    }
    func both(x: f32[4], y: f32[4]; n: i64) -> y {
      alloc t: f32[n * 100000]
      eval extern:i32 half(address_of(x[0]), address_of(t[0]), n)
      eval extern:i32 half(address_of(t[0]), address_of(y[0]), n)
    })")
                                  .value();
  CLibrary library(to_c(program), "-Wall -Wextra -Werror");
  ASSERT_TRUE(library.is_built());
  InterpValue x = values(kFloat32, {1, 2, 3, 4}), y = make_interp_value(kFloat32, 4);
  EXPECT_EQ(library.run("both", {&x, &y}, {3}), 0);
  EXPECT_EQ(y.f, (std::vector<double>{0.25, 0.5, 0.75, 0}));
  EXPECT_EQ(library.run("both", {&x, &y}, {5}), 42);
}

TEST(CSource, NamesOfTheLibraryStayItsOwn) {
  const Tensor x = placeholder("exp", {4}, kFloat64);
  const Tensor square = compute("erff", {4}, [&](const Indices& i) {
    return call(Intrinsic::kPow, {x(i), make_const(kFloat64, 2)});
  });
  const Tensor y = compute("pow", {4}, [&](const Indices& i) { return call(Intrinsic::kExp, {square(i)}); });
  LoopProgram program;
  program.functions.push_back(lower(Schedule(make_workload("powers", {x}, {y}))).function);
  CLibrary library(to_c(program), "-Wall -Wextra -Werror");
  ASSERT_TRUE(library.is_built());
  InterpValue in = values(kFloat64, {0, 1, 0.5, -1}), out = make_interp_value(kFloat64, 4),
              between = make_interp_value(kFloat64, 4);
  ASSERT_EQ(program.functions[0].buffers.size(), 3u);  // the square is a workspace
  EXPECT_EQ(library.run("powers", {&in, &out, &between}, {}), 0);
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(out.f[k], std::exp(in.f[k] * in.f[k]), 1e-12);
}

TEST(CSource, ReadsLikeC) {
  const SizedWorkload dense = sample_workload("dense");
  const Schedule schedule = make_schedule(
      dense.workload,
      {"split stage=R loop=i0 factor=6 outer=io inner=ii", "split stage=R loop=i1 factor=16 outer=jo inner=ji",
       "reorder stage=R loops=jo,io,ii,ji", "unroll stage=R loop=ii", "unroll stage=R loop=ji",
       "compute_at stage=C consumer=R at=io", "tile stage=C rows=i0 columns=i1 lanes=8", "parallel stage=R loop=jo"});
  LowerOptions nests;
  nests.pass_limit = 0;
  expect_golden("codegen/dense.c", to_c({{lower(schedule, nests).function}}));
}

}  // namespace
}  // namespace tensmith
