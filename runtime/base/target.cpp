#include "runtime/base/target.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/cpu_count.h"
#include "runtime/base/cpu_features.h"

namespace tensmith {
namespace {

#if defined(__aarch64__)
constexpr const char* kHostArch = "aarch64";
#else
constexpr const char* kHostArch = "x86_64";
#endif

using Names = std::set<std::string, std::less<>>;

const CpuFeature* find_feature(std::string_view arch, std::string_view name) {
  for (const CpuFeature& f : cpu_features(arch))
    if (name == f.where.name) return &f;
  return nullptr;
}

void add_feature(std::string_view arch, std::string_view name, Names& names) {
  const CpuFeature* f = find_feature(arch, name);
  TS_CHECK(f != nullptr) << name;
  names.insert(std::string(name));
  if (*f->needs) add_feature(arch, f->needs, names);
}

void remove_feature(std::string_view arch, std::string_view name, Names& names) {
  names.erase(std::string(name));
  for (const CpuFeature& f : cpu_features(arch))
    if (name == f.needs && names.count(f.where.name)) remove_feature(arch, f.where.name, names);
}

/// Highest level all of whose features are there.
int level_of(std::string_view arch, const Names& names) {
  int level = arch == "aarch64" ? 1 : 4;
  for (const CpuFeature& f : cpu_features(arch))
    if (f.level > 0 && !names.count(f.where.name)) level = std::min(level, f.level - 1);
  return std::max(level, 1);
}

/// Sets all that follows from the set of features: LLVM's strings, register count, widest vectors, capabilities.
void apply_features(const Names& names, Target& t) {
  const bool x86 = t.arch == "x86_64";
  const int level = level_of(t.arch, names);
  t.cpu = !x86 ? "generic" : level == 1 ? "x86-64" : "x86-64-v" + std::to_string(level);
  t.feature_names.clear();
  t.features.clear();
  for (const CpuFeature& f : cpu_features(t.arch)) {
    if (!names.count(f.where.name)) continue;
    t.feature_names.push_back(f.where.name);
    if (f.level == 0 || f.level > level || !x86)
      t.features += (t.features.empty() ? "+" : ",+") + std::string(f.where.name);
  }
  auto has = [&](const char* name) { return names.count(name) > 0; };
  if (x86) {
    // Byte and word instructions, masks on all widths: without them 512 bits are not worth a path of their own.
    const bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
    t.vector_bits = wide ? 512 : has("avx2") || has("avx") ? 256 : 128;
    t.vector_registers = wide ? 32 : 16;
    t.fma = has("fma") || has("avx512f");
    t.vnni = has("avxvnni") || (wide && has("avx512vnni"));
    t.bf16 = wide && has("avx512bf16");
    t.fp16 = wide && has("avx512fp16");
  } else {
    t.vector_bits = 128;
    t.vector_registers = 32;
    t.fma = true;
    t.vnni = has("dotprod");
    t.bf16 = has("bf16");
    t.fp16 = has("fullfp16");
  }
}

Names names_of_kind(const CpuKind& kind) {
  Names names;
  for (const CpuFeature& f : cpu_features(kind.arch))
    if (f.level > 0 && f.level <= kind.level) names.insert(f.where.name);
  for (std::string_view rest = kind.features; !rest.empty();) {
    size_t space = std::min(rest.find(' '), rest.size());
    add_feature(kind.arch, rest.substr(0, space), names);
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return names;
}

Target from_kind(const CpuKind& kind) {
  Target t;
  t.arch = kind.arch;
  t.triple = t.arch + "-unknown-linux-gnu";
  apply_features(names_of_kind(kind), t);
  t.vector_bits = std::min(t.vector_bits, kind.vector_bits);
  t.fma_ports = kind.fma_ports;
  t.l1_bytes = int64_t{kind.l1_kib} << 10;
  t.l2_bytes = int64_t{kind.l2_kib} << 10;
  t.l3_bytes = int64_t{kind.l3_kib} << 10;
  t.cores = tensmith_usable_cores();
  const bool plain = std::strncmp(kind.name, "x86-64", 6) == 0 || t.arch == kind.name;
  if (!plain) t.tune_cpu = kind.name;
  return t;
}

Target detect_host() {
  // AMX needs a permission from the kernel per process and its own code paths: used only when asked for by `+amx-int8`.
  std::vector<std::string> found;
  Names names;
  for (const CpuFeature& f : cpu_features(kHostArch)) {
    if (!tensmith_cpu_has(&f.where)) continue;
    if (*f.needs && !names.count(f.where.name) && !names.count(f.needs)) continue;  // a hypervisor masked what it needs
    found.push_back(f.where.name);
    if (found.back().starts_with("amx")) continue;
    names.insert(found.back());
  }
  const CpuKind* kind = find_cpu_kind(detail::host_cpu_kind(found));
  TS_CHECK(kind != nullptr);
  Target t = from_kind(*kind);
  apply_features(names, t);
  detail::host_caches(t);
  if (long page = sysconf(_SC_PAGESIZE); page > 0) t.page_bytes = page;
  return t;
}

Result<int64_t> parse_bytes(std::string_view option, std::string_view text) {
  int64_t value = 0;
  auto [p, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  int shift = 0;
  if (error == std::errc() && p + 1 == text.data() + text.size()) {
    shift = *p == 'K' ? 10 : *p == 'M' ? 20 : *p == 'G' ? 30 : 0;
    if (shift) ++p;
  }
  if (error != std::errc() || p != text.data() + text.size() || value < 0 || value > (int64_t{1} << 40) >> shift)
    return Failure{"bad-target-option", "target: option " + std::string(option) +
                                            ": expected a number with K, M or G, got '" + std::string(text) + "'"};
  return value << shift;
}

std::string bytes_text(int64_t bytes) {
  for (auto [shift, unit] : {std::pair{20, "M"}, std::pair{10, "K"}})
    if (bytes > 0 && bytes % (int64_t{1} << shift) == 0) return std::to_string(bytes >> shift) + unit;
  return std::to_string(bytes);
}

/// Applies one `key=value`.
Result<void> set_option(std::string_view key, std::string_view value, Target& t) {
  if (key == "tune") {
    const CpuKind* kind = find_cpu_kind(value);
    if (!kind || kind->arch != t.arch)
      return Failure{"bad-target-option",
                     "target: option tune: expected a CPU kind of " + t.arch + ", got '" + std::string(value) + "'"};
    t.tune_cpu = value;
    return {};
  }
  Result<int64_t> number = parse_bytes(key, value);
  if (!number) return number.failure();
  const int64_t n = *number;
  auto out_of_range = [&](const char* expected) {
    return Failure{"bad-target-option", "target: option " + std::string(key) + ": expected " + expected + ", got '" +
                                            std::string(value) + "'"};
  };
  if (key == "cores") {
    if (n < 1 || n > 4096) return out_of_range("1 to 4096");
    t.cores = static_cast<int>(n);
  } else if (key == "vector") {
    if ((n != 128 && n != 256 && n != 512) || (n == 512 && t.vector_bits < 512) || (n == 256 && t.vector_bits < 256))
      return out_of_range(t.vector_bits == 512 ? "128, 256 or 512" : t.vector_bits == 256 ? "128 or 256" : "128");
    t.vector_bits = static_cast<int>(n);
  } else if (key == "fma") {
    if (n < 1 || n > 8) return out_of_range("1 to 8 vector FMAs a cycle");
    t.fma_ports = static_cast<int>(n);
  } else if (key == "l1") {
    if (n < 4096) return out_of_range("at least 4K");
    t.l1_bytes = n;
  } else if (key == "l2") {
    if (n < 4096) return out_of_range("at least 4K");
    t.l2_bytes = n;
  } else if (key == "l3") {
    t.l3_bytes = n;
  } else if (key == "line") {
    if (n < 16 || n > 1024 || (n & (n - 1))) return out_of_range("a power of two from 16 to 1024");
    t.line_bytes = n;
  } else if (key == "page") {
    if (n < 4096 || (n & (n - 1))) return out_of_range("a power of two of at least 4K");
    t.page_bytes = n;
  } else {
    return Failure{"bad-target-option",
                   "target: unknown option '" + std::string(key) +
                       "'; use cores=N, vector=BITS, fma=N, l1=SIZE, l2=SIZE, l3=SIZE, line=N, page=N or tune=CPU"};
  }
  return {};
}

std::string list_kinds() {
  std::string text = "host";
  for (const CpuKind& kind : cpu_kinds()) text += std::string(", ") + kind.name;
  return text;
}

std::string list_features(std::string_view arch) {
  std::string text;
  for (const CpuFeature& f : cpu_features(arch)) text += (text.empty() ? "" : ", ") + std::string(f.where.name);
  return text;
}

}  // namespace

const Target& Target::host() {
  static const Target target = detect_host();
  return target;
}

Result<Target> Target::parse(std::string_view text) {
  auto next_word = [&text] {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    return word;
  };
  const std::string_view name = next_word();
  Target t;
  const CpuKind* kind = find_cpu_kind(name);
  if (name == "host" || name == "native") t = host();
  else if (kind) t = from_kind(*kind);
  else return Failure{"bad-target", "target: expected one of " + list_kinds() + "; got '" + std::string(name) + "'"};

  // Features first, whatever their place: the vector width that options may choose follows from them.
  Names names(t.feature_names.begin(), t.feature_names.end());
  std::vector<std::string_view> options;
  bool changed = false;
  while (!text.empty()) {
    std::string_view word = next_word();
    if (word.empty() || (word[0] != '+' && word[0] != '-')) {
      options.push_back(word);
      continue;
    }
    std::string_view feature = word.substr(1);
    if (!find_feature(t.arch, feature))
      return Failure{"bad-target-feature", "target: unknown feature '" + std::string(feature) + "' of " + t.arch +
                                               "; expected one of " + list_features(t.arch)};
    if (word[0] == '-' && find_feature(t.arch, feature)->level == 1)
      return Failure{"bad-target-feature", "target: feature '" + std::string(feature) + "' belongs to every " + t.arch +
                                               " CPU and cannot be left out"};
    word[0] == '+' ? add_feature(t.arch, feature, names) : remove_feature(t.arch, feature, names);
    changed = true;
  }
  if (changed) {
    const int before = t.vector_bits;
    apply_features(names, t);
    // Half the width on the same ports: CPUs with one 512-bit FMA run two of 256 bits.
    if (before == 512 && t.vector_bits == 256) t.fma_ports = 2;
  }
  for (std::string_view option : options) {
    size_t equal = option.find('=');
    if (equal == std::string_view::npos)
      return Failure{"bad-target-option",
                     "target: expected +feature, -feature or option=value, got '" + std::string(option) + "'"};
    if (Result<void> set = set_option(option.substr(0, equal), option.substr(equal + 1), t); !set) return set.failure();
  }
  return t;
}

bool Target::has(std::string_view feature) const {
  return std::find(feature_names.begin(), feature_names.end(), feature) != feature_names.end();
}

bool Target::is_host_arch() const { return arch == kHostArch; }

const char* Target::missing_on_host() const {
  if (!is_host_arch()) return arch == "aarch64" ? "aarch64" : "x86_64";
  std::vector<tensmith_cpu_requirement> all = required_cpu_features(*this);
  int32_t index = tensmith_cpu_first_missing(all.data(), static_cast<int32_t>(all.size()));
  return index < 0 ? nullptr : all[index].name;
}

std::string to_string(const Target& t) {
  std::string text = t.arch == "x86_64" ? t.cpu : "aarch64";
  const int level = level_of(t.arch, Names(t.feature_names.begin(), t.feature_names.end()));
  for (const std::string& name : t.feature_names) {
    const CpuFeature* f = find_feature(t.arch, name);
    if (f->level == 0 || f->level > level) text += ",+" + name;
  }
  text += ",vector=" + std::to_string(t.vector_bits) + ",fma=" + std::to_string(t.fma_ports) +
          ",cores=" + std::to_string(t.cores) + ",l1=" + bytes_text(t.l1_bytes) + ",l2=" + bytes_text(t.l2_bytes) +
          ",l3=" + bytes_text(t.l3_bytes);
  if (t.line_bytes != 64) text += ",line=" + std::to_string(t.line_bytes);
  if (t.page_bytes != 4096) text += ",page=" + std::to_string(t.page_bytes);
  if (!t.tune_cpu.empty()) text += ",tune=" + t.tune_cpu;
  return text;
}

Json to_json(const Target& t) {
  return Json{{"target", to_string(t)},
              {"arch", t.arch},
              {"triple", t.triple},
              {"cpu", t.cpu},
              {"tune_cpu", t.tune_cpu},
              {"features", t.feature_names},
              {"vector_bits", t.vector_bits},
              {"vector_registers", t.vector_registers},
              {"fma_ports", t.fma_ports},
              {"fma", t.fma},
              {"vnni", t.vnni},
              {"bf16", t.bf16},
              {"fp16", t.fp16},
              {"l1_bytes", t.l1_bytes},
              {"l2_bytes", t.l2_bytes},
              {"l3_bytes", t.l3_bytes},
              {"line_bytes", t.line_bytes},
              {"page_bytes", t.page_bytes},
              {"cores", t.cores}};
}

std::vector<tensmith_cpu_requirement> required_cpu_features(const Target& t) {
  std::vector<tensmith_cpu_requirement> list;
  for (const std::string& name : t.feature_names)
    if (const CpuFeature* f = find_feature(t.arch, name); f) list.push_back(f->where);
  return list;
}

}  // namespace tensmith
