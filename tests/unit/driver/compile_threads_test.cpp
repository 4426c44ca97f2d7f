/// Compilation where the system gives fewer threads than asked for. A program of its own, because it replaces
/// pthread_create.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "apps/driver/compile.h"
#include "graph/op_def.h"
#include "runtime/base/config.h"

namespace {
std::atomic<int> g_threads_left{1 << 20};
std::atomic<int> g_refused{0};
}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* data) {
  if (g_threads_left.fetch_sub(1) <= 0) {
    ++g_refused;
    return EAGAIN;
  }
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, run, data);
}

namespace tensmith {
namespace {

/// Several kernels that are no copies of each other.
graph::Graph many_kernels() {
  graph::Graph g;
  graph::GraphEditor edit(g);
  std::vector<graph::Value> outputs;
  std::vector<std::string> names;
  for (int64_t k = 0; k < 5; ++k) {
    const graph::Value x = edit.add_input("x" + std::to_string(k), graph::static_type(kFloat32, {4, 8 + k}));
    outputs.push_back({edit.add("Softmax", {x}), 0});
    names.push_back("y" + std::to_string(k));
  }
  edit.set_outputs(outputs, names);
  return g;
}

TEST(CompileThreads, FewerThanWantedDoTheWork) {
  std::vector<std::vector<uint8_t>> expected;
  for (int left : {1 << 20, 2, 1, 0}) {
    graph::Graph g = many_kernels();
    CompileOptions options;
    options.compile_threads = 5;
    g_refused = 0;
    g_threads_left = left;
    const CompiledProgram program = compile_graph(g, options);
    g_threads_left = 1 << 20;
    EXPECT_EQ(g_refused > 0, left < 4) << left;
    std::vector<std::vector<uint8_t>> objects;
    for (const ObjectCode& object : program.objects) objects.push_back(object.bytes);
    EXPECT_GE(objects.size(), 6u);
    if (expected.empty()) expected = objects;
    else EXPECT_EQ(objects, expected) << left;
  }
}

TEST(CompileThreads, HugeNumbersAreNoMoreThanTheKernels) {
  Config changed = *config();
  const Config before = changed;
  changed.compile_threads = int64_t{1} << 32;  // 0 as an int
  set_config(changed);
  graph::Graph g = many_kernels();
  EXPECT_GE(compile_graph(g, {}).objects.size(), 6u);
  set_config(before);
}

}  // namespace
}  // namespace tensmith
