// Instances through the C code that exported libraries carry: binding of dimensions, every refusal, threads, memory,
// observation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/base/files.h"
#include "runtime/export/instance.h"
#include "runtime/export/weights_writer.h"
#include "runtime/module.h"
#include "runtime/thread_pool.h"
#include "tests/support/malloc_count.h"
#include "tests/unit/runtime/scale_model.h"

namespace tensmith {
namespace {

using test::scale_description;
using test::scale_symbol;

Module scale_module(const ModelDescription& d = scale_description()) {
  Result<Module> module = Module::from_memory(d, scale_symbol, nullptr);
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.failure().message);
  return *module;
}

HostTensor ramp(int64_t rows) {
  HostTensor x({rows, 4}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i));
  return x;
}

void expect_right(const HostTensor& x, const std::vector<HostTensor>& out) {
  ASSERT_EQ(out.size(), 2u);
  ASSERT_EQ(out[0].shape(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[0].get(i), x.get(i) * 3 + 10 * (i % 4 + 1));
  ASSERT_EQ(out[1].shape(), std::vector<int64_t>{2 * x.shape()[0]});
  for (int64_t i = 0; i < out[1].size(); ++i) ASSERT_EQ(out[1].get_int(i), 2 * i);
}

std::vector<HostTensor> one(HostTensor t) {
  std::vector<HostTensor> list;
  list.push_back(std::move(t));
  return list;
}

TEST(Instance, RunsForEveryShapeAndThreadCount) {
  const Module module = scale_module();
  for (int threads : {1, 2, 5}) {
    InstanceOptions options;
    options.threads = threads;
    Instance instance = module.create(options).value();
    EXPECT_EQ(instance.threads(), threads);
    for (int64_t n : {1, 2, 7, 100, 3}) {
      std::vector<HostTensor> in = one(ramp(n));
      Result<std::vector<HostTensor>> out = instance.run(in);
      ASSERT_TRUE(out.ok()) << out.failure().message;
      expect_right(in[0], *out);
    }
  }
}

TEST(Instance, RefusalsSayWhereAndWhat) {
  Instance instance = scale_module().create().value();
  auto refuse = [&](HostTensor x, const char* id, const std::string& text) {
    std::vector<HostTensor> in = one(std::move(x));
    Result<std::vector<HostTensor>> out = instance.run(in);
    ASSERT_FALSE(out.ok()) << text;
    EXPECT_EQ(out.failure().id, id);
    EXPECT_EQ(out.failure().message, text);
  };
  refuse(HostTensor({2, 4}, kFloat64), "bad-tensor", "scale: input x: expected dtype f32, got f64");
  refuse(HostTensor({2, 4}, kBool), "bad-tensor", "scale: input x: expected dtype f32, got bool");
  refuse(HostTensor({2, 3}, kFloat32), "bad-tensor", "scale: input x: expected shape [n,4], got [2,3]");
  refuse(HostTensor({8}, kFloat32), "bad-tensor", "scale: input x: expected shape [n,4], got [8]");
  refuse(HostTensor({}, kFloat32), "bad-tensor", "scale: input x: expected shape [n,4], got []");
  refuse(HostTensor({101, 4}, kFloat32), "bad-tensor", "scale: dimension n: expected 1 to 100, got 101");
  refuse(HostTensor({0, 4}, kFloat32), "bad-tensor", "scale: dimension n: expected 1 to 100, got 0");
  refuse(HostTensor({99, 4}, kFloat32), "bad-tensor", "scale: the input dimensions do not fit together");
  HostTensor nan = ramp(3);
  nan.set(5, std::nan(""));
  refuse(std::move(nan), "run-failed", "scale: x holds a NaN");
  std::vector<HostTensor> none;
  EXPECT_EQ(instance.run(none).failure().message, "scale: expected 1 inputs, got 0");
  // And it still works.
  std::vector<HostTensor> in = one(ramp(2));
  expect_right(in[0], instance.run(in).value());
}

/// The C interface directly, with tensors that are wrong in ways that HostTensor cannot be.
class RawInstance : public ::testing::Test {
 public:
  void SetUp() override {
    Result<LoadedModel> loaded = LoadedModel::load(scale_description(), scale_symbol);
    ASSERT_TRUE(loaded.ok());
    loaded_.emplace(std::move(loaded).value());
    ASSERT_EQ(tensmith_instance_create(loaded_->model(), nullptr, &instance_), TENSMITH_OK);
    x_ = make(data_, shape_, 2, TENSMITH_CODE_FLOAT, 32);
    outputs_[0] = make(y_, shape_, 2, TENSMITH_CODE_FLOAT, 32);
    outputs_[1] = make(twice_, twice_shape_, 1, TENSMITH_CODE_INT, 64);
  }
  void TearDown() override { tensmith_instance_destroy(instance_); }

  static tensmith_tensor make(void* data, int64_t* shape, int32_t ndim, uint8_t code, uint8_t bits) {
    tensmith_tensor t = {};
    t.data = data;
    t.device_type = TENSMITH_DEVICE_CPU;
    t.ndim = ndim;
    t.dtype_code = code;
    t.dtype_bits = bits;
    t.dtype_lanes = 1;
    t.shape = shape;
    return t;
  }
  int32_t run() { return tensmith_instance_run_tensors(instance_, &x_, outputs_); }
  std::string error() { return tensmith_instance_last_error(instance_); }

  std::optional<LoadedModel> loaded_;
  tensmith_instance* instance_ = nullptr;
  float data_[24] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y_[8] = {};
  int64_t twice_[4] = {};
  int64_t shape_[2] = {2, 4}, twice_shape_[1] = {4};
  tensmith_tensor x_, outputs_[2];
};

TEST_F(RawInstance, Works) {
  EXPECT_EQ(run(), TENSMITH_OK);
  EXPECT_EQ(y_[7], 8 * 3 + 40);
  EXPECT_EQ(error(), "");
  x_.byte_offset = 4;
  EXPECT_EQ(run(), TENSMITH_OK);
  EXPECT_EQ(y_[0], 2 * 3 + 10);
  const void* in[] = {data_};
  void* out[] = {y_, twice_};
  const int64_t n = 2;
  EXPECT_EQ(tensmith_instance_run_buffers(instance_, in, out, &n), TENSMITH_OK);
  EXPECT_EQ(y_[0], 1 * 3 + 10);
}

TEST_F(RawInstance, BadTensors) {
  int64_t strides[] = {8, 1}, column[] = {1, 2}, dense[] = {4, 1};
  x_.strides = strides;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  EXPECT_EQ(error(), "scale: input x: expected dense row-major data, got other strides; copy the tensor first");
  x_.strides = column;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  x_.strides = dense;
  EXPECT_EQ(run(), TENSMITH_OK);
  x_.strides = nullptr;
  x_.device_type = TENSMITH_DEVICE_CUDA;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  x_.device_type = TENSMITH_DEVICE_CPU;
  x_.data = nullptr;
  EXPECT_EQ(run(), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(error(), "scale: input x: expected data, got a null pointer");
  x_.data = reinterpret_cast<char*>(data_) + 1;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  EXPECT_EQ(error(), "scale: input x: expected data aligned to 4 bytes");
  x_.data = data_;
  x_.ndim = -3;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  x_.ndim = 1 << 30;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  EXPECT_EQ(error(), "scale: input x: expected shape [n,4], got 1073741824 dimensions");
  x_.ndim = 2;
  x_.shape = nullptr;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  EXPECT_EQ(error(), "scale: input x: expected shape [n,4], got no shape");
  x_.shape = shape_;
  twice_shape_[0] = 5;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  EXPECT_EQ(error(), "scale: output twice: expected shape [4], got [5]");
  twice_shape_[0] = 4;
  outputs_[0].data = data_ + 4;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  EXPECT_EQ(error(), "scale: output y: its memory overlaps that of input x");
  outputs_[0].data = data_ + 8;
  EXPECT_EQ(run(), TENSMITH_OK);
  outputs_[0].dtype_code = 99;
  EXPECT_EQ(run(), TENSMITH_BAD_TENSOR);
  int64_t shape[2];
  EXPECT_EQ(tensmith_instance_output_shape(instance_, &x_, 2, shape), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(tensmith_instance_output_shape(instance_, &x_, 0, shape), TENSMITH_OK);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(tensmith_instance_run_tensors(instance_, nullptr, outputs_), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(tensmith_instance_run_tensors(nullptr, &x_, outputs_), TENSMITH_BAD_ARGUMENT);
}

TEST_F(RawInstance, Workspace) {
  const int64_t n = 3;
  EXPECT_EQ(tensmith_instance_workspace_size(instance_, &n), 64);
  EXPECT_EQ(tensmith_instance_workspace_size(instance_, nullptr), TENSMITH_BAD_ARGUMENT);
  alignas(64) char memory[64];
  std::memset(memory, 0x55, sizeof memory);
  EXPECT_EQ(tensmith_instance_set_workspace(instance_, memory + 1, 63), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(tensmith_instance_set_workspace(instance_, memory, 32), TENSMITH_OK);
  EXPECT_EQ(run(), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(error(), "scale: workspace: expected at least 64 bytes, got 32");
  EXPECT_EQ(tensmith_instance_set_workspace(instance_, memory, 64), TENSMITH_OK);
  EXPECT_EQ(run(), TENSMITH_OK);
  EXPECT_NE(memory[0], 0x55) << "the host's memory is used";
  EXPECT_EQ(tensmith_instance_set_workspace(instance_, nullptr, 0), TENSMITH_OK);
  EXPECT_EQ(run(), TENSMITH_OK);
}

TEST_F(RawInstance, HostThreads) {
  struct Host {
    int calls = 0;
    static int32_t loop(void* pool, tensmith_loop_body body, void* closure, int64_t extent) {
      ++*static_cast<int*>(pool);
      for (int64_t i = extent; i-- > 0;)
        if (int32_t code = body(closure, i, i + 1, static_cast<int32_t>(i % 3))) return code;
      return 0;
    }
    static int32_t loop_without_pool(void* pool, tensmith_loop_body body, void* closure, int64_t extent) {
      return pool ? 77 : body(closure, 0, extent, 1);
    }
  } host;
  EXPECT_EQ(tensmith_instance_set_parallel_for(instance_, Host::loop, &host.calls, 0), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(tensmith_instance_set_parallel_for(instance_, Host::loop, &host.calls, 3), TENSMITH_OK);
  EXPECT_EQ(tensmith_instance_threads(instance_), 3);
  EXPECT_EQ(run(), TENSMITH_OK);
  EXPECT_EQ(host.calls, 1);
  EXPECT_EQ(y_[7], 8 * 3 + 40);
  EXPECT_EQ(tensmith_instance_set_parallel_for(instance_, Host::loop_without_pool, nullptr, 2), TENSMITH_OK);
  EXPECT_EQ(run(), TENSMITH_OK);
  EXPECT_EQ(tensmith_instance_set_parallel_for(instance_, nullptr, nullptr, 0), TENSMITH_OK);
  EXPECT_EQ(tensmith_instance_threads(instance_), 1);
  EXPECT_EQ(run(), TENSMITH_OK);
}

TEST_F(RawInstance, SecondCallerIsTurnedAway) {
  struct Inside {
    RawInstance* test;
    int32_t code = 0, threads_code = 0;
    static void hook(void* user, int32_t, int32_t) {
      Inside* self = static_cast<Inside*>(user);
      self->code = self->test->run();
      self->threads_code = tensmith_instance_set_parallel_for(self->test->instance_, nullptr, nullptr, 0);
    }
  } inside{this};
  ASSERT_EQ(tensmith_instance_set_on_kernel(instance_, Inside::hook, &inside), TENSMITH_OK);
  EXPECT_EQ(run(), TENSMITH_OK);
  EXPECT_EQ(inside.code, TENSMITH_BUSY);
  EXPECT_EQ(inside.threads_code, TENSMITH_BUSY);
}

TEST(InstanceCreate, OptionsAndAllocator) {
  LoadedModel model = LoadedModel::load(scale_description(), scale_symbol).value();
  tensmith_instance* instance = nullptr;
  char error[200] = "old";
  tensmith_options options = {};
  options.size = sizeof options;
  options.error = error;
  options.error_bytes = sizeof error;
  options.num_threads = -1;
  EXPECT_EQ(tensmith_instance_create(model.model(), &options, &instance), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(instance, nullptr);
  EXPECT_NE(std::string(error).find("num_threads"), std::string::npos);
  options.num_threads = 2;
  options.target = "aarch64";
  EXPECT_EQ(tensmith_instance_create(model.model(), &options, &instance), TENSMITH_MISSING_CPU_FEATURE);
  EXPECT_STREQ(error, "scale: expected one of the targets x86-64; got aarch64");
  options.error_bytes = 8;  // cut off, still ended
  EXPECT_EQ(tensmith_instance_create(model.model(), &options, &instance), TENSMITH_MISSING_CPU_FEATURE);
  EXPECT_STREQ(error, "scale: ");
  options.target = "x86";
  struct Counter {
    int64_t live = 0, calls = 0;
    static void* allocate(void* user, int64_t bytes, int64_t alignment) {
      auto* c = static_cast<Counter*>(user);
      c->live += bytes;
      ++c->calls;
      void* p = std::aligned_alloc(static_cast<size_t>(alignment),
                                   static_cast<size_t>((bytes + alignment - 1) / alignment * alignment));
      std::memset(p, 0x7f, static_cast<size_t>(bytes));  // the host owes no zeros
      return p;
    }
    static void release(void* user, void* memory, int64_t bytes) {
      static_cast<Counter*>(user)->live -= bytes;
      std::free(memory);
    }
    static void* refuse(void*, int64_t, int64_t) { return nullptr; }
  } counter;
  options.allocate = Counter::allocate;
  options.allocator_user = &counter;
  EXPECT_EQ(tensmith_instance_create(model.model(), &options, &instance), TENSMITH_BAD_ARGUMENT)
      << "release is missing";
  options.release = Counter::release;
  ASSERT_EQ(tensmith_instance_create(model.model(), &options, &instance), TENSMITH_OK);
  EXPECT_STREQ(error, "");
  float x[4] = {1, 2, 3, 4}, y[4];
  int64_t twice[2];
  const void* in[] = {x};
  void* out[] = {y, twice};
  const int64_t n = 1;
  EXPECT_EQ(tensmith_instance_run_buffers(instance, in, out, &n), TENSMITH_OK);
  EXPECT_EQ(y[0], 13);
  EXPECT_EQ(counter.calls, 2);
  tensmith_instance_destroy(instance);
  EXPECT_EQ(counter.live, 0);
  options.allocate = Counter::refuse;
  EXPECT_EQ(tensmith_instance_create(model.model(), &options, &instance), TENSMITH_OUT_OF_MEMORY);
  // An older host whose structure ends after the flags.
  tensmith_options old = {};
  old.size = 8;
  old.num_threads = -5;  // beyond what `size` says: not read
  ASSERT_EQ(tensmith_instance_create(model.model(), &old, &instance), TENSMITH_OK);
  tensmith_instance_destroy(instance);
}

TEST(InstanceCreate, MissingFeatureIsNamedAndWeakerVariantTaken) {
  ModelDescription d = scale_description();
  d.variants[0].target = "x86-64-v9";
  d.variants[0].requirements = {{"avx9000", TENSMITH_CPUID, 7, 0, 0, 31, 0xffffffffu}};
  Result<Instance> none = scale_module(d).create();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.failure().id, "missing-cpu-feature");
  EXPECT_EQ(none.failure().message,
            "scale: this CPU lacks the feature avx9000, which the code for target x86-64-v9 needs; compile for a "
            "target that this CPU offers");
  d.variants.push_back(scale_description().variants[0]);
  Instance weaker = scale_module(d).create().value();
  EXPECT_STREQ(weaker.variant().target, "x86-64");
  InstanceOptions options;
  options.target = "x86-64-v9";
  EXPECT_EQ(scale_module(d).create(options).failure().id, "missing-cpu-feature");
}

TEST(InstanceCreate, WeightsFile) {
  TempDir dir;
  const auto data = std::as_bytes(std::span(test::kScaleWeights));
  ModelDescription d = scale_description();
  d.variants[0].weights_symbol = "";
  d.variants[0].weights_file = "scale.weights";
  d.variants[0].weights_sha256 = write_weights_file(dir.file("good"), data).value();
  const Module module = scale_module(d);
  auto create = [&](const std::string& name, bool verify = false, bool copy = false) {
    InstanceOptions options;
    options.weights_path = dir.file(name);
    options.verify_weights = verify;
    options.copy_weights = copy;
    return module.create(options);
  };
  for (bool verify : {false, true})
    for (bool copy : {false, true}) {
      Instance instance = create("good", verify, copy).value();
      std::vector<HostTensor> in = one(ramp(5));
      expect_right(in[0], instance.run(in).value());
    }
  const std::string good = *read_file(dir.file("good"));
  auto damaged = [&](size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  const std::pair<std::string, const char*> rows[] = {
      {"", "is not a file of weights"},
      {"no weights", "is not a file of weights"},
      {damaged(0), "is not a file of weights"},
      {damaged(8), "has a format that this library does not know"},
      {damaged(12), "has a format that this library does not know"},
      {damaged(16), "belongs to another library"},
      {damaged(good.size() - 1), "belongs to another library"},
      {good.substr(0, good.size() - 1), "is cut off or too long"},
      {good + "x", "is cut off or too long"},
  };
  for (const auto& [bytes, text] : rows) {
    ASSERT_TRUE(write_file(dir.file("bad"), bytes).ok());
    Result<Instance> made = create("bad");
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_EQ(made.failure().id, "bad-weights");
    EXPECT_NE(made.failure().message.find(text), std::string::npos) << made.failure().message;
  }
  EXPECT_NE(create("none").failure().message.find("no such file"), std::string::npos);
  ASSERT_TRUE(write_file(dir.file("bad"), damaged(4096)).ok());
  EXPECT_TRUE(create("bad").ok()) << "content is only hashed when asked for";
  EXPECT_NE(create("bad", /*verify=*/true).failure().message.find("damaged"), std::string::npos);
}

TEST(Instance, NoAllocationInASteadyRun) {
  if (!test::counts_mallocs()) GTEST_SKIP() << "a sanitizer owns the allocator";
  InstanceOptions options;
  options.threads = 2;
  Instance instance = scale_module().create(options).value();
  std::unique_ptr<Profiler> profiler = instance.make_profiler();
  instance.set_profiler(profiler.get());
  std::vector<HostTensor> in = one(ramp(50)), out = instance.run(in).value();
  const int64_t before = test::malloc_count();
  for (int i = 0; i < 100; ++i)
    if (!instance.run_into(in, out).ok()) FAIL();
  EXPECT_EQ(test::malloc_count(), before);
  expect_right(in[0], out);
}

TEST(Instance, ManyInstancesInManyThreads) {
  const Module module = scale_module();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      InstanceOptions options;
      options.threads = 1 + t % 3;
      Instance instance = module.create(options).value();
      for (int i = 0; i < 50; ++i) {
        std::vector<HostTensor> in = one(ramp(1 + i));
        Result<std::vector<HostTensor>> out = instance.run(in);
        if (!out.ok()) ++wrong;
        else
          for (int64_t k = 0; k < in[0].size(); ++k) wrong += (*out)[0].get(k) != in[0].get(k) * 3 + 10 * (k % 4 + 1);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Profiler, TableTraceAndJson) {
  Instance instance = scale_module().create().value();
  std::unique_ptr<Profiler> profiler = instance.make_profiler();
  instance.set_profiler(profiler.get());
  std::vector<HostTensor> in = one(ramp(20)), out = instance.run(in).value();
  profiler->reset();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(instance.run_into(in, out).ok());
  const std::vector<Profiler::Row> rows = profiler->rows();
  ASSERT_EQ(rows.size(), 2u);
  double percent = 0;
  for (const Profiler::Row& row : rows) {
    EXPECT_EQ(row.calls, 3);
    EXPECT_LE(row.min_us * 3, row.total_us + 1e-9);
    EXPECT_EQ(row.gflops > 0, row.name == "scale_rows");
    percent += row.percent;
  }
  EXPECT_LE(percent, 100.0 + 1e-9);
  EXPECT_GE(rows[0].total_us, rows[1].total_us);
  EXPECT_NE(profiler->table().find("scale_rows"), std::string::npos);
  EXPECT_NE(profiler->table().find("outside of kernels"), std::string::npos);
  EXPECT_NE(profiler->table(1).find("... and 1 more"), std::string::npos);
  TimeLine trace;
  profiler->add_to(trace);
  Provenance from;
  from.schema = "tensmith.trace/1";
  const Json json = trace.chrome_json(from);
  ASSERT_EQ(json["traceEvents"].size(), 6u);
  double last = -1;
  for (const Json& event : json["traceEvents"]) {
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), last);
    last = event["ts"];
  }
  EXPECT_EQ(profiler->json(from)["kernels"].size(), 2u);
  instance.set_profiler(nullptr);
  ASSERT_TRUE(instance.run_into(in, out).ok());
  EXPECT_EQ(profiler->runs(), 3);
}

TEST(Timer, Summary) {
  const Summary s = summarize({4, 1, 3, 2, 5});
  EXPECT_EQ(s.runs, 5);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.mean, 3);
  EXPECT_EQ(s.max, 5);
  EXPECT_DOUBLE_EQ(s.p90, 4.6);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt(2.5));
  EXPECT_EQ(summarize({}).runs, 0);
  int runs = 0;
  MeasureOptions options;
  options.warmup = 2;
  options.min_runs = 4;
  options.min_seconds = 0;
  EXPECT_EQ(measure([&] { ++runs; }, options).size(), 4u);
  EXPECT_EQ(runs, 6);
}

}  // namespace
}  // namespace tensmith
