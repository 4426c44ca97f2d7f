#include "apps/cli/bounds.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

#include "autotune/measure/machine_work.h"
#include "runtime/base/quantile.h"

namespace tensmith::cli {

namespace {

template <typename... Values>
std::string format(const char* form, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

/// Units: microseconds of one call by its bytes.
double moving_us(const CompiledKernel& kernel, const Target& target, int threads, const MachineRates& rates) {
  const double handed = std::max(kernel.cost.bytes - kernel.cost.constant_bytes, 0.0), share = handed / threads;
  const double level = share <= static_cast<double>(target.l1_bytes)   ? rates.l1
                       : share <= static_cast<double>(target.l2_bytes) ? rates.l2
                                                                       : rates.l3;
  double us = 0;
  if (level > 0) us += 1e6 * handed / level;
  if (rates.weights > 0) us += 1e6 * kernel.cost.constant_bytes / rates.weights;
  return us;
}

}  // namespace

MachineMeter::MachineMeter(const Target& target, int threads, int64_t weight_bytes)
    : target_(target), threads_(threads) {
  const Bandwidths one = measure_bandwidths(target);
  rates_.l1 = one.l1.read * threads;
  rates_.l2 = one.l2.read * threads;
  ThreadPool pool(threads);
  rates_.l3 = read_bandwidth(pool, target.vector_bits, 4 * target.l2_bytes);
  const int64_t share = weight_bytes / threads;
  rates_.weights = share <= target.l2_bytes ? rates_.l2 : read_bandwidth(pool, target.vector_bits, share);
}

double MachineMeter::window() {
  const double flops = peak_flops_once(target_.vector_bits, 5e-4) * threads_;
  rates_.flops = std::max(rates_.flops, flops);
  return flops;
}

MachineRates MachineMeter::rates() const {
  TS_CHECK(rates_.flops > 0) << "no windows";
  return rates_;
}

GapReport gap_report(const CompiledProgram& program, const Profiler& profiler, const MachineRates& rates,
                     const std::vector<RunBesidePeak>& runs_beside) {
  std::map<std::string, int> kernel_of;
  for (const KernelCall& call : program.calls)
    kernel_of[program.kernels[static_cast<size_t>(call.kernel)].name + " " + call.label] = call.kernel;
  GapReport report;
  report.rates = rates;
  const auto runs = static_cast<double>(std::max<int64_t>(profiler.runs(), 1));
  std::map<int, KernelGap> gaps;
  for (const Profiler::Row& row : profiler.rows()) {
    const auto known = kernel_of.find(row.name);
    TS_CHECK(known != kernel_of.end()) << row.name;
    const CompiledKernel& kernel = program.kernels[static_cast<size_t>(known->second)];
    KernelGap& gap = gaps[known->second];
    const double calls = static_cast<double>(row.calls) / runs;
    const double flops = kernel.cost.executed_flops, compute = rates.flops > 0 ? 1e6 * flops / rates.flops : 0;
    const double moving = moving_us(kernel, program.target, program.threads, rates);
    gap.name = kernel.name;
    gap.first_node = kernel.first_node;
    gap.calls += static_cast<int>(calls + 0.5);
    gap.us += row.min_us * calls;
    gap.bound_us += std::max(compute, moving) * calls;
    gap.is_compute = compute >= moving;
    gap.flops += flops * calls;
    gap.bytes += kernel.cost.bytes * calls;
  }
  for (auto& [index, gap] : gaps) {
    report.kernels_us += gap.us;
    report.flops += gap.flops;
    report.kernels.push_back(std::move(gap));
  }
  std::vector<double> fractions;
  for (const RunBesidePeak& run : runs_beside) {
    report.run_us = report.run_us == 0 ? run.us : std::min(report.run_us, run.us);
    if (run.us > 0 && run.flops > 0) fractions.push_back(report.flops / (run.us * 1e-6) / run.flops);
  }
  std::sort(fractions.begin(), fractions.end());
  if (!fractions.empty()) report.fraction_of_peak = quantile(fractions, 0.5);
  std::stable_sort(report.kernels.begin(), report.kernels.end(),
                   [](const KernelGap& a, const KernelGap& b) { return a.gap_us() > b.gap_us(); });
  return report;
}

std::string GapReport::table() const {
  std::string text = format("peak %.1f GFLOP/s, weights %.1f GB/s, L2 %.1f GB/s, L3 %.1f GB/s, all threads together\n",
                            rates.flops / 1e9, rates.weights / 1e9, rates.l2 / 1e9, rates.l3 / 1e9);
  text += format("run %.1f us, %.3f GFLOP executed, %.3f of peak, kernels %.1f us\n", run_us, flops / 1e9,
                 fraction_of_peak, kernels_us);
  text += format("%-44s %5s %10s %6s %8s %8s %10s %8s %10s\n", "kernel", "calls", "us", "%", "of peak", "GB/s",
                 "bound us", "of bound", "gap us");
  for (const KernelGap& gap : kernels)
    text +=
        format("%-44.44s %5d %10.1f %6.1f %8.3f %8.1f %10.1f %7.3f%c %10.1f\n", gap.name.c_str(), gap.calls, gap.us,
               100 * gap.us / kernels_us, rates.flops > 0 && gap.us > 0 ? gap.flops / (gap.us * 1e-6) / rates.flops : 0,
               gap.us > 0 ? gap.bytes / gap.us * 1e-3 : 0, gap.bound_us, gap.of_bound(), gap.is_compute ? ' ' : '*',
               gap.gap_us());
  return text + "* bound by bytes\n" + largest(3);
}

std::string GapReport::largest(int count) const {
  std::string text = "largest gaps:\n";
  for (size_t k = 0; k < kernels.size() && k < static_cast<size_t>(count); ++k) {
    const KernelGap& gap = kernels[k];
    text += format("  %s (%s, %d calls): %.1f us of %.1f above the bound by %s, %.1f%% of all kernels\n",
                   gap.name.c_str(), gap.first_node.c_str(), gap.calls, gap.gap_us(), gap.us,
                   gap.is_compute ? "operations" : "bytes", 100 * gap.gap_us() / kernels_us);
  }
  return text;
}

Json GapReport::json() const {
  Json json;
  json["peak_gflops"] = rates.flops / 1e9;
  json["weights_gb_s"] = rates.weights / 1e9;
  json["l1_gb_s"] = rates.l1 / 1e9;
  json["l2_gb_s"] = rates.l2 / 1e9;
  json["l3_gb_s"] = rates.l3 / 1e9;
  json["run_us"] = run_us;
  json["kernels_us"] = kernels_us;
  json["gflop"] = flops / 1e9;
  json["fraction_of_peak"] = fraction_of_peak;
  Json list = Json::array();
  for (const KernelGap& gap : kernels)
    list.push_back({{"kernel", gap.name},
                    {"first_node", gap.first_node},
                    {"calls", gap.calls},
                    {"us", gap.us},
                    {"gflop", gap.flops / 1e9},
                    {"bytes", gap.bytes},
                    {"bound", gap.is_compute ? "operations" : "bytes"},
                    {"bound_us", gap.bound_us},
                    {"of_bound", gap.of_bound()},
                    {"gap_us", gap.gap_us()}});
  json["kernels"] = std::move(list);
  return json;
}

}  // namespace tensmith::cli
