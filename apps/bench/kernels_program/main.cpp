/// Times kernels made from compute definitions by the default schedules against what the machine can do: the FMA peak
/// and the bandwidth of the cache level where a kernel's data lie, both measured in this process.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "apps/bench/kernels_program/floors.h"
#include "apps/bench/kernels_program/items.h"
#include "apps/bench/kernels_program/pairs.h"
#include "apps/bench/kernels_program/runner.h"
#include "autotune/measure/machine_work.h"
#include "runtime/base/json.h"

namespace tensmith::bench {
namespace {

struct Options {
  std::string target = "host", filter, json, floors;
  bool explain = false, assembly = false;
};

/// Units: milliseconds, to move each byte of its parameters once from and to the cache level that holds them all.
double moving_ms(const Runner& runner, const Bandwidths& bandwidths, const Target& target) {
  const int64_t bytes = runner.bytes_read() + runner.bytes_written();
  const LevelBandwidth& level = level_that_holds(bandwidths, target, bytes);
  return 1e3 * (static_cast<double>(runner.bytes_read()) / level.read +
                static_cast<double>(runner.bytes_written()) / level.write);
}

int main_with(const Target& target, const Options& options) {
  if (const char* missing = target.missing_on_host()) {
    std::fprintf(stderr, "kernels: this machine lacks %s\n", missing);
    return 5;
  }
  Floors floors;
  if (!options.floors.empty()) {
    const Result<Floors> read = read_floors(options.floors, cpu_kind(target));
    if (!read) throw UserError(read.failure().id, read.failure().message);
    floors = *read;
  }
  std::map<std::string, std::vector<double>> reached;
  const double peak = peak_flops(target.vector_bits), hz = clock_hz();
  const Bandwidths bandwidths = measure_bandwidths(target);
  std::printf("%s, %s: peak %.1f GFLOP/s a thread, clock %.2f GHz\n", host_cpu_model().c_str(),
              to_string(target).c_str(), peak / 1e9, hz / 1e9);
  const auto show = [&](const char* name, const LevelBandwidth& level) {
    std::printf("%s %.0f / %.0f GB/s  ", name, level.read / 1e9, level.write / 1e9);
  };
  std::printf("read / write, one thread: ");
  show("L1", bandwidths.l1);
  show("L2", bandwidths.l2);
  show("L3", bandwidths.l3);
  std::printf("\n%-12s %-28s %10s %9s %9s %10s %8s\n", "group", "kernel", "ms", "of peak", "of bound", "2 threads",
              "compile");
  Json rows = Json::array();
  for (const Item& item : all_items(target.lanes(4))) {
    if (!options.filter.empty() && (item.group + " " + item.name).find(options.filter) == std::string::npos) continue;
    Runner one(item, target, 1);
    const bool of_peak = item.measure == Measure::kPeak;
    const Yardstick yardstick = of_peak ? Yardstick([&](double s) { return peak_flops_once(target.vector_bits, s); })
                                        : Yardstick(clock_hz_once);
    const Timing timing = time_beside([&] { one.run(); }, one.threads(), yardstick, 40);
    double two = 0;
    if (Target::host().cores >= 2 && timing.ms > 0.2) {
      Runner both(item, target, 2);
      two = timing.ms / time_beside([&] { both.run(); }, both.threads(), nullptr, 40).ms;
    }
    const double figure = (of_peak ? item.flops : item.cycles_per_16 * item.elements / 16) / timing.units;
    const double bound = of_peak ? std::max(figure, moving_ms(one, bandwidths, target) / timing.ms) : 0;
    const std::string name = kernel_class(item);
    reached[name].push_back(of_peak && class_is_bandwidth_bound(name) ? bound : figure);
    std::printf("%-12s %-28s %10.4f %8.3f%s %9.3f %10.2f %6.1fms\n", item.group.c_str(), item.name.c_str(), timing.ms,
                figure, of_peak ? " " : "*", bound, two, one.compile_ms());
    if (options.explain) std::printf("%s", one.explanation().c_str());
    if (options.assembly) std::printf("%s", one.assembly().c_str());
    std::fflush(stdout);
    rows.push_back({{"group", item.group},
                    {"kernel", item.name},
                    {"ms", timing.ms},
                    {of_peak ? "fraction_of_peak" : "of_notes_cycles", figure},
                    {"fraction_of_bound", bound},
                    {"speedup_2_threads", two},
                    {"compile_ms", one.compile_ms()}});
  }
  std::printf("* cycles of notes/cpu.md section 5 over ours\n");
  const int below = options.floors.empty() ? 0 : classes_below(floors, reached);
  if (options.json.empty()) return below ? 1 : 0;
  Json json = json_header({"tensmith.bench-kernels/2", to_string(target), 1, 0, {}});
  json["peak_gflops"] = peak / 1e9;
  json["clock_ghz"] = hz / 1e9;
  for (const auto& [name, level] : {std::pair<const char*, const LevelBandwidth&>{"l1", bandwidths.l1},
                                    {"l2", bandwidths.l2},
                                    {"l3", bandwidths.l3}})
    json["bandwidth_gb_s"][name] = {{"read", level.read / 1e9}, {"write", level.write / 1e9}};
  json["kernels"] = rows;
  const Result<void> ok = write_json(options.json, json);
  if (!ok) std::fprintf(stderr, "%s\n", ok.failure().message.c_str());
  return !ok ? 2 : below ? 1 : 0;
}

}  // namespace
}  // namespace tensmith::bench

int main(int argc, char** argv) {
  tensmith::bench::Options options;
  for (int k = 1; k < argc; ++k) {
    const auto value = [&](const char* flag, std::string& into) {
      if (std::strcmp(argv[k], flag) != 0 || k + 1 >= argc) return false;
      into = argv[++k];
      return true;
    };
    if (value("--target", options.target) || value("--filter", options.filter) || value("--json", options.json) ||
        value("--floors", options.floors))
      continue;
    if (std::strcmp(argv[k], "--explain") == 0) {
      options.explain = true;
    } else if (std::strcmp(argv[k], "--asm") == 0) {
      options.assembly = true;
    } else {
      std::fprintf(stderr,
                   "kernels: unexpected argument '%s'; usage: kernels [--target T] [--filter TEXT] [--json FILE] "
                   "[--floors FILE] [--explain] [--asm]\n",
                   argv[k]);
      return 2;
    }
  }
  try {
    const tensmith::Result<tensmith::Target> parsed = tensmith::Target::parse(options.target);
    if (!parsed) throw tensmith::UserError(parsed.failure().id, parsed.failure().message);
    return tensmith::bench::main_with(*parsed, options);
  } catch (const tensmith::Error& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return tensmith::exit_code(e.kind());
  }
}
