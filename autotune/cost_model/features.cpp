#include "autotune/cost_model/features.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autotune/cost_model/analytic_cycles.h"

namespace tensmith {

namespace {

constexpr size_t kAccesses = 4;

/// Collects a row, or its names: one list of columns for both.
class RowMaker {
 public:
  explicit RowMaker(std::vector<std::string>* names) : names_(names) {}
  void size(const std::string& name, double value) { put(name, std::log2(1 + std::max(0.0, value))); }
  /// Of two sizes: 0 where they are equal.
  void ratio(const std::string& name, double value, double unit) {
    put(name, std::log2((1 + std::max(0.0, value)) / (1 + std::max(0.0, unit))));
  }
  void put(const std::string& name, double value) {
    if (names_) names_->push_back(name);
    else row_.push_back(static_cast<float>(std::isfinite(value) ? std::clamp(value, -1e6, 1e6) : 0.0));
  }
  std::vector<float> take() { return std::move(row_); }

 private:
  std::vector<std::string>* names_;
  std::vector<float> row_;
};

constexpr const char* kOpNames[kOpKinds] = {"fma",     "add",    "mul",     "divide",      "special",
                                            "integer", "select", "convert", "reduce_lanes"};
constexpr const char* kCacheNames[kCacheLevels] = {"l1", "l2", "l3"};

void put_access(RowMaker& row, const std::string& at, const AccessFacts& a) {
  row.put(at + "is_write", a.is_write);
  row.put(at + "is_packed", a.is_packed);
  row.size(at + "bytes", a.bytes);
  row.size(at + "distinct_bytes", a.distinct_bytes);
  row.size(at + "lines", a.lines);
  row.size(at + "distinct_lines", a.distinct_lines);
  row.size(at + "stride", std::abs(a.stride));
  row.put(at + "reuse_none", a.reuse == Reuse::kNone);
  row.put(at + "reuse_loop", a.reuse == Reuse::kLoop);
  row.put(at + "reuse_serial", a.reuse == Reuse::kSerial);
  row.size(at + "reuse_distance", a.reuse_distance);
  row.size(at + "reuse_count", a.reuse_count);
  for (int level = 0; level < kCacheLevels; ++level)
    row.size(at + "misses_" + kCacheNames[level], a.misses[static_cast<size_t>(level)]);
}

void put_nest(RowMaker& row, const NestFacts& n, const MachineFacts& machine, double kernel_cycles) {
  double operations = 0;
  for (int kind = 0; kind < kOpKinds; ++kind) {
    row.size(kOpNames[kind], n.ops[static_cast<size_t>(kind)]);
    operations += n.ops[static_cast<size_t>(kind)];
  }
  row.put("scalar_share", n.scalar_ops / std::max(1e-9, operations));
  row.size("vector_loads", n.vector_loads);
  row.size("scalar_loads", n.scalar_loads);
  row.size("stores", n.stores);
  row.size("strided", n.strided);
  row.size("gathers", n.gathers);
  row.size("masked", n.masked);
  row.size("prefetches", n.prefetches);
  row.ratio("operations_per_access", operations, n.vector_loads + n.scalar_loads + n.stores + n.strided + n.gathers);
  row.put("lanes_filled", n.lanes * 4 / machine.vector_bytes);
  row.size("vector_extent", n.vector_extent);
  row.size("unroll", n.unroll);
  row.size("statements", n.statements);
  row.size("accumulators", n.accumulators);
  row.size("rows", n.rows);
  row.size("vectors", n.vectors);
  row.ratio("registers_used", n.live, machine.registers);
  row.size("chain", n.chain);
  row.size("guards", n.guards);
  row.put("chance", n.chance);
  row.size("turns", n.turns);
  row.size("extent", n.extent);
  row.size("entries", n.entries);
  row.size("depth", n.depth);
  row.size("turn_bytes", n.turn_bytes);
  row.size("loop_bytes", n.loop_bytes);
  for (int level = 0; level < kCacheLevels; ++level) {
    const double cache = machine.cache_bytes[static_cast<size_t>(level)];
    row.ratio(std::string("turn_bytes_of_") + kCacheNames[level], n.turn_bytes, cache);
    row.ratio(std::string("loop_bytes_of_") + kCacheNames[level], n.loop_bytes, cache);
    row.size(std::string("misses_") + kCacheNames[level], n.misses[static_cast<size_t>(level)]);
    row.size(std::string("prefetched_") + kCacheNames[level], n.prefetched[static_cast<size_t>(level)]);
    row.size(std::string("written_") + kCacheNames[level], n.writes[static_cast<size_t>(level)]);
    row.ratio(std::string("misses_per_turn_") + kCacheNames[level], n.misses[static_cast<size_t>(level)], n.turns);
  }
  row.size("pages", n.pages);
  row.size("conflicts", n.conflicts);
  const NestCycles cycles = nest_cycles(n, machine);
  row.size("cycles_arithmetic", cycles.arithmetic);
  row.size("cycles_loops", cycles.loops);
  row.size("cycles_memory", cycles.memory);
  row.put("share_of_kernel", cycles.total() / std::max(1.0, kernel_cycles));
  row.put("share_of_memory", cycles.memory / std::max(1.0, cycles.total()));
  row.ratio("cycles_per_turn", cycles.total(), n.turns);
  for (size_t k = 0; k < kAccesses; ++k)
    put_access(row, "access" + std::to_string(k) + ".", k < n.accesses.size() ? n.accesses[k] : AccessFacts());
}

void put_kernel(RowMaker& row, const KernelFacts& f, double cycles) {
  NestCycles sum;
  std::array<double, kCacheLevels> misses{};
  double strided = 0, masked = 0, scalar = 0, operations = 0, guarded = 0, prefetched = 0, spilled = 0, entries = 0;
  for (const NestFacts& n : f.nests) {
    const NestCycles c = nest_cycles(n, f.machine);
    sum.arithmetic += c.arithmetic;
    sum.loops += c.loops;
    sum.memory += c.memory;
    for (size_t level = 0; level < misses.size(); ++level) misses[level] += n.misses[level];
    for (double count : n.ops) operations += count * n.turns;
    scalar += n.scalar_ops * n.turns;
    strided += (n.strided + n.gathers) * n.turns;
    masked += n.masked * n.turns;
    guarded += n.guards > 0 ? c.total() : 0;
    prefetched += n.prefetches > 0 ? c.total() : 0;
    spilled += std::max(0.0, n.live - f.machine.registers) * n.turns;
    entries += n.entries;
  }
  const double all = std::max(1.0, sum.total());
  row.size("flops", f.flops);
  row.ratio("cycles_per_flop", cycles * f.threads, f.flops);
  row.put("share_loops", sum.loops / all);
  row.put("share_memory", sum.memory / all);
  row.put("share_scalar", scalar / std::max(1.0, operations));
  row.put("share_guarded", guarded / all);
  row.put("share_prefetched", prefetched / all);
  row.ratio("strided_per_operation", strided, operations);
  row.ratio("masked_per_operation", masked, operations);
  row.ratio("spilled_per_operation", spilled, operations);
  row.size("entries", entries);
  row.size("bytes", f.kernel_bytes);
  for (int level = 0; level < kCacheLevels; ++level) {
    row.ratio(std::string("bytes_of_") + kCacheNames[level], f.kernel_bytes,
              f.machine.cache_bytes[static_cast<size_t>(level)]);
    row.size(std::string("misses_") + kCacheNames[level], misses[static_cast<size_t>(level)]);
    row.ratio(std::string("misses_per_byte_") + kCacheNames[level], misses[static_cast<size_t>(level)] * 64,
              f.kernel_bytes);
  }
  row.size("stack_bytes", f.stack_bytes);
  row.size("workspace_bytes", f.workspace_bytes);
  row.size("register_bytes", f.register_bytes);
  row.size("threads", f.threads);
  row.size("shared_out", f.shared_out);
  row.ratio("shared_out_per_thread", f.shared_out, f.threads);
  row.put("idle", f.idle);
  row.put("serial_share", f.serial_share);
  row.size("starts", f.starts);
  row.size("statements", f.statements);
  row.size("nests", static_cast<double>(f.nests.size()));
  for (size_t k = 0; k < f.intensity.size(); ++k) row.size("intensity" + std::to_string(k), f.intensity[k]);
  row.size("vector_bytes", f.machine.vector_bytes);
  row.size("registers", f.machine.registers);
  row.put("fma_ports", f.machine.fma_ports);
  for (int level = 0; level < kCacheLevels; ++level)
    row.size(std::string("cache_") + kCacheNames[level], f.machine.cache_bytes[static_cast<size_t>(level)]);
}

}  // namespace

const std::vector<std::string>& nest_feature_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    RowMaker row(&list);
    put_nest(row, NestFacts(), MachineFacts(), 1);
    return list;
  }();
  return names;
}

const std::vector<std::string>& kernel_feature_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    RowMaker row(&list);
    put_kernel(row, KernelFacts(), 1);
    return list;
  }();
  return names;
}

KernelFeatures features_of(const KernelFacts& facts) {
  KernelFeatures out;
  out.analytic_cycles = std::max(1.0, kernel_cycles(facts));
  std::vector<double> cycles;
  for (const NestFacts& nest : facts.nests) cycles.push_back(nest_cycles(nest, facts.machine).total());
  std::vector<size_t> order(facts.nests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return cycles[a] > cycles[b]; });
  out.nests.reserve(order.size() * nest_feature_names().size());
  for (size_t k : order) {
    RowMaker row(nullptr);
    put_nest(row, facts.nests[k], facts.machine, out.analytic_cycles);
    const std::vector<float> values = row.take();
    out.nests.insert(out.nests.end(), values.begin(), values.end());
  }
  RowMaker row(nullptr);
  put_kernel(row, facts, out.analytic_cycles);
  out.kernel = row.take();
  return out;
}

KernelFeatures features_of(const LoopFunction& nests, const Target& target, int threads) {
  return features_of(kernel_facts(read_loop_tree(nests, threads), target));
}

KernelFeatures features_of(const Schedule& schedule, const ScheduleRequest& request) {
  return features_of(nests_of(schedule), request.target, request.threads);
}

}  // namespace tensmith
