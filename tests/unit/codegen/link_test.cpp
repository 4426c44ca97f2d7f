// Shared libraries, archives and combined objects made in process: loaded, called, and looked at from outside.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "codegen/data_object.h"
#include "codegen/link.h"
#include "runtime/base/files.h"
#include "tests/unit/codegen/micro_kernel.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

/// y[i] = expf(x[i]) * table[i] for n elements; the table is a data object. Another function is not for the outside.
LoopProgram sample_program() {
  Buffer x = make_buffer("x", kFloat32, {Expr(8)}), y = make_buffer("y", kFloat32, {Expr(8)}),
         t = make_buffer("t", kFloat32, {Expr(8)});
  Var i("i"), j("j");
  LoopFunction scale{
      "sample_scale",
      {y, t},
      {},
      {y},
      For::make(i, Expr(0), Expr(8), ForKind::kParallel, Store::make(y, {i}, load(y, {i}) * load(t, {i}))),
      {}};
  Expr exponential = Call::make_extern(kFloat32, "expf", {load(x, {j})});
  auto address = [](const Buffer& b) { return Call::make(kHandle, Intrinsic::kAddressOf, {load(b, {Expr(0)})}); };
  Stmt body = Block::make({For::make(j, Expr(0), Expr(8), ForKind::kSerial, Store::make(y, {j}, exponential)),
                           Evaluate::make(Call::make_extern(kInt32, "sample_scale", {address(y), address(t)}))});
  return {{scale, LoopFunction{"sample_run", {x, y, t}, {}, {y}, body, {}}}};
}

std::vector<uint8_t> table_bytes() {
  std::vector<float> table(8);
  std::iota(table.begin(), table.end(), 1.0f);
  const auto* first = reinterpret_cast<const uint8_t*>(table.data());
  return {first, first + table.size() * sizeof(float)};
}

std::vector<ObjectCode> sample_objects(const Target& target) {
  return {compile(sample_program(), target), make_data_object("sample_table", table_bytes(), 64, target)};
}

const LinkOptions kSampleOptions = {"libsample.so", {"sample_run", "sample_table"}};

std::string read(const std::string& path) { return read_file(path).value(); }

/// Output of a command, or nullopt when it fails.
std::optional<std::string> output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string text;
  char part[4096];
  while (size_t n = fread(part, 1, sizeof part, pipe)) text.append(part, n);
  return pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

bool have(const char* program) { return output_of(std::string("command -v ") + program).has_value(); }

using SampleRun = int32_t(const tensmith_context*, const float*, float*, const float*);

void check_sample(SampleRun* run, const float* table) {
  ASSERT_NE(run, nullptr);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(table) % 64, 0u);
  alignas(64) float x[8] = {0, 1, -1, 2, 0.5, -3, 4, 0}, y[8] = {};
  ASSERT_EQ(run(nullptr, x, y, table), 0);
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(y[i], std::exp(x[i]) * (i + 1.0f));
}

TEST(Link, SharedLibraryLoadsAndHidesTheRest) {
  TempDir folder;
  const std::string path = folder.file("libsample.so");
  link_shared_library(sample_objects(Target::host()), Target::host(), kSampleOptions, path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  check_sample(reinterpret_cast<SampleRun*>(dlsym(library, "sample_run")),
               static_cast<const float*>(dlsym(library, "sample_table")));
  EXPECT_EQ(dlsym(library, "sample_scale"), nullptr);
  dlclose(library);
  // What the dynamic linker is told, as binutils see it.
  if (!have("readelf")) GTEST_SKIP() << "no readelf";
  const std::string dynamic = output_of("readelf -dW " + path).value();
  EXPECT_NE(dynamic.find("[libm.so.6]"), std::string::npos) << dynamic;
  EXPECT_EQ(dynamic.find("[libc.so.6]"), std::string::npos) << "nothing of libc is used";
  EXPECT_NE(dynamic.find("[libsample.so]"), std::string::npos);
  EXPECT_NE(dynamic.find("BIND_NOW"), std::string::npos);
  EXPECT_EQ(dynamic.find("TEXTREL"), std::string::npos);
  const std::string symbols = output_of("readelf --dyn-syms -W " + path).value();
  EXPECT_NE(symbols.find("expf@GLIBC_2.2.5"), std::string::npos) << symbols;
  EXPECT_EQ(symbols.find("sample_scale"), std::string::npos) << symbols;
  const std::string segments = output_of("readelf -lnW " + path).value();
  EXPECT_NE(segments.find("GNU_RELRO"), std::string::npos);
  EXPECT_NE(segments.find("NT_GNU_BUILD_ID"), std::string::npos);
}

TEST(Link, SameInputGivesSameBytes) {
  TempDir folder;
  std::string first;
  for (int n = 0; n < 3; ++n) {
    const std::string path = folder.file("lib" + std::to_string(n) + ".so");
    link_shared_library(sample_objects(Target::host()), Target::host(), kSampleOptions, path);
    if (n == 0) first = read(path);
    EXPECT_EQ(read(path), first);
  }
  EXPECT_EQ(link_object(sample_objects(Target::host()), Target::host(), kSampleOptions).bytes,
            link_object(sample_objects(Target::host()), Target::host(), kSampleOptions).bytes);
}

TEST(Link, ErrorsNameTheSymbols) {
  TempDir folder;
  auto error_of = [&](const std::vector<ObjectCode>& objects, const LinkOptions& options, const std::string& path) {
    try {
      link_shared_library(objects, Target::host(), options, path);
    } catch (const Error& error) {
      return error.id() + ": " + error.message();
    }
    return std::string("none");
  };
  Buffer y = make_buffer("y", kFloat32, {Expr(1)});
  const Stmt body = Store::make(y, {Expr(0)}, Call::make_extern(kFloat32, "not_of_libc", {}));
  const std::vector<ObjectCode> objects = {compile({{LoopFunction{"f", {y}, {}, {y}, body, {}}}}, Target::host())};
  std::string error = error_of(objects, {"libf.so", {"f"}}, folder.file("libf.so"));
  EXPECT_EQ(error.find("undefined-symbol"), 0u) << error;
  EXPECT_NE(error.find("not_of_libc"), std::string::npos) << error;
  error = error_of(sample_objects(Target::host()), {"libf.so", {"sample_run", "nowhere"}}, folder.file("libf.so"));
  EXPECT_EQ(error.find("undefined-export"), 0u) << error;
  EXPECT_NE(error.find("nowhere"), std::string::npos) << error;
  error = error_of(sample_objects(Target::host()), kSampleOptions, folder.file("no/such/folder/libf.so"));
  EXPECT_EQ(error.find("link-failed"), 0u) << error;
  // After a failure the linker still works.
  EXPECT_EQ(error_of(sample_objects(Target::host()), kSampleOptions, folder.file("libf.so")), "none");
  ObjectCode garbage;
  garbage.bytes.assign(100, 7);
  EXPECT_EQ(error_of({garbage}, {}, folder.file("libg.so")).find("link-failed"), 0u);
}

constexpr const char* kMain = R"(
#include <stdio.h>
#include "runtime/context.h"
extern const float sample_table[8];
int32_t sample_run(const tensmith_context*, const float*, float*, const float*);
int sample_scale(void) { return 3; } /* no clash with the hidden one */
int main(void) {
  float x[8] __attribute__((aligned(64))) = {0, 1, 0, 0, 0, 0, 0, 2}, y[8] __attribute__((aligned(64)));
  int i;
  if (sample_run(0, x, y, sample_table)) return 1;
  for (i = 0; i < 8; ++i) printf("%.3f ", y[i]);
  printf("%d\n", sample_scale());
  return 0;
}
)";

TEST(Link, ArchiveLinksIntoACProgram) {
  if (!have("gcc")) GTEST_SKIP() << "no gcc";
  TempDir folder;
  const ObjectCode combined = link_object(sample_objects(Target::host()), Target::host(), kSampleOptions);
  const std::vector<uint8_t> archive = make_archive({{"sample.o", combined}});
  ASSERT_TRUE(
      write_file(folder.file("libsample.a"), {reinterpret_cast<const char*>(archive.data()), archive.size()}).ok());
  ASSERT_TRUE(write_file(folder.file("main.c"), kMain).ok());
  const std::string program = folder.file("main");
  const std::optional<std::string> built = output_of("gcc -std=c89 -I" TS_SOURCE_DIR " -o " + program + " " +
                                                     folder.file("main.c") + " " + folder.file("libsample.a") + " -lm");
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(*built, "") << "warnings of the linker";
  EXPECT_EQ(output_of(program), "1.000 5.437 3.000 4.000 5.000 6.000 7.000 59.112 3\n");
}

TEST(Link, ObjectsOfAProgramAreLoadedTogether) {
  const JitModule module = JitModule::load(sample_objects(Target::host()));
  check_sample(module.function<SampleRun>("sample_run"), static_cast<const float*>(module.find("sample_table")));
}

TEST(DataObject, LargeContentIsQuickAndUnchanged) {
  std::vector<uint8_t> content(32 << 20);
  for (size_t i = 0; i < content.size(); i += 4093) content[i] = static_cast<uint8_t>(i);
  const ObjectCode object = make_data_object("weights", content, 4096, Target::host());
  const JitModule module = JitModule::load(std::span(&object, 1));
  const auto* loaded = static_cast<const uint8_t*>(module.find("weights"));
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded) % 4096, 0u);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), loaded));
}

TEST(DataObject, AFileHoldsTheSameAsMemory) {
  const std::vector<uint8_t> content = table_bytes();
  const TempDir folder;
  const auto pieces = [&](const std::function<void(std::span<const uint8_t>)>& take) {
    take(std::span(content).first(3));
    take(std::span(content).subspan(3));
  };
  const auto size = static_cast<int64_t>(content.size());
  for (const int64_t alignment : {int64_t{64}, int64_t{4096}}) {
    const ObjectCode object = make_data_object("table", content, alignment, Target::host());
    ASSERT_TRUE(write_data_object(folder.file("table.o"), "table", size, alignment, Target::host(), pieces).ok());
    const std::string bytes = *read_file(folder.file("table.o"));
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), object.bytes.begin(), object.bytes.end(),
                           [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
  }
  EXPECT_EQ(write_data_object(folder.file("none/table.o"), "table", size, 64, Target::host(), pieces).failure().id,
            "cannot-write");
}

TEST(Link, TakesObjectsFromFiles) {
  const TempDir folder;
  std::vector<ObjectCode> objects = sample_objects(Target::host());
  const ObjectCode table = objects.back();
  objects.pop_back();
  ASSERT_TRUE(
      write_file(folder.file("table.o"), {reinterpret_cast<const char*>(table.bytes.data()), table.bytes.size()}).ok());
  LinkOptions options;
  options.exported = {"sample_run", "sample_table"};
  options.object_files = {folder.file("table.o")};
  link_shared_library(objects, Target::host(), options, folder.file("libsample.so"));
  void* library = dlopen(folder.file("libsample.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  check_sample(reinterpret_cast<SampleRun*>(dlsym(library, "sample_run")),
               static_cast<const float*>(dlsym(library, "sample_table")));
  dlclose(library);
  options.object_files = {folder.file("no.o")};
  EXPECT_THROW(link_shared_library(objects, Target::host(), options, folder.file("libsample.so")), UserError);
}

/// Runs a C program together with code for AArch64 under qemu; nullopt when the tools are missing.
std::optional<std::string> run_aarch64(const std::vector<ObjectCode>& objects, const std::string& source,
                                       const TempDir& folder) {
  std::string files;
  for (const ObjectCode& object : objects) {
    const std::string path = folder.file("a" + std::to_string(files.size()) + ".o");
    if (!write_file(path, {reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()}).ok())
      return std::nullopt;
    files += " " + path;
  }
  if (!write_file(folder.file("main.c"), source).ok()) return std::nullopt;
  const std::string program = folder.file("main");
  const std::optional<std::string> built = output_of("aarch64-linux-gnu-gcc -static -I" TS_SOURCE_DIR " -o " + program +
                                                     " " + folder.file("main.c") + files + " -lm");
  if (!built) {
    ADD_FAILURE() << "aarch64-linux-gnu-gcc failed";
    return std::nullopt;
  }
  return output_of("qemu-aarch64 " + program);
}

TEST(AArch64, CodeRunsUnderQemu) {
  if (!have("aarch64-linux-gnu-gcc") || !have("qemu-aarch64")) GTEST_SKIP() << "no AArch64 compiler or qemu";
  TempDir folder;
  const Target target = Target::parse("aarch64").value();
  EXPECT_EQ(run_aarch64({link_object(sample_objects(target), target, kSampleOptions)}, kMain, folder),
            "1.000 5.437 3.000 4.000 5.000 6.000 7.000 59.112 3\n");
}

TEST(AArch64, RegisterTileAndDotProductRunUnderQemu) {
  if (!have("aarch64-linux-gnu-gcc") || !have("qemu-aarch64")) GTEST_SKIP() << "no AArch64 compiler or qemu";
  for (const char* name : {"aarch64", "neoverse-n1", "neoverse-n2"}) {
    const Target target = Target::parse(name).value();
    Buffer a = make_buffer("a", kUInt8, {Expr(16)}), b = make_buffer("b", kInt8, {Expr(16)}),
           c = make_buffer("c", kInt32, {Expr(4)}), h = make_buffer("h", kFloat16, {Expr(8)});
    Expr four = Ramp::make(Expr(0), Expr(1), 16), lanes = Ramp::make(Expr(0), Expr(1), 4),
         eight = Ramp::make(Expr(0), Expr(1), 8);
    Stmt dot = Store::make(c, {lanes},
                           Call::make(kInt32.with_lanes(4), Intrinsic::kDotAccumulate,
                                      {Load::make(c, {lanes}), Load::make(a, {four}), Load::make(b, {four})}));
    Stmt half = Store::make(
        h, {eight},
        max(Load::make(h, {eight}) * make_const(kFloat16.with_lanes(8), 0.5), make_zero(kFloat16.with_lanes(8))));
    const MicroKernel tile{8, 3, 4, 64};
    const std::vector<ObjectCode> objects = {compile(
        {{make_micro_kernel(tile), LoopFunction{"dot", {a, b, c, h}, {}, {c, h}, Block::make({dot, half}), {}}}},
        target)};
    TempDir folder;
    const std::optional<std::string> got = run_aarch64(objects, R"(
#include <stdio.h>
#include "runtime/context.h"
int32_t tile_8x12(const tensmith_context*, const float*, const float*, float*);
int32_t dot(const tensmith_context*, const uint8_t*, const int8_t*, int32_t*, uint16_t*);
static float a[64 * 8] __attribute__((aligned(64))), b[64 * 12] __attribute__((aligned(64))), c[96] __attribute__((aligned(64)));
static uint8_t u[16] __attribute__((aligned(64))); static int8_t s[16] __attribute__((aligned(64)));
static int32_t d[4] __attribute__((aligned(64)));
static uint16_t h[8] __attribute__((aligned(64))) = {0x3c00, 0xbc00, 0x0001, 0x7e00, 0x7c00, 0xfc00, 0x0000, 0x4500};
int main(void) {
  int i, j, k, wrong = 0;
  for (i = 0; i < 64 * 8; ++i) a[i] = i % 7 - 3;
  for (i = 0; i < 64 * 12; ++i) b[i] = i % 5 - 2;
  for (i = 0; i < 16; ++i) { u[i] = 255 - i; s[i] = i * 16 - 128; }
  for (i = 0; i < 4; ++i) d[i] = i;
  if (tile_8x12(0, a, b, c) || dot(0, u, s, d, h)) return 1;
  for (i = 0; i < 8; ++i) for (j = 0; j < 12; ++j) {
    float sum = 0;
    for (k = 0; k < 64; ++k) sum += a[k * 8 + i] * b[k * 12 + j];
    wrong += c[i * 12 + j] != sum;
  }
  for (i = 0; i < 4; ++i) { int sum = i; for (k = 0; k < 4; ++k) sum += u[4 * i + k] * s[4 * i + k]; wrong += d[i] != sum; }
  printf("%d", wrong);
  for (i = 0; i < 8; ++i) printf(" %04x", h[i]);
  return 0;
}
)",
                                                       folder);
    EXPECT_EQ(got, "0 3800 0000 0000 7e00 7c00 0000 0000 4100") << name;
  }
}

TEST(AArch64, SharedLibraryLinksWithoutACrossCompiler) {
  TempDir folder;
  const Target target = Target::parse("aarch64").value();
  const std::string path = folder.file("libsample.so");
  link_shared_library(sample_objects(target), target, kSampleOptions, path);
  const std::string bytes = read(path);
  EXPECT_EQ(static_cast<uint8_t>(bytes[18]), 183);  // EM_AARCH64
  EXPECT_NE(bytes.find("GLIBC_2.17"), std::string::npos);
}

}  // namespace
}  // namespace tensmith
