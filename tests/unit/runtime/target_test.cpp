// The target description: parsing, printing back, what follows from features, the host.
#include "runtime/base/target.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/cpu_count.h"
#include "runtime/base/cpu_features.h"

namespace tensmith {
namespace {

Target must_parse(const std::string& text) {
  Result<Target> t = Target::parse(text);
  EXPECT_TRUE(t.ok()) << text << ": " << (t.ok() ? "" : t.failure().message);
  return t.ok() ? *t : Target{};
}

struct Row {
  const char* text;
  const char* cpu;
  int vector_bits, registers;
  bool fma, vnni, bf16;
};

TEST(Target, TableOfKinds) {
  const Row rows[] = {
      {"x86-64", "x86-64", 128, 16, false, false, false},
      {"x86-64-v2", "x86-64-v2", 128, 16, false, false, false},
      {"x86-64-v3", "x86-64-v3", 256, 16, true, false, false},
      {"x86-64-v4", "x86-64-v4", 512, 32, true, false, false},
      {"sandybridge", "x86-64-v2", 256, 16, false, false, false},
      {"haswell", "x86-64-v3", 256, 16, true, false, false},
      {"znver3", "x86-64-v3", 256, 16, true, false, false},
      {"znver4", "x86-64-v4", 512, 32, true, true, true},
      {"skylake-avx512", "x86-64-v4", 512, 32, true, false, false},
      {"icelake-server", "x86-64-v4", 512, 32, true, true, false},
      {"sapphirerapids", "x86-64-v4", 512, 32, true, true, true},
      {"alderlake", "x86-64-v3", 256, 16, true, true, false},
      {"aarch64", "generic", 128, 32, true, false, false},
      {"cortex-a72", "generic", 128, 32, true, false, false},
      {"neoverse-n1", "generic", 128, 32, true, true, false},
      {"neoverse-v1", "generic", 128, 32, true, true, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    Target t = must_parse(row.text);
    EXPECT_EQ(t.cpu, row.cpu);
    EXPECT_EQ(t.vector_bits, row.vector_bits);
    EXPECT_EQ(t.vector_registers, row.registers);
    EXPECT_EQ(t.fma, row.fma);
    EXPECT_EQ(t.vnni, row.vnni);
    EXPECT_EQ(t.bf16, row.bf16);
  }
}

TEST(Target, EveryKindPrintsAndParsesBack) {
  for (const CpuKind& kind : cpu_kinds()) {
    Target t = must_parse(kind.name);
    EXPECT_EQ(must_parse(to_string(t)), t) << to_string(t);
  }
  EXPECT_EQ(must_parse(to_string(Target::host())), Target::host()) << to_string(Target::host());
}

TEST(Target, FeaturesBringWhatTheyNeed) {
  Target t = must_parse("x86-64-v3,+avx512vnni");
  EXPECT_TRUE(t.has("avx512f"));
  EXPECT_EQ(t.vector_bits, 256) << "the byte and mask features are not there";
  EXPECT_EQ(t.features, "+avx512f,+avx512vnni");
  EXPECT_TRUE(must_parse("x86-64,+avx2").has("sse4.2"));
}

TEST(Target, RemovingTakesDependentsAlong) {
  Target t = must_parse("znver4,-avx512f");
  EXPECT_FALSE(t.has("avx512bf16"));
  EXPECT_EQ(t.cpu, "x86-64-v3");
  EXPECT_EQ(t.vector_bits, 256);
  EXPECT_EQ(t.vector_registers, 16);
  EXPECT_EQ(t.fma_ports, 2);
  EXPECT_EQ(t.features, "+gfni");
}

TEST(Target, Options) {
  Target t = must_parse("x86-64-v4,cores=7,vector=256,l1=48K,l2=2M,l3=1G,fma=2,tune=znver4");
  EXPECT_EQ(t.cores, 7);
  EXPECT_EQ(t.vector_bits, 256);
  EXPECT_EQ(t.vector_registers, 32) << "AVX-512VL has 32 registers at any width";
  EXPECT_EQ(t.l1_bytes, 48 << 10);
  EXPECT_EQ(t.l2_bytes, 2 << 20);
  EXPECT_EQ(t.l3_bytes, int64_t{1} << 30);
  EXPECT_EQ(t.tune_cpu, "znver4");
  EXPECT_EQ(t.lanes(4), 8);
  EXPECT_EQ(must_parse(to_string(t)), t);
}

TEST(Target, BadTextsAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "bad-target"},
      {"pentium", "bad-target"},
      {"x86-64-v5", "bad-target"},
      {"x86-64-v3,+avx9", "bad-target-feature"},
      {"x86-64-v3,-sse2", "bad-target-feature"},
      {"aarch64,+avx2", "bad-target-feature"},
      {"x86-64-v3,cores=0", "bad-target-option"},
      {"x86-64-v3,cores=", "bad-target-option"},
      {"x86-64-v3,cores=99999999999999999999", "bad-target-option"},
      {"x86-64-v3,vector=512", "bad-target-option"},
      {"x86-64-v3,l2=1T", "bad-target-option"},
      {"x86-64-v3,l2=9999999999G", "bad-target-option"},
      {"x86-64-v3,tune=neoverse-n1", "bad-target-option"},
      {"x86-64-v3,speed=9", "bad-target-option"},
      {"x86-64-v3,fast", "bad-target-option"},
      {"x86-64-v3,,", "bad-target-option"},
  };
  for (auto [text, id] : rows) {
    Result<Target> t = Target::parse(text);
    ASSERT_FALSE(t.ok()) << text;
    EXPECT_EQ(t.failure().id, id) << text;
    EXPECT_NE(t.failure().message.back(), '.');
  }
  EXPECT_NE(Target::parse("pentium").failure().message.find("znver3"), std::string::npos);
}

TEST(Target, HostIsRunnableHere) {
  const Target& host = Target::host();
  EXPECT_EQ(host.missing_on_host(), nullptr);
  EXPECT_GE(host.cores, 1);
  EXPECT_LE(host.cores, tensmith_affinity_cpus());
  EXPECT_GE(host.l1_bytes, 8 << 10);
  EXPECT_GE(host.l2_bytes, host.l1_bytes);
  for (const tensmith_cpu_requirement& r : required_cpu_features(host)) EXPECT_TRUE(tensmith_cpu_has(&r)) << r.name;
  EXPECT_EQ(to_json(host)["vector_bits"], host.vector_bits);
}

TEST(Target, MissingFeatureIsNamed) {
  EXPECT_STREQ(must_parse(Target::host().arch == "x86_64" ? "aarch64" : "x86-64").missing_on_host(),
               Target::host().arch == "x86_64" ? "aarch64" : "x86_64");
  // A requirement that no CPU meets.
  tensmith_cpu_requirement never = {"never", TENSMITH_CPUID, 7, 0, 0, 31, 0xffffffffu};
  EXPECT_EQ(tensmith_cpu_first_missing(&never, 1), 0);
}

TEST(Target, RequiredFeaturesOfALevel) {
  std::vector<std::string> names;
  for (const tensmith_cpu_requirement& r : required_cpu_features(must_parse("x86-64-v4"))) names.push_back(r.name);
  EXPECT_NE(std::find(names.begin(), names.end(), "avx512vl"), names.end());
  EXPECT_EQ(std::find(names.begin(), names.end(), "avx512vnni"), names.end());
}

}  // namespace
}  // namespace tensmith
