// Exported libraries put together as the exporter does (description, support object, generated code), then used from C,
// C89, by path and two at a time. The system's compiler stands in for generated code and for the host program.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/base/files.h"
#include "runtime/base/target.h"
#include "runtime/c_api.h"
#include "runtime/export/elf_rename.h"
#include "runtime/export/support_object.h"
#include "runtime/export/weights_writer.h"
#include "runtime/manifest.h"
#include "runtime/module.h"
#include "tests/unit/runtime/scale_model.h"

namespace tensmith {
namespace {

/// Output and exit status of a shell command.
struct Ran {
  int status;
  std::string text;
};
Ran shell(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return {-1, ""};
  std::array<char, 4096> buffer;
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), got);
  return {::pclose(pipe), text};
}

bool have(const char* program) { return shell(std::string("command -v ") + program).status == 0; }

#define NEED(program) \
  if (!have(program)) GTEST_SKIP() << program << " is not installed"

/// The test model's code in C, for a prefix.
std::string generated_code(const std::string& p) {
  return "#include <stdint.h>\n"
         "typedef int32_t (*body_t)(void*, int64_t, int64_t, int32_t);\n"
         "struct context { uint32_t size; int32_t num_threads; int32_t (*parallel_for)(void*, body_t, void*, int64_t); "
         "void* pool; };\n"
         "struct closure { const float* x; const float* w; float* y; };\n"
         "static int32_t rows(void* c, int64_t b, int64_t e, int32_t t) {\n"
         "  struct closure* k = c; (void)t;\n"
         "  for (int64_t i = 4 * b; i < 4 * e; ++i) k->y[i] = k->x[i] * k->w[0] + k->w[1 + i % 4];\n"
         "  return 0;\n}\n"
         "int32_t " +
         p +
         "_main(const struct context* ctx, void* const* b, const int64_t* dims) {\n"
         "  struct closure c = {b[0], b[3], b[1]};\n"
         "  for (int64_t i = 0; i < dims[1]; ++i) ((int64_t*)b[2])[i] = 2 * i;\n"
         "  if (c.x[0] < 0) return 1;\n"
         "  return ctx->num_threads > 1 && ctx->pool ? ctx->parallel_for(ctx->pool, rows, &c, dims[0]) : rows(&c, 0, "
         "dims[0], 0);\n}\n"
         "int32_t " +
         p + "_derive(const int64_t* s, int64_t* d) { d[0] = 2 * s[0]; return 0; }\n";
}

ModelDescription description_for(const std::string& p) {
  ModelDescription d = test::scale_description();
  d.name = p;
  d.derive_symbol = p + "_derive";
  d.messages = {"x begins with a negative value"};
  ModelDescription::Variant& v = d.variants[0];
  v.target = Target::host().cpu;
  v.requirements =
      required_cpu_features(Target::parse(Target::host().arch == "x86_64" ? "x86-64-v2" : "aarch64").value());
  v.run_symbol = p + "_main";
  v.arena_size_symbol = "";
  v.weights_symbol = p + "_weights";
  return d;
}

/// Writes the three objects of a library into a folder and returns their paths.
std::string write_objects(const TempDir& dir, const std::string& p, const ModelDescription& d, const std::string& arch,
                          const std::string& cc) {
  const bool embedded = !d.variants[0].weights_symbol.empty();
  auto data = std::as_bytes(std::span(test::kScaleWeights));
  EXPECT_TRUE(write_file(dir.file(p + "_model.o"), model_object(d, arch, p + "_model", embedded ? p + "_weights" : "",
                                                                embedded ? data : std::span<const std::byte>()))
                  .ok());
  Result<std::string> support = support_object_for(arch, p + "_");
  EXPECT_TRUE(support.ok());
  EXPECT_TRUE(write_file(dir.file(p + "_support.o"), *support).ok());
  EXPECT_TRUE(write_file(dir.file(p + "_code.c"), generated_code(p)).ok());
  const Ran ran =
      shell(cc + " -O1 -fPIC -fvisibility=hidden -c " + dir.file(p + "_code.c") + " -o " + dir.file(p + "_code.o"));
  EXPECT_EQ(ran.status, 0) << ran.text;
  return dir.file(p + "_model.o") + " " + dir.file(p + "_support.o") + " " + dir.file(p + "_code.o");
}

std::string link_library(const TempDir& dir, const std::string& p, const std::string& objects,
                         const std::string& cc = "cc") {
  std::string script = "{ global:";
  for (const std::string& name : exported_names(p + "_")) script += " " + name + ";";
  EXPECT_TRUE(write_file(dir.file(p + ".map"), script + " local: *; };").ok());
  const std::string library = dir.file("lib" + p + ".so");
  const Ran ran = shell(cc + " -shared -Wl,--fatal-warnings,-z,defs,-z,noexecstack,-z,relro,-z,now,--version-script=" +
                        dir.file(p + ".map") + " " + objects + " -o " + library);
  EXPECT_EQ(ran.status, 0) << ran.text;
  return library;
}

std::string make_library(const TempDir& dir, const std::string& p, const ModelDescription& d) {
  return link_library(dir, p, write_objects(dir, p, d, Target::host().arch, "cc"));
}

std::vector<HostTensor> ramp(int64_t rows) {
  std::vector<HostTensor> list;
  list.emplace_back(std::vector<int64_t>{rows, 4}, kFloat32);
  for (int64_t i = 0; i < list[0].size(); ++i) list[0].set(i, static_cast<double>(i));
  return list;
}

void expect_right(const HostTensor& x, const std::vector<HostTensor>& out) {
  ASSERT_EQ(out.size(), 2u);
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[0].get(i), x.get(i) * 3 + 10 * (i % 4 + 1));
}

/// A host program in C89 for libraries with these prefixes.
std::string host_program(const std::vector<std::string>& prefixes) {
  std::string text = abi_header_text();
  for (const std::string& p : prefixes) text += abi_prototypes(p + "_");
  text +=
      "#include <stdio.h>\n#include <string.h>\n"
      "static int try_one(const tensmith_api* api) {\n"
      "  float x[8] = {0, 1, 2, 3, 4, 5, 6, 7}, y[8]; int64_t twice[4], n = 2; int i;\n"
      "  const void* in[1]; void* out[2]; tensmith_options o; char error[200]; tensmith_instance* instance;\n"
      "  in[0] = x; out[0] = y; out[1] = twice; memset(&o, 0, sizeof o); o.size = sizeof o; o.num_threads = 2;\n"
      "  o.error = error; o.error_bytes = sizeof error;\n"
      "  if (api->create(&o, &instance) != TENSMITH_OK) { puts(error); return 1; }\n"
      "  for (i = 0; i < 100; ++i) if (api->run_buffers(instance, in, out, &n) != 0) { "
      "puts(api->last_error(instance)); return 2; }\n"
      "  for (i = 0; i < 8; ++i) if (y[i] != x[i] * 3 + 10 * (i % 4 + 1)) return 3;\n"
      "  x[0] = -1; if (api->run_buffers(instance, in, out, &n) != 1) return 4;\n"
      "  puts(api->last_error(instance)); api->destroy(instance); return 0; }\n"
      "int main(void) { int code = 0;\n";
  for (const std::string& p : prefixes)
    text += "  code |= try_one(" + p + "_get_api(TENSMITH_ABI_VERSION)); if (" + p + "_get_api(0)) code = 9;\n";
  return text + "  return code; }\n";
}

TEST(Export, LibraryLoadsAndRuns) {
  NEED("cc");
  TempDir dir;
  const std::string library = make_library(dir, "net", description_for("net"));
  Result<Module> module = Module::load(library);
  ASSERT_TRUE(module.ok()) << module.failure().message;
  EXPECT_STREQ(module->model().name, "net");
  for (int threads : {1, 2}) {
    InstanceOptions options;
    options.threads = threads;
    Instance instance = module->create(options).value();
    std::vector<HostTensor> in = ramp(37);
    Result<std::vector<HostTensor>> out = instance.run(in);
    ASSERT_TRUE(out.ok()) << out.failure().message;
    expect_right(in[0], *out);
    in[0].set(0, -1);
    EXPECT_EQ(instance.run(in).failure().message, "net: x begins with a negative value");
  }
}

TEST(Export, OnlyTheInterfaceIsVisibleAndOnlyTheCLibraryIsNeeded) {
  NEED("cc");
  NEED("nm");
  TempDir dir;
  const std::string library = make_library(dir, "net", description_for("net"));
  std::istringstream names(shell("nm -D --defined-only --format=posix " + library).text);
  std::vector<std::string> defined;
  for (std::string line; std::getline(names, line);) {
    const std::string name = line.substr(0, line.find(' '));
    defined.push_back(name.substr(0, name.find('@')));
  }
  std::sort(defined.begin(), defined.end());
  EXPECT_EQ(defined, exported_names("net_"));
  // Nothing beyond the C library; in particular no C++ runtime, no thread-local storage, no math.
  const std::set<std::string> known = {
      "__errno_location", "clock_gettime", "close", "getauxval", "lseek", "madvise", "memcpy", "memmove", "memset",
      "mmap", "munmap", "open", "pread", "pthread_attr_destroy", "pthread_attr_init", "pthread_attr_setstacksize",
      "pthread_create", "pthread_join", "pthread_sigmask", "read", "sched_yield", "strlen", "strncmp", "syscall",
      // the start files of the linker command used here
      "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__gmon_start__"};
  std::istringstream needed(shell("nm -u --format=posix " + library).text);
  for (std::string line; std::getline(needed, line);) {
    std::string name = line.substr(0, line.find(' '));
    EXPECT_TRUE(known.count(name.substr(0, name.find('@')))) << name;
  }
  EXPECT_EQ(shell("readelf -d " + library + " | grep -c TEXTREL").text, "0\n");
}

TEST(Export, HeaderIsC89AndTwoStaticLibrariesFitIntoOneProgram) {
  NEED("cc");
  TempDir dir;
  const std::string a = write_objects(dir, "alpha", description_for("alpha"), Target::host().arch, "cc");
  const std::string b = write_objects(dir, "beta", description_for("beta"), Target::host().arch, "cc");
  ASSERT_EQ(
      shell("ar rcs " + dir.file("libalpha.a") + " " + a + " && ar rcs " + dir.file("libbeta.a") + " " + b).status, 0);
  ASSERT_TRUE(write_file(dir.file("host.c"), host_program({"alpha", "beta"})).ok());
  const std::string strict = "cc -std=c89 -pedantic -Wall -Wextra -Werror ";
  Ran built =
      shell(strict + dir.file("host.c") + " -L" + dir.path() + " -lalpha -lbeta -lpthread -o " + dir.file("host"));
  ASSERT_EQ(built.status, 0) << built.text;
  Ran ran = shell(dir.file("host"));
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.text, "alpha: x begins with a negative value\nbeta: x begins with a negative value\n");
  // The same program against shared libraries, and as C++.
  link_library(dir, "alpha", a);
  link_library(dir, "beta", b);
  built = shell("c++ -x c++ " + dir.file("host.c") + " -x none " + dir.file("libalpha.so") + " " +
                dir.file("libbeta.so") + " -Wl,-rpath," + dir.path() + " -o " + dir.file("host2"));
  ASSERT_EQ(built.status, 0) << built.text;
  ran = shell(dir.file("host2"));
  EXPECT_EQ(ran.status, 0) << ran.text;
}

TEST(Export, StaticProgram) {
  NEED("cc");
  TempDir dir;
  const std::string objects = write_objects(dir, "net", description_for("net"), Target::host().arch, "cc");
  ASSERT_TRUE(write_file(dir.file("host.c"), host_program({"net"})).ok());
  const Ran built = shell("cc -static " + dir.file("host.c") + " " + objects + " -lpthread -o " + dir.file("host"));
  ASSERT_EQ(built.status, 0) << built.text;
  EXPECT_EQ(shell(dir.file("host")).status, 0);
}

TEST(Export, WeightsBesideTheLibrary) {
  NEED("cc");
  TempDir dir;
  ModelDescription d = description_for("net");
  d.variants[0].weights_symbol = "";
  d.variants[0].weights_file = "net.weights";
  d.variants[0].weights_sha256 =
      write_weights_file(dir.file("net.weights"), std::as_bytes(std::span(test::kScaleWeights))).value();
  const Module module = Module::load(make_library(dir, "net", d)).value();
  std::vector<HostTensor> in = ramp(3);
  {
    Instance instance = module.create().value();
    expect_right(in[0], instance.run(in).value());
  }
  ASSERT_EQ(std::rename(dir.file("net.weights").c_str(), dir.file("moved").c_str()), 0);
  Result<Instance> lost = module.create();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.failure().id, "bad-weights");
  EXPECT_NE(lost.failure().message.find(dir.file("net.weights") + ": no such file"), std::string::npos)
      << lost.failure().message;
  InstanceOptions options;
  options.weights_path = dir.file("moved");
  EXPECT_TRUE(module.create(options).ok());
}

TEST(Export, MissingCpuFeatureIsAnErrorAtCreation) {
  NEED("cc");
  TempDir dir;
  ModelDescription d = description_for("net");
  d.variants[0].requirements.push_back({"avx9000", TENSMITH_CPUID, 7, 0, 0, 31, 0xffffffffu});
  const Module module = Module::load(make_library(dir, "net", d)).value();
  Result<Instance> made = module.create();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.failure().id, "missing-cpu-feature");
  EXPECT_NE(made.failure().message.find("avx9000"), std::string::npos);
}

TEST(Export, EqualInputGivesEqualBytes) {
  const ModelDescription d = description_for("net");
  const auto weights = std::as_bytes(std::span(test::kScaleWeights));
  EXPECT_EQ(model_object(d, "x86_64", "net_model", "net_weights", weights),
            model_object(d, "x86_64", "net_model", "net_weights", weights));
  if (have("cc")) {
    TempDir one, two;
    EXPECT_EQ(*read_file(make_library(one, "net", d)), *read_file(make_library(two, "net", d)));
  }
  // No path of the build machine in what the tool carries.
  EXPECT_EQ(support_object(Target::host().arch)->find(TS_SOURCE_DIR), std::string_view::npos);
}

TEST(Export, CrossLibraryForAArch64) {
  NEED("aarch64-linux-gnu-gcc");
  if (!support_object("aarch64").ok()) GTEST_SKIP() << "built without the cross compiler";
  TempDir dir;
  ModelDescription d = description_for("net");
  d.variants[0].requirements = required_cpu_features(Target::parse("cortex-a72").value());
  const std::string objects = write_objects(dir, "net", d, "aarch64", "aarch64-linux-gnu-gcc");
  ASSERT_TRUE(write_file(dir.file("host.c"), host_program({"net"})).ok());
  const Ran built = shell("aarch64-linux-gnu-gcc -static " + dir.file("host.c") + " " + objects + " -lpthread -o " +
                          dir.file("host"));
  ASSERT_EQ(built.status, 0) << built.text;
  if (have("qemu-aarch64-static") || have("qemu-aarch64")) {
    const Ran ran = shell((have("qemu-aarch64-static") ? "qemu-aarch64-static " : "qemu-aarch64 ") + dir.file("host"));
    EXPECT_EQ(ran.status, 0) << ran.text;
  }
  if (Target::host().arch == "x86_64") {
    const std::string library = link_library(dir, "net", objects, "aarch64-linux-gnu-gcc");
    EXPECT_EQ(Module::load(library).failure().id, "wrong-architecture");
  }
}

TEST(Load, BadFilesAreNamed) {
  TempDir dir;
  EXPECT_EQ(Module::load(dir.file("none.so")).failure().id, "cannot-read");
  EXPECT_EQ(Module::load(dir.path()).failure().id, "bad-object");
  ASSERT_TRUE(write_file(dir.file("text.so"), "this is no library").ok());
  EXPECT_EQ(Module::load(dir.file("text.so")).failure().id, "bad-object");
  ASSERT_TRUE(write_file(dir.file("empty.so"), "").ok());
  EXPECT_EQ(Module::load(dir.file("empty.so")).failure().id, "bad-object");
  if (have("cc")) {
    ASSERT_TRUE(write_file(dir.file("f.c"), "int f(void) { return 1; }").ok());
    ASSERT_EQ(shell("cc -shared -fPIC " + dir.file("f.c") + " -o " + dir.file("f.so")).status, 0);
    EXPECT_EQ(Module::load(dir.file("f.so")).failure().id, "not-a-module");
    ASSERT_TRUE(
        write_file(dir.file("g.c"), "#include <stdint.h>\nconst void* g_get_api(uint32_t v) { (void)v; return 0; }")
            .ok());
    ASSERT_EQ(shell("cc -shared -fPIC " + dir.file("g.c") + " -o " + dir.file("g.so")).status, 0);
    EXPECT_EQ(Module::load(dir.file("g.so")).failure().id, "abi-mismatch");
    ASSERT_TRUE(write_file(dir.file("h.c"),
                           "extern int nowhere(void); const void* h_get_api(int v) { return v + nowhere() ? 0 : 0; }")
                    .ok());
    ASSERT_EQ(shell("cc -shared -fPIC " + dir.file("h.c") + " -o " + dir.file("h.so")).status, 0);
    Result<Module> lacking = Module::load(dir.file("h.so"));
    EXPECT_EQ(lacking.failure().id, "cannot-load");
    EXPECT_NE(lacking.failure().message.find("nowhere"), std::string::npos) << lacking.failure().message;
  }
}

TEST(Load, ManifestMustMatch) {
  NEED("cc");
  TempDir dir;
  const std::string library = make_library(dir, "net", description_for("net"));
  Json manifest;
  manifest["files"] = Json::array({manifest_file_entry(library).value()});
  ASSERT_TRUE(write_json(manifest_path(library), manifest).ok());
  EXPECT_TRUE(Module::load(library).ok());
  manifest["files"][0]["sha256"] = std::string(64, '0');
  ASSERT_TRUE(write_json(manifest_path(library), manifest).ok());
  EXPECT_EQ(Module::load(library).failure().id, "manifest-mismatch");
  LoadOptions trusting;
  trusting.verify = false;
  EXPECT_TRUE(Module::load(library, trusting).ok());
  ASSERT_TRUE(write_file(manifest_path(library), "{").ok());
  EXPECT_EQ(Module::load(library).failure().id, "bad-json");
  ASSERT_TRUE(write_file(manifest_path(library), "[1]").ok());
  EXPECT_EQ(Module::load(library).failure().id, "bad-json");
}

TEST(CApi, OpensRunsAndReports) {
  NEED("cc");
  TempDir dir;
  const std::string path = make_library(dir, "net", description_for("net"));
  tensmith_library* library = nullptr;
  EXPECT_EQ(tensmith_library_open(nullptr, nullptr, &library), TENSMITH_BAD_ARGUMENT);
  EXPECT_EQ(tensmith_library_open("/none.so", nullptr, &library), TENSMITH_CANNOT_LOAD);
  EXPECT_NE(std::string(tensmith_last_message()).find("/none.so"), std::string::npos);
  EXPECT_EQ(library, nullptr);
  EXPECT_EQ(tensmith_library_open(path.c_str(), "other_", &library), TENSMITH_CANNOT_LOAD);
  ASSERT_EQ(tensmith_library_open(path.c_str(), nullptr, &library), TENSMITH_OK) << tensmith_last_message();
  const tensmith_api* api = tensmith_library_api(library);
  tensmith_instance* instance = nullptr;
  EXPECT_EQ(tensmith_library_create(library, -3, &instance), TENSMITH_BAD_ARGUMENT);
  EXPECT_NE(std::string(tensmith_last_message()), "");
  ASSERT_EQ(tensmith_library_create(library, 2, &instance), TENSMITH_OK);
  EXPECT_EQ(api->threads(instance), 2);
  api->destroy(instance);
  tensmith_library_close(library);
  tensmith_library_close(nullptr);
  EXPECT_STREQ(tensmith_version(), tool_version());
}

TEST(CApi, HeadersAreC89) {
  NEED("cc");
  TempDir dir;
  for (const char* header : {"runtime/c_api.h", "runtime/context.h", "runtime/dl_tensor.h", "runtime/export/abi.h"}) {
    ASSERT_TRUE(
        write_file(dir.file("t.c"), std::string("#include \"") + header + "\"\nint main(void) { return 0; }\n").ok());
    for (const char* standard : {"-std=c89", "-std=c99", "-std=c11", "-xc++ -std=c++98 -Wno-long-long"}) {
      const Ran ran = shell(std::string("cc ") + standard + " -pedantic -Wall -Wextra -Werror -I" TS_SOURCE_DIR " -c " +
                            dir.file("t.c") + " -o " + dir.file("t.o"));
      EXPECT_EQ(ran.status, 0) << header << " " << standard << "\n" << ran.text;
    }
  }
}

TEST(ElfRename, KeepsEverythingElse) {
  const std::string_view object = *support_object(Target::host().arch);
  const std::vector<ElfSymbol> before = object_symbols(object).value();
  const std::vector<ElfSymbol> after =
      object_symbols(*support_object_for(Target::host().arch, "a_much_longer_prefix_than_before_")).value();
  ASSERT_EQ(before.size(), after.size());
  const auto names = support_names("a_much_longer_prefix_than_before_");
  int renamed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    auto it = names.find(before[i].name);
    EXPECT_EQ(after[i].name, it == names.end() ? before[i].name : it->second);
    EXPECT_EQ(after[i].defined, before[i].defined);
    EXPECT_EQ(after[i].global, before[i].global);
    renamed += it != names.end();
    // Two libraries in one program: nothing global may be left without the prefix, except what the C library defines.
    if (before[i].global && before[i].defined) {
      EXPECT_TRUE(it != names.end()) << before[i].name;
    }
  }
  EXPECT_EQ(renamed, static_cast<int>(names.size()));
}

TEST(ElfRename, BadObjectsAndCollisions) {
  const std::string object(*support_object(Target::host().arch));
  EXPECT_EQ(rename_symbols(object, {{"tensmith_support_create", "x"}, {"tensmith_support_destroy", "x"}}).failure().id,
            "name-collision");
  EXPECT_EQ(rename_symbols("", {}).failure().id, "bad-object");
  EXPECT_EQ(rename_symbols("\x7f"
                           "ELF and then nothing",
                           {})
                .failure()
                .id,
            "bad-object");
  // Cut or damaged anywhere in the headers: an error or a result, never a crash.
  for (size_t at = 0; at < 64; ++at) {
    std::string damaged = object;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    (void)rename_symbols(damaged, {{"tensmith_support_create", "x"}}).ok();
    (void)object_symbols(object.substr(0, object.size() * at / 64)).ok();
  }
  for (size_t i = 0; i < 64 * 40 && i < object.size(); i += 3) {
    std::string damaged = object;
    damaged[object.size() - 1 - i] = static_cast<char>(0xff);
    (void)object_symbols(damaged).ok();
    (void)exported_symbols(damaged).ok();
  }
}

}  // namespace
}  // namespace tensmith
