// Control flow, calls, allocations, assertions and parallel loops.
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "runtime/base/config.h"
#include "runtime/base/files.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

Stmt add_to(const Buffer& b, Expr index, Expr value) { return Store::make(b, {index}, load(b, {index}) + value); }
Stmt serial(const Var& v, Expr min, Expr extent, Stmt body) {
  return For::make(v, std::move(min), std::move(extent), ForKind::kSerial, std::move(body));
}

TEST(Loops, ExtentsMayBeSymbolicEmptyAndNegative) {
  Buffer y = make_buffer("y", kInt64, {Expr(2)});
  Var i("i"), n("n"), m("m");
  Stmt body = Block::make({serial(i, m, n, Block::make({add_to(y, Expr(0), Expr(1)), add_to(y, Expr(1), i)})),
                           serial(i, Expr(0), Expr(0), Store::make(y, {Expr(0)}, Expr(-1))),
                           serial(i, Expr(0), Expr(-3), Store::make(y, {Expr(0)}, Expr(-1)))});
  LoopFunction f{"loops", {y}, {m, n}, {y}, body, {}};
  for (auto [start, count] : {std::pair{0, 5}, {-3, 7}, {4, 0}, {4, -2}, {0, 1}}) {
    InterpValue v = int_values(kInt64, {0, 0});
    ASSERT_EQ(run_code(f, "host", {&v}, {start, count}), 0);
    const int64_t turns = std::max(count, 0), last = start + turns - 1;
    EXPECT_EQ(v.i[0], turns);
    EXPECT_EQ(v.i[1], turns * (start + last) / 2);
  }
}

TEST(Loops, WhileAndIfAndLet) {
  // Collatz steps of n in y[0]; y[1] counts the odd ones.
  Buffer y = make_buffer("y", kInt64, {Expr(3)});
  Var n("n"), half("half");
  Expr now = load(y, {Expr(2)});
  Stmt step = If::make(floor_mod(now, Expr(2)) == Expr(0),
                       LetStmt::make(half, floor_div(now, Expr(2)), Store::make(y, {Expr(2)}, half)),
                       Block::make({Store::make(y, {Expr(2)}, now * 3 + 1), add_to(y, Expr(1), Expr(1))}));
  Stmt body = Block::make(
      {Store::make(y, {Expr(2)}, n), While::make(now != Expr(1), Block::make({step, add_to(y, Expr(0), Expr(1))}))});
  InterpValue v = int_values(kInt64, {0, 0, 0});
  ASSERT_EQ(run_code(LoopFunction{"collatz", {y}, {n}, {y}, body, {}}, "host", {&v}, {27}), 0);
  EXPECT_EQ(v.i, (std::vector<int64_t>{111, 41, 1}));
}

TEST(Asserts, ReturnTheirCodeAndStop) {
  Buffer y = make_buffer("y", kInt32, {Expr(1)}), heap = make_buffer("heap", kInt32, {Expr(1000)});
  Var n("n");
  Stmt body =
      Block::make({Assert::make(n < Expr(10), 7, "n is small"), Store::make(y, {Expr(0)}, make_const_int(kInt32, 1)),
                   Allocate::make(heap, Block::make({Assert::make(n < Expr(5), -3, "n is tiny"),
                                                     Store::make(heap, {n}, make_const_int(kInt32, 2)),
                                                     Store::make(y, {Expr(0)}, load(heap, {n}))}))});
  LoopFunction f{"check", {y}, {n}, {y}, body, {}};
  for (auto [value, code, left] : {std::tuple{12, 7, 0}, {7, -3, 1}, {2, 0, 2}}) {
    InterpValue v = int_values(kInt32, {0});
    EXPECT_EQ(run_code(f, "host", {&v}, {value}), code);
    EXPECT_EQ(v.i[0], left);
  }
}

TEST(Allocations, StackAndHeapKeepValues) {
  for (Scope scope : {Scope::kStack, Scope::kGlobal}) {
    Buffer x = make_buffer("x", kFloat32, {Expr(64)}), y = make_buffer("y", kFloat32, {Expr(64)}),
           t = make_buffer("t", kFloat32, {Expr(64)}, scope);
    Var i("i"), j("j"), k("k");
    Stmt fill = serial(i, Expr(0), Expr(64), Store::make(t, {i}, load(x, {i}) * make_const(kFloat32, 2)));
    Stmt use = serial(j, Expr(0), Expr(64), Store::make(y, {j}, load(y, {j}) + load(t, {Expr(63) - j})));
    LoopFunction f{"temp", {x, y}, {}, {y}, serial(k, Expr(0), Expr(3), Allocate::make(t, Block::make({fill, use}))),
                   {}};
    std::vector<double> numbers, want;
    for (int n = 0; n < 64; ++n) numbers.push_back(n), want.push_back(6 * (63 - n));
    InterpValue vx = values(kFloat32, numbers), vy = make_interp_value(kFloat32, 64);
    ASSERT_EQ(run_code(f, "host", {&vx, &vy}), 0);
    expect_equal(vy, values(kFloat32, want), "temporary");
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

TEST(Allocations, RefusesWhatDoesNotFit) {
  Buffer y = make_buffer("y", kFloat32, {Expr(1)});
  auto with = [&](Expr size, Scope scope) {
    Buffer t = make_buffer("t", kFloat32, {std::move(size)}, scope);
    return LoopFunction{"f", {y}, {}, {y}, Allocate::make(t, Store::make(t, {Expr(0)}, load(y, {Expr(0)}))), {}};
  };
  EXPECT_EQ(error_of(with(Expr(32 << 10), Scope::kStack)), "none");
  EXPECT_EQ(error_of(with(Expr((32 << 10) + 1), Scope::kStack)), "stack-too-large");
  EXPECT_EQ(error_of(with(Expr(int64_t{1} << 61), Scope::kStack)), "stack-too-large");
  EXPECT_EQ(error_of(with(Expr(16), Scope::kShared)), "codegen-scope");
  // Each fits, but not all of them together; one after the other they do.
  auto many = [&](bool nested) {
    Stmt body = Store::make(y, {Expr(0)}, make_const(kFloat32, 1));
    for (int k = 0; k < 9; ++k) {
      Buffer t = make_buffer("t" + std::to_string(k), kFloat32, {Expr(32 << 10)}, Scope::kStack);
      Stmt use = Store::make(t, {Expr(0)}, load(y, {Expr(0)}));
      body = nested ? Allocate::make(t, Block::make({use, body})) : Block::make({Allocate::make(t, use), body});
    }
    return LoopFunction{"f", {y}, {}, {y}, body, {}};
  };
  EXPECT_EQ(error_of(many(true)), "stack-too-large");
  EXPECT_EQ(error_of(many(false)), "none");
  Var i("i");
  LoopFunction vectorized{
      "f",
      {y},
      {},
      {y},
      For::make(i, Expr(0), Expr(4), ForKind::kVectorized, Store::make(y, {Expr(0)}, load(y, {Expr(0)}))),
      {}};
  EXPECT_EQ(error_of(vectorized), "internal-error");
}

TEST(Calls, KernelsOfTheProgramAndCFunctions) {
  Buffer x = make_buffer("x", kFloat32, {Expr(8)}), y = make_buffer("y", kFloat32, {Expr(8)});
  Var i("i"), n("n"), scale("scale", kFloat32);
  LoopFunction kernel{"scale_by",
                      {x, y},
                      {n, scale},
                      {y},
                      Block::make({Assert::make(n <= Expr(8), 42, "n fits"),
                                   serial(i, Expr(0), n, Store::make(y, {i}, load(x, {i}) * scale))}),
                      {}};
  Buffer arena = make_buffer("arena", kFloat32, {Expr(24)});
  Var count("count");
  auto address = [&](int64_t offset) {
    return Call::make(kHandle, Intrinsic::kAddressOf, {load(arena, {Expr(offset)})});
  };
  auto run = [&](int64_t from, int64_t to, double factor) {
    return Evaluate::make(
        Call::make_extern(kInt32, "scale_by", {address(from), address(to), count, make_const(kFloat32, factor)}));
  };
  Stmt copy = Evaluate::make(Call::make_extern(kHandle, "memcpy", {address(16), address(8), Expr(32)}));
  Expr power = Call::make_extern(kFloat32, "powf", {load(arena, {Expr(16)}), make_const(kFloat32, 2)});
  LoopFunction host{
      "host", {arena}, {count}, {arena}, Block::make({run(0, 8, 3), copy, Store::make(arena, {Expr(0)}, power)}), {}};
  LoopProgram program{{kernel, host}};
  std::vector<double> numbers(24);
  for (int k = 0; k < 8; ++k) numbers[k] = k + 1;
  InterpValue v = values(kFloat32, numbers);
  ASSERT_EQ(run_code(program, "host", {&v}, {8}), 0);
  EXPECT_EQ(v.f[0], 9);
  for (int k = 1; k < 8; ++k) EXPECT_EQ(v.f[k], k + 1);
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(v.f[8 + k], 3 * (k + 1));
    EXPECT_EQ(v.f[16 + k], 3 * (k + 1));
  }
  v = values(kFloat32, numbers);
  EXPECT_EQ(run_code(program, "host", {&v}, {9}), 42);  // the kernel's code ends the host program
  EXPECT_EQ(v.f[0], 1);
}

TEST(Calls, ScalarsOfAllTypesArrive) {
  Buffer y = make_buffer("y", kFloat64, {Expr(4)});
  Var b("b", kBool), i8("i8", kInt8), f64("f64", kFloat64), h("h", kFloat16);
  std::vector<Stmt> body;
  int at = 0;
  for (const Var& v : {b, i8, f64, h}) body.push_back(Store::make(y, {Expr(at++)}, cast(kFloat64, v)));
  const ObjectCode object =
      compile({{LoopFunction{"scalars", {y}, {b, i8, f64, h}, {y}, Block::make(body), {}}}}, Target::host());
  const JitModule module = JitModule::load(std::span(&object, 1));
  alignas(64) double out[4];
  module.function<int32_t(const tensmith_context*, double*, bool, int8_t, double, uint16_t)>("scalars")(
      nullptr, out, true, -5, 2.5, 0x3e00);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -5);
  EXPECT_EQ(out[2], 2.5);
  EXPECT_EQ(out[3], 1.5);
}

/// Real threads, one per part, so that races and thread numbers are real.
struct TestPool {
  int parts = 3;
  std::atomic<int> regions{0}, inside{0};
  static int32_t run(void* self, tensmith_loop_body body, void* closure, int64_t extent) {
    auto* pool = static_cast<TestPool*>(self);
    EXPECT_EQ(pool->inside.fetch_add(1), 0) << "nested parallel region";
    ++pool->regions;
    std::vector<std::thread> threads;
    std::vector<int32_t> results(pool->parts);
    for (int t = 0; t < pool->parts; ++t)
      threads.emplace_back(
          [&, t] { results[t] = body(closure, extent * t / pool->parts, extent * (t + 1) / pool->parts, t); });
    for (std::thread& thread : threads) thread.join();
    --pool->inside;
    for (int32_t result : results)
      if (result) return result;
    return 0;
  }
  tensmith_context context() { return {sizeof(tensmith_context), parts, &TestPool::run, this, nullptr, nullptr}; }
};

LoopFunction parallel_function() {
  // y[i][j] = x[j] * i + offset, thread numbers in who[i]; the inner parallel loop must run serially, stack memory per
  // thread.
  Buffer x = make_buffer("x", kFloat32, {Expr(16)}), y = make_buffer("y", kFloat32, {Expr(160)}),
         who = make_buffer("who", kInt64, {Expr(10)});
  Buffer t = make_buffer("t", kFloat32, {Expr(16)}, Scope::kStack);
  Var i("i"), j("j"), k("k"), offset("offset"), start("start");
  Stmt fill =
      For::make(j, Expr(0), Expr(16), ForKind::kParallel, Store::make(t, {j}, load(x, {j}) * cast(kFloat32, i)));
  Stmt use = serial(k, Expr(0), Expr(16), Store::make(y, {i * 16 + k}, load(t, {k}) + cast(kFloat32, offset)));
  Stmt mark = Store::make(who, {i}, Call::make_extern(kInt64, "tensmith_thread_index", {}));
  Stmt check = Assert::make(i < Expr(9) || offset < Expr(100), 5, "no failure asked for");
  Stmt body = Block::make({check, mark, Allocate::make(t, Block::make({fill, use}))});
  return {"rows",
          {x, y, who},
          {offset},
          {y, who},
          LetStmt::make(start, Expr(1), For::make(i, start - 1, Expr(10), ForKind::kParallel, body)),
          {}};
}

TEST(Parallel, RunsOnPoolAndSerially) {
  for (bool threads : {false, true}) {
    TestPool pool;
    const tensmith_context context = pool.context();
    std::vector<double> numbers, want;
    for (int n = 0; n < 16; ++n) numbers.push_back(n - 3);
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 16; ++j) want.push_back((j - 3) * i + 4);
    InterpValue x = values(kFloat32, numbers), y = make_interp_value(kFloat32, 160),
                who = make_interp_value(kInt64, 10);
    ASSERT_EQ(run_code(parallel_function(), "host", {&x, &y, &who}, {4}, threads ? &context : nullptr), 0);
    expect_equal(y, values(kFloat32, want), threads ? "pool" : "serial");
    EXPECT_EQ(pool.regions, threads ? 1 : 0);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(who.i[i], threads ? (i < 3 ? 0 : i < 6 ? 1 : 2) : 0);
    // An assertion inside ends the function with its code.
    EXPECT_EQ(run_code(parallel_function(), "host", {&x, &y, &who}, {100}, threads ? &context : nullptr), 5);
  }
}

TEST(Parallel, ChunksOfAMarkedLoopHoldAtLeastAsManyIterations) {
  // runs[i] counts how often iteration i ran, who[i] says on which thread.
  const Buffer runs = make_buffer("runs", kInt64, {Expr(40)}), who = make_buffer("who", kInt64, {Expr(40)});
  const Var i("i"), n("n");
  const Stmt body = Block::make({Store::make(runs, {i}, load(runs, {i}) + 1),
                                 Store::make(who, {i}, Call::make_extern(kInt64, "tensmith_thread_index", {}))});
  for (const int64_t extent : {0, 1, 7, 8, 15, 16, 29, 37})
    for (const int64_t chunk : {1, 2, 8, 100}) {
      SCOPED_TRACE(testing::Message() << extent << " iterations, " << chunk << " a chunk");
      const LoopFunction f{"f",
                           {runs, who},
                           {n},
                           {runs, who},
                           For::make(i, Expr(3), n, ForKind::kParallel, body, {{"min_chunk", chunk}}),
                           {}};
      TestPool pool;
      const tensmith_context context = pool.context();
      InterpValue counts = make_interp_value(kInt64, 40), threads = make_interp_value(kInt64, 40);
      ASSERT_EQ(run_code(f, "host", {&counts, &threads}, {extent}, &context), 0);
      EXPECT_EQ(pool.regions, chunk > 1 && extent < 2 * chunk ? 0 : 1);
      std::map<int64_t, int64_t> of_thread;
      for (int64_t k = 0; k < 40; ++k) {
        EXPECT_EQ(counts.i[k], k >= 3 && k < 3 + extent ? 1 : 0) << k;
        if (counts.i[k] > 0) ++of_thread[threads.i[k]];
      }
      if (extent < chunk) continue;
      for (const auto& [thread, count] : of_thread) EXPECT_GE(count, chunk) << "thread " << thread;
    }
}

TEST(Parallel, ContextWithoutThreadsRunsSerially) {
  TestPool pool;
  tensmith_context one = pool.context(), no_pool = pool.context();
  one.num_threads = 1;
  no_pool.pool = nullptr;
  for (const tensmith_context* context : {&one, &no_pool}) {
    InterpValue x = make_interp_value(kFloat32, 16), y = make_interp_value(kFloat32, 160),
                who = make_interp_value(kInt64, 10);
    EXPECT_EQ(run_code(parallel_function(), "host", {&x, &y, &who}, {4}, context), 0);
    EXPECT_EQ(pool.regions, 0);
    EXPECT_EQ(y.f[159], 4);
  }
}

TEST(Parallel, CalledKernelsGetNoContextInside) {
  Buffer y = make_buffer("y", kInt64, {Expr(6)});
  Var i("i"), j("j"), row("row");
  auto threads = [] { return Call::make_extern(kInt64, "tensmith_num_threads", {}); };
  LoopFunction kernel{
      "kernel",
      {y},
      {row},
      {y},
      For::make(j, Expr(0), Expr(2), ForKind::kParallel, Store::make(y, {row * 2 + j}, row + threads())),
      {}};
  Expr address = Call::make(kHandle, Intrinsic::kAddressOf, {load(y, {Expr(0)})});
  Stmt call = Evaluate::make(Call::make_extern(kInt32, "kernel", {address, i}));
  Stmt body =
      Block::make({For::make(i, Expr(0), Expr(2), ForKind::kParallel, call), Store::make(y, {Expr(5)}, threads())});
  LoopProgram program{{kernel, LoopFunction{"main", {y}, {}, {y}, body, {}}}};
  TestPool pool;
  const tensmith_context context = pool.context();
  InterpValue v = make_interp_value(kInt64, 6);
  ASSERT_EQ(run_code(program, "host", {&v}, {}, &context), 0);
  EXPECT_EQ(v.i, (std::vector<int64_t>{1, 1, 2, 2, 0, 3}));
  EXPECT_EQ(pool.regions, 1);
}

TEST(Context, ObserverSeesKernels) {
  Buffer y = make_buffer("y", kInt64, {Expr(1)});
  auto tell = [](int64_t index, int64_t end) {
    return Evaluate::make(Call::make_extern(kInt32, "tensmith_on_kernel", {Expr(index), Expr(end)}));
  };
  LoopFunction f{
      "main", {y}, {}, {y}, Block::make({tell(3, 0), Store::make(y, {Expr(0)}, Expr(1)), tell(3, 1), tell(4, 0)}), {}};
  std::vector<std::pair<int, int>> seen;
  tensmith_context context = {sizeof(tensmith_context), 1, nullptr, nullptr, nullptr, &seen};
  InterpValue v = make_interp_value(kInt64, 1);
  ASSERT_EQ(run_code(f, "host", {&v}, {}, &context), 0);
  EXPECT_TRUE(seen.empty());
  context.on_kernel = [](void* user, int32_t index, int32_t end) {
    static_cast<std::vector<std::pair<int, int>>*>(user)->emplace_back(index, end);
  };
  ASSERT_EQ(run_code(f, "host", {&v}, {}, &context), 0);
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{3, 0}, {3, 1}, {4, 0}}));
}

TEST(Compile, ManyThreadsGiveTheSameBytes) {
  const LoopProgram program{{parallel_function()}};
  const ObjectCode reference = compile(program, Target::host());
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int n = 0; n < 3; ++n) equal += compile(program, Target::host()).bytes == reference.bytes;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 12);
}

TEST(Compile, PartsCallEachOther) {
  Buffer y = make_buffer("y", kInt64, {Expr(1)});
  LoopProgram program;
  Expr address = Call::make(kHandle, Intrinsic::kAddressOf, {load(y, {Expr(0)})});
  std::vector<Stmt> calls;
  for (int k = 0; k < 5; ++k) {
    program.functions.push_back({"add_" + std::to_string(k), {y}, {}, {y}, add_to(y, Expr(0), Expr(1 << k)), {}});
    calls.push_back(Evaluate::make(Call::make_extern(kInt32, program.functions.back().name, {address})));
  }
  program.functions.insert(program.functions.begin(),
                           {"main", {y}, {}, {y}, Block::make(calls), {}});  // callers before callees too
  const std::vector<ObjectCode> one = compile_parts(program, Target::host(), {}, 1),
                                three = compile_parts(program, Target::host(), {}, 3);
  ASSERT_EQ(one.size(), 6u);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].bytes, three[i].bytes);
  const JitModule module = JitModule::load(three);
  alignas(64) int64_t out = 100;
  EXPECT_EQ(module.function<int32_t(const tensmith_context*, int64_t*)>("main")(nullptr, &out), 0);
  EXPECT_EQ(out, 131);
  program.functions[2].body = Store::make(y, {Expr(0), Expr(0)}, Expr(1));
  EXPECT_THROW(compile_parts(program, Target::host(), {}, 2), InternalError);
}

TEST(Jit, NamesKernelsForPerf) {
  const std::shared_ptr<const Config> before = config();
  Config with_map = *before;
  with_map.perf_map = true;
  set_config(with_map);
  const ObjectCode object = compile({{parallel_function()}}, Target::host());
  const JitModule module = JitModule::load(std::span(&object, 1));
  set_config(*before);
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const Result<std::string> text = read_file(path);
  unlink(path.c_str());
  ASSERT_TRUE(text.ok());
  char address[32];
  std::snprintf(address, sizeof address, "%llx ",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(module.find("rows"))));
  EXPECT_NE(text->find(address), std::string::npos) << *text;
  EXPECT_NE(text->find(" rows\n"), std::string::npos) << *text;
  EXPECT_NE(text->find(" rows_i\n"), std::string::npos) << "the body of the parallel loop: " << *text;
}

TEST(Jit, NamesWhatIsMissing) {
  Buffer y = make_buffer("y", kFloat32, {Expr(1)});
  auto calls = [&](const char* symbol) {
    return compile(
        {{LoopFunction{"f", {y}, {}, {y}, Store::make(y, {Expr(0)}, Call::make_extern(kFloat32, symbol, {})), {}}}},
        Target::host());
  };
  const ObjectCode system = calls("system");
  try {
    JitModule::load(std::span(&system, 1));
    FAIL() << "functions of the process must not be visible";
  } catch (const UserError& error) {
    EXPECT_EQ(error.id(), "undefined-symbol");
    EXPECT_NE(error.message().find("system"), std::string::npos);
  }
  static float (*answer)() = [] { return 42.0f; };
  const JitModule module = JitModule::load(std::span(&system, 1), {{"system", reinterpret_cast<void*>(answer)}});
  alignas(64) float out = 0;
  EXPECT_EQ(module.function<int32_t(const tensmith_context*, float*)>("f")(nullptr, &out), 0);
  EXPECT_EQ(out, 42);
  EXPECT_EQ(module.find("g"), nullptr);
  const ObjectCode foreign =
      compile({{LoopFunction{"f", {y}, {}, {y}, Store::make(y, {Expr(0)}, make_const(kFloat32, 1)), {}}}},
              Target::parse("aarch64").value());
  EXPECT_THROW(JitModule::load(std::span(&foreign, 1)), TargetError);
  ObjectCode broken = system;
  broken.bytes.resize(100);
  EXPECT_THROW(JitModule::load(std::span(&broken, 1)), UserError);
}

}  // namespace
}  // namespace tensmith
