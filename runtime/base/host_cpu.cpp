// What the machine says about itself beyond feature bits: vendor and family, caches, the model's name.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/base/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tensmith {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

#if defined(__x86_64__)

struct Id {
  std::string vendor;
  unsigned family = 0;
  unsigned model = 0;
};

Id cpu_id() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Id id;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return id;
  char text[13] = {};
  std::memcpy(text, &b, 4);
  std::memcpy(text + 4, &d, 4);
  std::memcpy(text + 8, &c, 4);
  id.vendor = text;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return id;
  id.family = (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0);
  id.model = (a >> 4 & 15) | (a >> 16 & 15) << 4;
  return id;
}

/// Data or unified cache sizes by level from the CPU itself: leaf 4 (Intel), 0x8000001d (AMD). Needed where /sys is
/// hidden.
void cpuid_caches(int64_t size[4]) {
  const unsigned leaf = cpu_id().vendor == "AuthenticAMD" ? 0x8000001du : 4u;
  for (unsigned i = 0; i < 8; ++i) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || (a & 31) == 0) return;
    const unsigned type = a & 31, level = a >> 5 & 7;
    if ((type == 1 || type == 3) && level >= 1 && level <= 3)
      size[level] = int64_t{(b >> 22) + 1} * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * (int64_t{c} + 1);
  }
}

#else

void cpuid_caches(int64_t*) {}

#endif

/// The same from /sys, of the first CPU that has the files.
void sys_caches(int64_t size[4]) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = first_line(folder + "type"), text = first_line(folder + "size");
    const int level = std::atoi(first_line(folder + "level").c_str());
    if ((type != "Data" && type != "Unified") || level < 1 || level > 3 || text.empty()) continue;
    const int64_t number = std::atoll(text.c_str());
    size[level] = number << (text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : 0);
  }
}

}  // namespace

namespace detail {

const char* host_cpu_kind(const std::vector<std::string>& features) {
  auto has = [&](const char* name) { return std::find(features.begin(), features.end(), name) != features.end(); };
#if defined(__x86_64__)
  const Id id = cpu_id();
  // Features decide the generation first: hypervisors often state a model number that is not the CPU's.
  if (id.vendor == "AuthenticAMD" || id.vendor == "HygonGenuine") {
    if (id.family >= 26 || (has("avx512f") && has("avxvnni"))) return has("avx512f") ? "znver5" : "znver3";
    if (has("avx512f")) return "znver4";
    if (id.family == 25) return "znver3";
    if (id.family == 23) return id.model >= 0x30 ? "znver2" : "znver1";
  }
  if (id.vendor == "GenuineIntel") {
    if (has("avx512fp16"))
      return id.model == 0xad || id.model == 0xae ? "graniterapids"
             : id.model == 0xcf                   ? "emeraldrapids"
                                                  : "sapphirerapids";
    if (has("avx512bf16")) return "cooperlake";
    if (has("avx512vbmi2")) {
      if (id.model == 0x6a || id.model == 0x6c) return "icelake-server";
      if (id.model == 0x8c || id.model == 0x8d) return "tigerlake";
      if (id.model == 0xa7) return "rocketlake";
      return id.model == 0x7d || id.model == 0x7e ? "icelake-client" : "icelake-server";
    }
    if (has("avx512vnni")) return "cascadelake";
    if (has("avx512f")) return "skylake-avx512";
    if (has("avxvnniint8")) return "arrowlake";
    if (has("avxvnni")) return id.model == 0x97 || id.model == 0x9a ? "alderlake" : "raptorlake";
    if (has("avx2"))
      return id.model == 0x3c || id.model == 0x3f || id.model == 0x45 || id.model == 0x46 ? "haswell" : "skylake";
    if (has("f16c")) return "ivybridge";
    if (has("avx")) return "sandybridge";
    if (has("sse4.2")) return "nehalem";
  }
  return has("avx512f") ? "x86-64-v4" : has("avx2") ? "x86-64-v3" : has("sse4.2") ? "x86-64-v2" : "x86-64";
#else
  if (has("sve2")) return "neoverse-n2";
  if (has("sve")) return "neoverse-v1";
  return has("dotprod") ? "neoverse-n1" : "aarch64";
#endif
}

void host_caches(Target& target) {
  int64_t size[4] = {};
  cpuid_caches(size);
  sys_caches(size);
  // Figures outside these bounds are a hypervisor's invention; the kind's own are nearer to the truth.
  if (size[1] >= 8 << 10 && size[1] <= 1 << 20) target.l1_bytes = size[1];
  if (size[2] >= 64 << 10 && size[2] <= 64 << 20) target.l2_bytes = size[2];
  if (size[3] >= 1 << 20 && size[3] <= int64_t{4} << 30) target.l3_bytes = size[3];
  if (int64_t line = std::atoll(first_line("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size").c_str());
      line >= 16 && line <= 1024)
    target.line_bytes = line;
}

}  // namespace detail

std::string host_cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      size_t colon = line.find(':');
      size_t start = colon == std::string::npos ? colon : line.find_first_not_of(' ', colon + 1);
      if (start != std::string::npos) return line.substr(start);
    }
  return "unknown";
}

}  // namespace tensmith
