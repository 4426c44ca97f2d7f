#include "runtime/profiler.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tensmith {

Profiler::Profiler(std::vector<KernelInfo> kernels, int64_t max_events)
    : kernels_(std::move(kernels)), sums_(kernels_.size()), events_(static_cast<size_t>(max_events)) {}

void Profiler::hook(void* profiler, int32_t kernel, int32_t is_end) {
  Profiler& p = *static_cast<Profiler*>(profiler);
  if (kernel < 0 || static_cast<size_t>(kernel) >= p.sums_.size()) return;
  Sum& sum = p.sums_[static_cast<size_t>(kernel)];
  const int64_t now = now_ns();
  if (!is_end) {
    sum.start_ns = now;
    return;
  }
  const int64_t took = now - sum.start_ns;
  ++sum.calls;
  sum.total_ns += took;
  sum.min_ns = std::min(sum.min_ns, took);
  if (p.used_ < p.events_.size()) p.events_[p.used_++] = {kernel, sum.start_ns, now};
}

void Profiler::reset() {
  std::fill(sums_.begin(), sums_.end(), Sum{});
  used_ = 0;
  runs_ = run_ns_ = 0;
}

void Profiler::add_run(int64_t ns) {
  ++runs_;
  run_ns_ += ns;
}

double Profiler::outside_us() const {
  int64_t inside = 0;
  for (const Sum& sum : sums_) inside += sum.total_ns;
  return runs_ ? static_cast<double>(std::max<int64_t>(run_ns_ - inside, 0)) * 1e-3 : 0;
}

std::vector<Profiler::Row> Profiler::rows() const {
  int64_t whole = run_ns_;
  if (!runs_)
    for (const Sum& sum : sums_) whole += sum.total_ns;
  std::vector<Row> rows;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Sum& sum = sums_[i];
    if (sum.calls == 0) continue;
    const double mean_ns = std::max(static_cast<double>(sum.total_ns) / static_cast<double>(sum.calls), 1.0);
    rows.push_back({kernels_[i].name, sum.calls, static_cast<double>(sum.total_ns) * 1e-3,
                    static_cast<double>(sum.min_ns) * 1e-3,
                    whole ? 100.0 * static_cast<double>(sum.total_ns) / static_cast<double>(whole) : 0,
                    kernels_[i].flops / mean_ns, kernels_[i].bytes / mean_ns});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.total_us > b.total_us; });
  return rows;
}

std::string Profiler::table(int limit) const {
  const std::vector<Row> all = rows();
  size_t width = 6;
  for (const Row& row : all) width = std::max(width, std::min<size_t>(row.name.size(), 60));
  char line[256];
  std::snprintf(line, sizeof line, "%-*s %8s %12s %12s %6s %10s %8s\n", static_cast<int>(width), "kernel", "calls",
                "mean us", "min us", "%", "GFLOP/s", "GB/s");
  std::string text = line;
  auto figure = [](double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, value > 0 ? "%.1f" : "-", value);
    return std::string(digits);
  };
  const size_t shown = limit > 0 ? std::min(all.size(), static_cast<size_t>(limit)) : all.size();
  for (size_t i = 0; i < shown; ++i) {
    const Row& row = all[i];
    std::snprintf(line, sizeof line, "%-*.60s %8lld %12.1f %12.1f %6.1f %10s %8s\n", static_cast<int>(width),
                  row.name.c_str(), static_cast<long long>(row.calls), row.total_us / static_cast<double>(row.calls),
                  row.min_us, row.percent, figure(row.gflops).c_str(), figure(row.gbytes).c_str());
    text += line;
  }
  if (shown < all.size()) text += "... and " + std::to_string(all.size() - shown) + " more\n";
  if (runs_) {
    std::snprintf(line, sizeof line, "%-*s %8lld %12.1f\n", static_cast<int>(width), "outside of kernels",
                  static_cast<long long>(runs_), outside_us() / static_cast<double>(runs_));
    text += line;
  }
  return text;
}

Json Profiler::json(const Provenance& from) const {
  Json out = json_header(from);
  out["runs"] = runs_;
  out["outside_us"] = outside_us();
  Json list = Json::array();
  for (const Row& row : rows())
    list.push_back({{"kernel", row.name},
                    {"calls", row.calls},
                    {"total_us", row.total_us},
                    {"min_us", row.min_us},
                    {"percent", row.percent},
                    {"gflops", row.gflops > 0 ? Json(row.gflops) : Json(nullptr)},
                    {"gbytes_per_s", row.gbytes > 0 ? Json(row.gbytes) : Json(nullptr)}});
  out["kernels"] = std::move(list);
  return out;
}

void Profiler::add_to(TimeLine& line) const {
  for (size_t i = 0; i < used_; ++i) {
    const Event& e = events_[i];
    const KernelInfo& kernel = kernels_[static_cast<size_t>(e.kernel)];
    TimeLine::Span span{kernel.name, "kernel", e.start_ns, e.end_ns - e.start_ns, 0, {}};
    const double ns = std::max<double>(static_cast<double>(span.duration_ns), 1);
    if (kernel.flops > 0) span.figures.push_back({"GFLOP/s", kernel.flops / ns});
    if (kernel.bytes > 0) span.figures.push_back({"GB/s", kernel.bytes / ns});
    line.add(std::move(span));
  }
}

}  // namespace tensmith
