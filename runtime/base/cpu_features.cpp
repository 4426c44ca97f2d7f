#include "runtime/base/cpu_features.h"

namespace tensmith {
namespace {

// XCR0 bits: the operating system saves these registers at a task switch; without them the instructions trap.
constexpr uint32_t kYmm = 0x6;       // SSE and AVX state
constexpr uint32_t kZmm = 0xe6;      // and opmask, upper halves, zmm16 to zmm31
constexpr uint32_t kTile = 0x60000;  // AMX

constexpr CpuFeature cpuid(const char* name, int level, const char* needs, uint32_t leaf, uint32_t subleaf, char reg,
                           uint32_t bit, uint32_t xcr0 = 0) {
  uint32_t index = reg == 'a' ? 0 : reg == 'b' ? 1 : reg == 'c' ? 2 : 3;
  return {{name, TENSMITH_CPUID, leaf, subleaf, index, bit, xcr0}, level, needs};
}
constexpr CpuFeature hwcap(const char* name, int level, const char* needs, uint32_t kind, uint32_t bit) {
  return {{name, kind, 0, 0, 0, bit, 0}, level, needs};
}

constexpr uint32_t kExt = 0x80000001;

}  // namespace

const std::vector<CpuFeature>& x86_features() {
  // Each row stands after what it needs. Source: Intel SDM volume 2 (CPUID), AMD APM volume 3, x86-64 psABI for the
  // levels.
  static const std::vector<CpuFeature> table = {
      cpuid("sse2", 1, "", 1, 0, 'd', 26),
      cpuid("cx16", 2, "", 1, 0, 'c', 13),
      cpuid("sahf", 2, "", kExt, 0, 'c', 0),
      cpuid("popcnt", 2, "", 1, 0, 'c', 23),
      cpuid("sse3", 2, "sse2", 1, 0, 'c', 0),
      cpuid("ssse3", 2, "sse3", 1, 0, 'c', 9),
      cpuid("sse4.1", 2, "ssse3", 1, 0, 'c', 19),
      cpuid("sse4.2", 2, "sse4.1", 1, 0, 'c', 20),
      cpuid("xsave", 3, "", 1, 0, 'c', 26),
      cpuid("avx", 3, "sse4.2", 1, 0, 'c', 28, kYmm),
      cpuid("f16c", 3, "avx", 1, 0, 'c', 29, kYmm),
      cpuid("fma", 3, "avx", 1, 0, 'c', 12, kYmm),
      cpuid("avx2", 3, "avx", 7, 0, 'b', 5, kYmm),
      cpuid("bmi", 3, "", 7, 0, 'b', 3),
      cpuid("bmi2", 3, "", 7, 0, 'b', 8),
      cpuid("lzcnt", 3, "", kExt, 0, 'c', 5),
      cpuid("movbe", 3, "", 1, 0, 'c', 22),
      cpuid("avx512f", 4, "avx2", 7, 0, 'b', 16, kZmm),
      cpuid("avx512cd", 4, "avx512f", 7, 0, 'b', 28, kZmm),
      cpuid("avx512bw", 4, "avx512f", 7, 0, 'b', 30, kZmm),
      cpuid("avx512dq", 4, "avx512f", 7, 0, 'b', 17, kZmm),
      cpuid("avx512vl", 4, "avx512f", 7, 0, 'b', 31, kZmm),
      cpuid("avx512ifma", 0, "avx512f", 7, 0, 'b', 21, kZmm),
      cpuid("avx512vbmi", 0, "avx512bw", 7, 0, 'c', 1, kZmm),
      cpuid("avx512vbmi2", 0, "avx512bw", 7, 0, 'c', 6, kZmm),
      cpuid("avx512vnni", 0, "avx512f", 7, 0, 'c', 11, kZmm),
      cpuid("avx512bitalg", 0, "avx512bw", 7, 0, 'c', 12, kZmm),
      cpuid("avx512vpopcntdq", 0, "avx512f", 7, 0, 'c', 14, kZmm),
      cpuid("avx512bf16", 0, "avx512bw", 7, 1, 'a', 5, kZmm),
      cpuid("avx512fp16", 0, "avx512bw", 7, 0, 'd', 23, kZmm),
      cpuid("avxvnni", 0, "avx2", 7, 1, 'a', 4, kYmm),
      cpuid("avxvnniint8", 0, "avx2", 7, 1, 'd', 4, kYmm),
      cpuid("avxifma", 0, "avx2", 7, 1, 'a', 23, kYmm),
      cpuid("gfni", 0, "sse2", 7, 0, 'c', 8),
      cpuid("amx-tile", 0, "", 7, 0, 'd', 24, kTile),
      cpuid("amx-int8", 0, "amx-tile", 7, 0, 'd', 25, kTile),
      cpuid("amx-bf16", 0, "amx-tile", 7, 0, 'd', 22, kTile),
  };
  return table;
}

const std::vector<CpuFeature>& aarch64_features() {
  // Source: Linux arch/arm64/include/uapi/asm/hwcap.h.
  static const std::vector<CpuFeature> table = {
      hwcap("fp-armv8", 1, "", TENSMITH_HWCAP, 0),      hwcap("neon", 1, "fp-armv8", TENSMITH_HWCAP, 1),
      hwcap("lse", 0, "", TENSMITH_HWCAP, 8),           hwcap("rdm", 0, "neon", TENSMITH_HWCAP, 12),
      hwcap("fullfp16", 0, "neon", TENSMITH_HWCAP, 10), hwcap("dotprod", 0, "neon", TENSMITH_HWCAP, 20),
      hwcap("sve", 0, "fullfp16", TENSMITH_HWCAP, 22),  hwcap("sve2", 0, "sve", TENSMITH_HWCAP2, 1),
      hwcap("i8mm", 0, "neon", TENSMITH_HWCAP2, 13),    hwcap("bf16", 0, "neon", TENSMITH_HWCAP2, 14),
  };
  return table;
}

const std::vector<CpuFeature>& cpu_features(std::string_view arch) {
  return arch == "aarch64" ? aarch64_features() : x86_features();
}

namespace {

// Feature lists of generations, each the one before plus what came new.
#define TS_AVX512_CLX "avx512vnni"
#define TS_AVX512_ICL "avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq gfni"
#define TS_AVX512_ZEN4 TS_AVX512_ICL " avx512bf16"
#define TS_AVX512_SPR TS_AVX512_ZEN4 " avx512fp16 avxvnni amx-tile amx-int8 amx-bf16"
#define TS_ARM_V82 "lse rdm fullfp16 dotprod"

}  // namespace

const std::vector<CpuKind>& cpu_kinds() {
  // Caches: data L1 and L2 of one core, L3 that one core can fill. For the plain levels: what such machines have at
  // least. Source: vendors' optimisation manuals; LLVM's X86.td for the feature sets.
  static const std::vector<CpuKind> table = {
      {"x86-64", "x86_64", 1, "", 128, 1, 32, 256, 4096},
      {"x86-64-v2", "x86_64", 2, "", 128, 1, 32, 256, 4096},
      {"x86-64-v3", "x86_64", 3, "", 256, 2, 32, 512, 8192},
      {"x86-64-v4", "x86_64", 4, "", 512, 1, 32, 1024, 16384},
      {"nehalem", "x86_64", 2, "", 128, 1, 32, 256, 8192},
      {"westmere", "x86_64", 2, "", 128, 1, 32, 256, 12288},
      {"sandybridge", "x86_64", 2, "xsave avx", 256, 1, 32, 256, 8192},
      {"ivybridge", "x86_64", 2, "xsave avx f16c", 256, 1, 32, 256, 8192},
      {"haswell", "x86_64", 3, "", 256, 2, 32, 256, 8192},
      {"broadwell", "x86_64", 3, "", 256, 2, 32, 256, 8192},
      {"skylake", "x86_64", 3, "", 256, 2, 32, 256, 8192},
      {"skylake-avx512", "x86_64", 4, "", 512, 2, 32, 1024, 16384},
      {"cascadelake", "x86_64", 4, TS_AVX512_CLX, 512, 2, 32, 1024, 16384},
      {"cooperlake", "x86_64", 4, TS_AVX512_CLX " avx512bf16", 512, 2, 32, 1024, 16384},
      {"icelake-client", "x86_64", 4, TS_AVX512_ICL, 512, 1, 48, 512, 8192},
      {"icelake-server", "x86_64", 4, TS_AVX512_ICL, 512, 2, 48, 1280, 24576},
      {"tigerlake", "x86_64", 4, TS_AVX512_ICL, 512, 1, 48, 1280, 12288},
      {"rocketlake", "x86_64", 4, TS_AVX512_ICL, 512, 1, 48, 512, 16384},
      {"alderlake", "x86_64", 3, "avxvnni gfni", 256, 2, 32, 1280, 16384},
      {"raptorlake", "x86_64", 3, "avxvnni gfni", 256, 2, 32, 2048, 16384},
      {"arrowlake", "x86_64", 3, "avxvnni avxvnniint8 avxifma gfni", 256, 2, 32, 2048, 16384},
      {"gracemont", "x86_64", 3, "avxvnni gfni", 256, 1, 32, 512, 8192},
      {"sapphirerapids", "x86_64", 4, TS_AVX512_SPR, 512, 2, 48, 2048, 32768},
      {"emeraldrapids", "x86_64", 4, TS_AVX512_SPR, 512, 2, 48, 2048, 65536},
      {"graniterapids", "x86_64", 4, TS_AVX512_SPR, 512, 2, 48, 2048, 65536},
      {"znver1", "x86_64", 3, "", 256, 1, 32, 512, 8192},
      {"znver2", "x86_64", 3, "", 256, 2, 32, 512, 16384},
      {"znver3", "x86_64", 3, "", 256, 2, 32, 512, 32768},
      {"znver4", "x86_64", 4, TS_AVX512_ZEN4, 512, 1, 32, 1024, 32768},
      {"znver5", "x86_64", 4, TS_AVX512_ZEN4 " avxvnni", 512, 2, 48, 1024, 32768},
      {"aarch64", "aarch64", 1, "", 128, 2, 32, 512, 2048},
      {"cortex-a53", "aarch64", 1, "", 128, 1, 32, 512, 0},
      {"cortex-a55", "aarch64", 1, TS_ARM_V82, 128, 1, 32, 128, 2048},
      {"cortex-a72", "aarch64", 1, "", 128, 1, 32, 1024, 0},
      {"cortex-a76", "aarch64", 1, TS_ARM_V82, 128, 2, 64, 512, 2048},
      {"neoverse-n1", "aarch64", 1, TS_ARM_V82, 128, 2, 64, 1024, 32768},
      {"neoverse-v1", "aarch64", 1, TS_ARM_V82 " sve i8mm bf16", 128, 4, 64, 1024, 32768},
      {"neoverse-n2", "aarch64", 1, TS_ARM_V82 " sve sve2 i8mm bf16", 128, 2, 64, 1024, 32768},
      {"neoverse-v2", "aarch64", 1, TS_ARM_V82 " sve sve2 i8mm bf16", 128, 4, 64, 2048, 65536},
  };
  return table;
}

const CpuKind* find_cpu_kind(std::string_view name) {
  for (const CpuKind& kind : cpu_kinds())
    if (name == kind.name) return &kind;
  return nullptr;
}

}  // namespace tensmith
