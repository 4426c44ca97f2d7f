/// What code is generated for: instruction set, vector shape, caches and cores.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/cpu_check.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tensmith {

/// A CPU target. Everything that picks tiles, layouts or vector width reads these figures, never a CPU's name.
struct Target {
  std::string arch = "x86_64";                      ///< "x86_64" or "aarch64".
  std::string triple = "x86_64-unknown-linux-gnu";  ///< LLVM triple.
  std::string cpu = "x86-64";                       ///< LLVM "target-cpu": an x86-64 level, or "generic" on AArch64.
  std::string tune_cpu;                             ///< LLVM "tune-cpu": the kind whose timing fits best; may be empty.
  std::string features;                             ///< LLVM "target-features" beyond `cpu`: "+fma,+avx512vnni".
  std::vector<std::string> feature_names;           ///< All features of the table that code may use, in table order.

  int vector_bits = 128;      ///< Width to generate: 512, 256 or 128.
  int vector_registers = 16;  ///< 32 with AVX-512 (at any width) and on AArch64.
  int fma_ports = 1;          ///< Vector FMAs of `vector_bits` a cycle; a guess where the CPU is unknown.
  bool fma = false;           ///< Fused multiply-add.
  bool vnni = false;          ///< 8-bit dot product: vpdpbusd, sdot or udot.
  bool bf16 = false;          ///< bfloat16 dot product.
  bool fp16 = false;          ///< float16 arithmetic in vectors.

  /// Units: bytes. L1 data and L2 of one core; L3 that one core can fill, 0 if there is none.
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 256 << 10;
  int64_t l3_bytes = 0;
  int64_t line_bytes = 64;
  int64_t page_bytes = 4096;
  int cores = 1;  ///< Threads to plan for: physical cores that this process may use.

  friend bool operator==(const Target&, const Target&) = default;

  /// The machine that this process runs on. Cores honour the affinity mask and the control group's quota.
  static const Target& host();

  /// Reads `host`, a level (`x86-64`, `x86-64-v2` to `-v4`), a CPU kind (`znver3`, `icelake-server`, `neoverse-n1`,
  /// ...) or `aarch64`, then options separated by commas: `+feature`, `-feature`, `cores=4`, `vector=256`, `fma=2`,
  /// `l1=32K`, `l2=1M`, `l3=32M`, `tune=znver4`.
  /// Errors: bad-target, bad-target-feature, bad-target-option; each message lists what is possible.
  static Result<Target> parse(std::string_view text);

  bool has(std::string_view feature) const;
  /// Lanes of one vector register for elements of that many bytes.
  int lanes(int64_t element_bytes) const { return static_cast<int>(vector_bits / 8 / element_bytes); }
  bool is_host_arch() const;
  /// Null if this process can run code for the target, else the name of the first missing feature or the architecture.
  const char* missing_on_host() const;
};

/// Text that `Target::parse` reads back to an equal target; serves as key of tuning records.
std::string to_string(const Target& target);
/// All fields, for `tensmith target --json` and manifests.
Json to_json(const Target& target);
/// What must hold on the machine that runs the code, to be checked before any of it runs. The names live as long as the
/// program.
std::vector<tensmith_cpu_requirement> required_cpu_features(const Target& target);

/// The CPU's own name ("AMD EPYC ..."), "unknown" if it states none.
std::string host_cpu_model();

namespace detail {
/// The kind of the host by vendor, family and features, for figures that the CPU does not state.
const char* host_cpu_kind(const std::vector<std::string>& features);
/// Fills the cache sizes from what the operating system and the CPU state; leaves a size alone if neither does.
void host_caches(Target& target);
}  // namespace detail

}  // namespace tensmith
