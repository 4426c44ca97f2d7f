/// Random convolutions and products by default schedules: each compared with plain loops in double and timed beside the
/// machine's peak. Ends with code 1 when one is wrong or slower than half of what the median of its class reaches,
/// unless it reaches half of its own bound: a call, and the slower of moving its data and of its arithmetic, with what
/// the activation takes.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "apps/bench/kernels_program/pairs.h"
#include "apps/bench/random_shapes_program/shape.h"
#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "autotune/measure/machine_work.h"
#include "runtime/base/json.h"
#include "runtime/base/quantile.h"

namespace tensmith::bench {
namespace {

struct Options {
  int64_t count = 1000, seed = 1, first = 0, only = -1, worst = 20;
  bool explain = false;
  std::string json;
};

/// What became of one shape.
struct Row {
  int64_t number = 0;
  Shape shape;
  std::string error;        ///< of compiling or running, or where the result differs; "" when right
  double ms = 0, peak = 0;  ///< of a call; fraction of the FMA peak
  double bound = 0;         ///< least time that its work, its data and a call allow, by the time it takes
};

/// Units: milliseconds to move the bytes once from the level that holds them.
double moving_ms(const Shape& shape, const Bandwidths& bandwidths, const Target& target) {
  return 1e3 * shape.bytes() / level_that_holds(bandwidths, target, static_cast<int64_t>(shape.bytes())).read;
}

/// What belongs to every call or result and no schedule can change. Units: milliseconds.
struct Overheads {
  double call = 0;     ///< of one kernel with next to no work
  double sigmoid = 0;  ///< of an element, in L1
};

double ms_of(graph::Graph& graph, const Target& target, std::vector<float>& data) {
  CompileOptions compile;
  compile.target = target;
  compile.threads = 1;
  const Module module = load_program(std::make_shared<const CompiledProgram>(compile_graph(graph, compile)));
  Result<Instance> made = module.create({.threads = 1, .target = {}, .weights_path = {}});
  if (!made) throw UserError(made.failure().id, made.failure().message);
  Instance instance = std::move(made).value();
  std::vector<HostTensor> inputs;
  inputs.push_back(HostTensor::view(data.data(), {static_cast<int64_t>(data.size())}, kFloat32));
  Result<std::vector<HostTensor>> outputs = instance.run(inputs);
  if (!outputs) throw UserError(outputs.failure().id, outputs.failure().message);
  std::vector<HostTensor> results = std::move(outputs).value();
  return time_beside([&] { (void)instance.run_into(inputs, results); }, 1, nullptr, 24).ms;
}

Overheads measure_overheads(const Target& target) {
  const auto time = [&](const char* op, int64_t elements) {
    graph::Graph graph;
    graph.name = "overhead";
    graph::GraphEditor edit(graph);
    graph::TensorType type;
    type.dtype = kFloat32;
    type.shape = {Expr(elements)};
    edit.set_outputs({{edit.add(op, {edit.add_input("x", std::move(type))}), 0}}, {"y"});
    std::vector<float> data(static_cast<size_t>(elements), 0.5f);
    return ms_of(graph, target, data);
  };
  constexpr int64_t kMany = 4096;
  Overheads overheads;
  overheads.call = time("Relu", 16);
  overheads.sigmoid = std::max(0.0, time("Sigmoid", kMany) - overheads.call) / kMany;
  return overheads;
}

/// Where the results differ by more than rounding; "" when they do not. Products are sums of up to some thousand
/// terms, or Winograd tiles, whose errors stay below 1e-5 of the largest result.
std::string difference(std::span<const float> got, const std::vector<double>& wanted) {
  if (got.size() != wanted.size())
    return "size: expected " + std::to_string(wanted.size()) + ", got " + std::to_string(got.size());
  double scale = 1e-3;
  for (const double w : wanted) scale = std::max(scale, std::abs(w));
  constexpr double kTolerance = 3e-5;
  for (size_t k = 0; k < got.size(); ++k)
    if (!(std::abs(got[k] - wanted[k]) <= kTolerance * scale))
      return "element " + std::to_string(k) + ": expected " + std::to_string(wanted[k]) + ", got " +
             std::to_string(got[k]);
  return {};
}

Row try_shape(int64_t number, const Options& options, const Target& target, const Bandwidths& bandwidths,
              const Overheads& overheads) {
  Row row;
  row.number = number;
  Rng rng(static_cast<uint64_t>(options.seed), "shape " + std::to_string(number));
  row.shape = draw_shape(rng);
  try {
    Problem problem = make_problem(row.shape, rng);
    std::vector<HostTensor> inputs;
    for (size_t k = 0; k < problem.inputs.size(); ++k)
      inputs.push_back(HostTensor::view(problem.inputs[k].data(),
                                        problem.graph.type({problem.graph.inputs[k], 0}).static_shape(), kFloat32));
    CompileOptions compile;
    compile.target = target;
    compile.threads = 1;
    compile.opt_level = row.shape.row_major ? 1 : 2;
    const auto program = std::make_shared<const CompiledProgram>(compile_graph(problem.graph, compile));
    if (options.explain)
      for (const CompiledKernel& kernel : program->kernels)
        std::printf("%s\n%s%s\n", kernel.name.c_str(), kernel.explanation.c_str(), kernel.schedule.to_string().c_str());
    const Module module = load_program(program);
    Result<Instance> made = module.create({.threads = 1, .target = {}, .weights_path = {}});
    if (!made) throw UserError(made.failure().id, made.failure().message);
    Instance instance = std::move(made).value();
    Result<std::vector<HostTensor>> outputs = instance.run(inputs);
    if (!outputs) throw UserError(outputs.failure().id, outputs.failure().message);
    row.error = difference(std::as_const((*outputs)[0]).data<float>(), problem.wanted);
    std::vector<HostTensor> results = std::move(outputs).value();
    const Timing timing = time_beside([&] { (void)instance.run_into(inputs, results); }, 1,
                                      [&](double s) { return peak_flops_once(target.vector_bits, s); }, 12);
    row.ms = timing.ms;
    row.peak = row.shape.flops() / timing.units;
    const double activated = row.shape.act == Act::kSigmoid ? row.shape.results() * overheads.sigmoid : 0;
    const double working = row.peak * timing.ms + activated;
    row.bound = (overheads.call + std::max(working, moving_ms(row.shape, bandwidths, target))) / timing.ms;
  } catch (const Error& e) {
    row.error = std::string(e.what()).substr(0, 400);
  }
  return row;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : quantile(values, 0.5);
}

/// The least number of shapes that make a class whose median says something.
constexpr size_t kLeastOfClass = 5;

bool is_slow(const Row& row, double median_peak) { return row.peak < median_peak / 2 && row.bound < 0.5; }

int main_with(const Options& options) {
  const Target& target = Target::host();
  const Bandwidths bandwidths = measure_bandwidths(target);
  const Overheads overheads = measure_overheads(target);
  std::printf("a call %.2f us, a sigmoid %.2f ns\n", 1e3 * overheads.call, 1e6 * overheads.sigmoid);
  std::vector<Row> rows;
  const int64_t first = options.only >= 0 ? options.only : options.first;
  for (int64_t number = first; number < first + (options.only >= 0 ? 1 : options.count); ++number) {
    rows.push_back(try_shape(number, options, target, bandwidths, overheads));
    const Row& row = rows.back();
    if (!row.error.empty() || options.only >= 0)
      std::printf("%s%ld %s: %.4f ms, %.3f of peak %s\n", row.error.empty() ? "" : "WRONG ", row.number,
                  row.shape.text().c_str(), row.ms, row.peak, row.error.c_str());
    std::fflush(stdout);
  }
  std::map<std::string, std::vector<const Row*>> classes;
  for (const Row& row : rows)
    if (row.error.empty()) classes[row.shape.shape_class()].push_back(&row);
  struct Slow {
    const Row* row;
    double of_median;
  };
  std::vector<Slow> ranking;
  std::printf("%-26s %6s %8s %8s %8s %8s %6s\n", "class", "shapes", "least", "tenth", "median", "most", "slow");
  for (const auto& [name, members] : classes) {
    std::vector<double> peaks;
    for (const Row* row : members) peaks.push_back(row->peak);
    std::sort(peaks.begin(), peaks.end());
    const double middle = median(peaks);
    int slow = 0;
    for (const Row* row : members) {
      if (members.size() < kLeastOfClass) continue;
      slow += is_slow(*row, middle);
      ranking.push_back({row, row->peak / middle});
    }
    std::printf("%-26s %6zu %8.3f %8.3f %8.3f %8.3f %6d\n", name.c_str(), members.size(), peaks.front(),
                peaks[peaks.size() / 10], middle, peaks.back(), slow);
  }
  std::sort(ranking.begin(), ranking.end(), [](const Slow& a, const Slow& b) { return a.of_median < b.of_median; });
  std::printf("\nthe worst: of the class's median, of peak, of its own bound\n");
  int slow = 0;
  for (const Slow& entry : ranking) slow += is_slow(*entry.row, entry.row->peak / entry.of_median);
  for (size_t k = 0; k < std::min<size_t>(ranking.size(), options.worst); ++k) {
    const Row& row = *ranking[k].row;
    std::printf("%5.2f %6.3f %6.3f %9.4f ms  %4ld %s\n", ranking[k].of_median, row.peak, row.bound, row.ms, row.number,
                row.shape.text().c_str());
  }
  const auto wrong = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.error.empty(); });
  std::printf("%zu shapes, seed %ld: %ld wrong, %d slower than half of their class's median\n", rows.size(),
              options.seed, static_cast<long>(wrong), slow);
  if (!options.json.empty()) {
    Json json = json_header({"tensmith.bench-random-shapes/1", to_string(target), 1, options.seed, {}});
    json["shapes"] = Json::array();
    for (const Row& row : rows)
      json["shapes"].push_back({{"number", row.number},
                                {"shape", row.shape.text()},
                                {"class", row.shape.shape_class()},
                                {"flops", row.shape.flops()},
                                {"bytes", row.shape.bytes()},
                                {"error", row.error},
                                {"ms", row.ms},
                                {"fraction_of_peak", row.peak},
                                {"fraction_of_bound", row.bound}});
    if (const Result<void> ok = write_json(options.json, json); !ok) {
      std::fprintf(stderr, "%s\n", ok.failure().message.c_str());
      return 2;
    }
  }
  return wrong || slow ? 1 : 0;
}

}  // namespace
}  // namespace tensmith::bench

int main(int argc, char** argv) {
  tensmith::bench::Options options;
  for (int k = 1; k < argc; ++k) {
    const auto number = [&](const char* flag, int64_t& into) {
      if (std::strcmp(argv[k], flag) != 0 || k + 1 >= argc) return false;
      char* end = nullptr;
      into = std::strtoll(argv[++k], &end, 10);
      return *end == 0 && into >= 0;
    };
    if (number("--count", options.count) || number("--seed", options.seed) || number("--first", options.first) ||
        number("--only", options.only) || number("--worst", options.worst))
      continue;
    if (std::strcmp(argv[k], "--quick") == 0) {
      options.count = 60;
    } else if (std::strcmp(argv[k], "--explain") == 0) {
      options.explain = true;
    } else if (std::strcmp(argv[k], "--json") == 0 && k + 1 < argc) {
      options.json = argv[++k];
    } else {
      std::fprintf(stderr,
                   "random_shapes: unexpected argument '%s'; usage: random_shapes [--quick] [--first N] [--count N] "
                   "[--seed S] [--only NUMBER] [--worst N] [--explain] [--json FILE]\n",
                   argv[k]);
      return 2;
    }
  }
  try {
    return tensmith::bench::main_with(options);
  } catch (const tensmith::Error& e) {
    std::fprintf(stderr, "random_shapes: %s\n", e.what());
    return tensmith::exit_code(e.kind());
  }
}
