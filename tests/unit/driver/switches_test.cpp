/// The switches of --help-debug have the effect that their row promises.
#include <gtest/gtest.h>

#include <filesystem>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "apps/driver/observer.h"
#include "apps/driver/reproducer.h"
#include "graph/pipeline.h"
#include "runtime/base/files.h"
#include "runtime/time_line.h"

namespace tensmith {
namespace {

/// x[4, 6] -> MatMul [6, 8] -> Add -> Relu; and Softmax of the same product.
graph::Graph two_kernels() {
  graph::Graph g;
  graph::GraphEditor edit(g);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {4, 6}));
  const auto constant = [&](std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k) values.push_back(0.01 * static_cast<double>(k % 7));
    return edit.add_constant(graph::Constant::from_floats(kFloat32, shape, values));
  };
  const graph::Value product{edit.add("MatMul", {x, constant({6, 8})}), 0};
  const graph::Value sum{edit.add("Add", {product, constant({8})}), 0};
  const graph::Value y{edit.add("Relu", {sum}), 0};
  const graph::Value z{edit.add("Softmax", {y}), 0};
  edit.set_outputs({y, z}, {"y", "z"});
  return g;
}

/// Sets switches for one test.
class Switches {
 public:
  Switches(std::initializer_list<std::pair<const char*, std::string>> values) : old_(*config()) {
    Config changed = old_;
    for (const auto& [name, value] : values) {
      const Result<void> set = changed.set(name, value);
      EXPECT_TRUE(set.ok()) << name;
    }
    set_config(changed);
  }
  ~Switches() { set_config(old_); }

 private:
  const Config old_;
};

struct Shown {
  std::string text;     ///< stderr
  std::string stopped;  ///< what --stop-after gives
  CompiledProgram program;
};
Shown compile_shown(CompileOptions options = {}) {
  Shown shown;
  graph::Graph g = two_kernels();
  testing::internal::CaptureStderr();
  try {
    shown.program = compile_graph(g, options);
  } catch (const CompilationStopped& stopped) {
    shown.stopped = stopped.text();
  }
  shown.text = testing::internal::GetCapturedStderr();
  return shown;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(StopAfter, EndsAtEveryStageAndGivesWhatStands) {
  const std::pair<const char*, const char*> stages[] = {
      {"fold", "graph \""},   {"dce", "graph \""},       {"layouts", "row-major"},
      {"fuse", "elu"},        {"schedule", "k0_matmul"}, {"loop_nests", "func "},
      {"vectorize", "func "}, {"simplify", "func "},     {"codegen", "ret"}};
  for (const auto& [pass, expected] : stages) {
    const Switches set{{"stop-after", pass}};
    const Shown shown = compile_shown();
    EXPECT_TRUE(holds(shown.stopped, expected)) << pass << ": " << shown.stopped.substr(0, 500);
  }
}

TEST(StopAfter, LoweringPassesDiffer) {
  std::string nests, flat;
  {
    const Switches set{{"stop-after", "loop_nests"}};
    nests = compile_shown().stopped;
  }
  {
    const Switches set{{"stop-after", "simplify"}};
    flat = compile_shown().stopped;
  }
  EXPECT_NE(nests, flat);
}

TEST(StopAfter, RefusesUnknownPassesByName) {
  const Switches set{{"stop-after", "vectorise"}};
  graph::Graph g = two_kernels();
  try {
    compile_graph(g, {});
    FAIL() << "was accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.id(), "unknown-pass");
    EXPECT_TRUE(holds(e.message(), "did you mean 'vectorize'?")) << e.message();
  }
}

TEST(PrintIr, AroundOnePassOfOneKernel) {
  const Switches set{{"print-ir", "before:vectorize"}, {"filter", "softmax"}};
  const Shown shown = compile_shown();
  EXPECT_EQ(count(shown.text, " before vectorize\n"), 1u) << shown.text;
  EXPECT_TRUE(holds(shown.text, "softmax before vectorize"));
  EXPECT_FALSE(holds(shown.text, "matmul"));
}

TEST(PrintIr, AfterEachPrintsUnchangedPassesToo) {
  size_t changed, each;
  {
    const Switches set{{"print-ir", "after-change"}};
    changed = count(compile_shown().text, " after ");
  }
  {
    const Switches set{{"print-ir", "after-each"}};
    each = count(compile_shown().text, " after ");
  }
  EXPECT_EQ(each, 2 * (1 + lowering_passes().size()));
  EXPECT_GT(changed, 2u);
  EXPECT_LE(changed, each);
}

TEST(PrintSchedule, EveryForm) {
  const std::pair<const char*, const char*> forms[] = {
      {"steps", "("}, {"cpp", "Schedule& s"}, {"json", "tensmith.schedule/1"}, {"loops", "func "}, {"c", "int32_t "}};
  for (const auto& [form, expected] : forms) {
    const Switches set{{"print-schedule", form}, {"filter", "matmul"}};
    const Shown shown = compile_shown();
    EXPECT_TRUE(holds(shown.text, expected)) << form << ": " << shown.text;
    const std::string form_name = form, mark = form_name == "cpp" || form_name == "c" ? "// " : "# ";
    EXPECT_TRUE(holds(shown.text, mark + "k0_matmul")) << form << ": " << shown.text;
    EXPECT_FALSE(holds(shown.text, mark + "k1_softmax")) << form;
  }
}

TEST(Explain, EveryKindAndOnlyThese) {
  const std::pair<const char*, const char*> kinds[] = {{"algorithm", "# how convolutions are computed"},
                                                       {"fusion", "# what is fused"},
                                                       {"schedule", "# why k0_matmul"},
                                                       {"layout", "# layouts"},
                                                       {"memory", "# memory\narena "}};
  for (const auto& [kind, expected] : kinds) {
    const Switches set{{"explain", kind}};
    const Shown shown = compile_shown();
    for (const auto& [other, text] : kinds)
      EXPECT_EQ(holds(shown.text, text), std::string(other) == kind) << kind << " and " << other << "\n" << shown.text;
  }
  Config config;
  EXPECT_TRUE(config.set("explain", "fusion,memory").ok());
  EXPECT_TRUE(config.set("explain", "tuning").ok());
  EXPECT_FALSE(config.set("explain", "fusion,cooking").ok());
}

TEST(Dump, WritesEveryStageOfTheKernelsThatTheFilterLetsThrough) {
  const TempDir folder;
  const Switches set{{"dump", folder.file("new/dump")}, {"filter", "softmax"}};
  std::filesystem::create_directories(folder.file("new/dump"));
  const Shown shown = compile_shown();
  std::string kernel;
  for (const CompiledKernel& k : shown.program.kernels)
    if (holds(k.name, "softmax")) kernel = k.name;
  const std::string base = folder.file("new/dump/");
  for (const char* file : {"fusion.txt", "layouts.txt", "memory.txt"})
    EXPECT_TRUE(std::filesystem::exists(base + file)) << file;
  for (const char* file : {"workload.txt", "schedule.txt", "schedule.json", "schedule.cpp", "00_loop_nests.ir",
                           "code.ll", "code.s", "code.o"}) {
    const Result<std::string> text = read_file(base + kernel + "/" + file);
    ASSERT_TRUE(text.ok()) << file;
    EXPECT_FALSE(text->empty()) << file;
  }
  EXPECT_FALSE(std::filesystem::exists(base + "k0_matmul_add_relu"));
}

TEST(TimePasses, NamesPassesOfEveryLayer) {
  const Switches set{{"time-passes", "on"}};
  const std::string text = compile_shown().text;
  for (const char* pass : {"fold", "fuse", "schedule", "lower/vectorize", "codegen", "memory plan"})
    EXPECT_TRUE(holds(text, pass)) << pass << "\n" << text;
}

TEST(Contract, DecidesAboutFusedMultiplyAdd) {
  CompileOptions options;
  options.want_asm = true;
  options.target = Target::parse("x86-64-v3").value();
  const auto fused = [&] {
    size_t n = 0;
    // Not the softmax: vector math asks for fused operations by itself, for its accuracy.
    for (const CompiledKernel& kernel : compile_shown(options).program.kernels)
      if (holds(kernel.name, "matmul")) n += count(kernel.assembly, "vfmadd");
    return n;
  };
  EXPECT_GT(fused(), 0u);
  const Switches set{{"contract", "off"}};
  EXPECT_EQ(fused(), 0u);
}

TEST(MemoryLimit, RefusesLargerArenas) {
  graph::Graph g;
  graph::GraphEditor edit(g);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {1024, 1024}));
  graph::Value v{edit.add("Softmax", {x}), 0};
  v = {edit.add("Softmax", {v}), 0};
  edit.set_outputs({v}, {"y"});
  graph::Graph again = g.clone();
  EXPECT_NO_THROW(compile_graph(again, {}));
  const Switches set{{"memory-limit-mib", "3"}};
  try {
    compile_graph(g, {});
    FAIL() << "4 MiB between two kernels were accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.id(), "arena-too-large");
    EXPECT_TRUE(holds(e.message(), "--memory-limit-mib")) << e.message();
  }
}

TEST(CompileThreads, DoNotChangeTheCode) {
  std::vector<std::vector<uint8_t>> objects[2];
  for (int threads : {1, 2}) {
    const Switches set{{"compile-threads", std::to_string(threads)}};
    for (const ObjectCode& object : compile_shown().program.objects) objects[threads - 1].push_back(object.bytes);
  }
  EXPECT_EQ(objects[0], objects[1]);
}

TEST(Profile, CompilationAndRunStandOnOneTimeLine) {
  const Switches set{{"profile", "unused.json"}};
  ASSERT_NE(process_time_line(), nullptr);
  const size_t before = process_time_line()->spans().size();
  compile_shown();
  std::string names;
  for (const TimeLine::Span& span : process_time_line()->spans()) names += span.name + "\n";
  EXPECT_GT(process_time_line()->spans().size(), before);
  for (const char* name : {"graph passes", "schedule k0_matmul", "lower k0_matmul", "codegen k0_matmul", "main"})
    EXPECT_TRUE(holds(names, name)) << name << "\n" << names;
}

TEST(References, EveryKernelCallHasItsNodesAlone) {
  const Switches set{{"check", "on"}};
  const Shown shown = compile_shown();
  ASSERT_FALSE(shown.program.calls.empty());
  for (const KernelCall& call : shown.program.calls) {
    ASSERT_NE(call.reference, nullptr) << call.label;
    EXPECT_TRUE(graph::verify(*call.reference).ok());
    EXPECT_EQ(call.reference->inputs.size(), 1u) << to_string(*call.reference);
  }
}

}  // namespace
}  // namespace tensmith
