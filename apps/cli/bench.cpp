#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <thread>

#include "apps/cli/commands.h"
#include "apps/cli/kernel_check.h"
#include "apps/cli/model.h"
#include "apps/cli/peer.h"

namespace tensmith::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct Figures {
  double min = 0, median = 0, p90 = 0, mean = 0, spread = 0;
};

Figures figures(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  Figures f;
  f.min = times.front();
  f.median = times[times.size() / 2];
  f.p90 = times[std::min(times.size() - 1, times.size() * 9 / 10)];
  for (double t : times) f.mean += t / static_cast<double>(times.size());
  f.spread = f.median > 0 ? (f.p90 - f.min) / f.median : 0;
  return f;
}

void add(Json& json, const Figures& f, size_t runs) {
  json["min_ms"] = f.min;
  json["median_ms"] = f.median;
  json["p90_ms"] = f.p90;
  json["mean_ms"] = f.mean;
  json["spread"] = f.spread;
  json["runs"] = runs;
}

/// Ours, ready to be timed.
struct Timed {
  Instance instance;
  std::vector<HostTensor> inputs, outputs;
  std::vector<double> run(int count) {
    take(instance.run_into(inputs, outputs));
    std::vector<double> times;
    for (int k = 0; k < count; ++k) {
      const auto start = Clock::now();
      take(instance.run_into(inputs, outputs));
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    return times;
  }
};

int serve(Timed& timed, const LoadedModel& model, double first_ms) {
  Json ready{{"ready", true},
             {"tool", "tensmith"},
             {"version", tool_version()},
             {"load_ms", model.import_ms + model.load_ms},
             {"first_ms", first_ms}};
  std::cout << ready.dump() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "quit") return 0;
    int count = 0;
    if (std::sscanf(line.c_str(), "run %d", &count) != 1 || count < 1 || count > 1'000'000) {
      std::cout << Json{{"error", "expected 'run N' or 'quit', got '" + line + "'"}}.dump() << std::endl;
      continue;
    }
    std::cout << Json{{"times_ms", timed.run(count)}}.dump() << std::endl;
  }
  return 0;
}

}  // namespace

int bench(const Options& options) {
  check_writable("--json", options.json_file);
  TS_USER_CHECK(options.compare.empty() || options.compare == "onnxruntime", "unknown-peer")
      << "--compare " << options.compare << ": expected onnxruntime, got '" << options.compare << "'";
  TS_USER_CHECK(options.compare.empty() || !is_library(options.model), "unknown-peer")
      << "--compare onnxruntime: expected the ONNX model, got the library " << options.model;
  std::map<std::string, HostTensor> arrays = read_arrays(options);
  const LoadedModel model = load_model(options, arrays);
  std::vector<HostTensor> inputs = make_inputs(model, options, std::move(arrays));
  Instance instance = make_instance(*model.module, options);
  check_if_asked(model, instance, options, inputs);
  const auto start = Clock::now();
  std::vector<HostTensor> outputs = take(instance.run(inputs));
  const double first_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  const int threads = instance.threads();
  Timed timed{std::move(instance), std::move(inputs), std::move(outputs)};
  if (options.serve) return serve(timed, model, first_ms);

  Json json = json_header(provenance("tensmith.bench/1", options, model, threads));
  json["model"] = options.model;
  json["import_ms"] = model.import_ms;
  json["compile_ms"] = model.load_ms;
  json["first_ms"] = first_ms;
  std::vector<double> ours, theirs;
  std::unique_ptr<Peer> peer;
  if (!options.compare.empty()) {
    peer = std::make_unique<Peer>(options.model, threads, model.module->model(), timed.inputs);
  }
  const RunProfile profile(timed.instance);
  // Rounds alternate, so that whatever else the machine does meets both.
  const int pieces = peer ? std::min(options.rounds, 10) : 1;
  for (int piece = 0; piece < pieces; ++piece) {
    const int count = options.rounds * (piece + 1) / pieces - options.rounds * piece / pieces;
    for (double t : timed.run(count)) ours.push_back(t);
    if (!peer) continue;
    // The threads of whoever ran last spin for a while; they must not take the other's cores.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (double t : peer->run(count)) theirs.push_back(t);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const Figures mine = figures(ours);
  add(json, mine, ours.size());
  if (peer) {
    const Figures other = figures(theirs);
    Json compared{{"name", options.compare}, {"version", peer->version()}};
    add(compared, other, theirs.size());
    compared["ratio_min"] = other.min / mine.min;
    compared["ratio_median"] = other.median / mine.median;
    json["compare"] = compared;
  }
  if (!options.json_file.empty()) take(write_json(options.json_file, json));
  if (options.json) {
    std::cout << json_text(json);
    return 0;
  }
  // Four digits: a run differs from the next by more than the fifth.
  std::cout << std::setprecision(4) << "tensmith " << tool_version() << ": min " << mine.min << " ms, median "
            << mine.median << " ms, p90 " << mine.p90 << " ms, " << counted(ours.size(), "run") << ", "
            << counted(static_cast<size_t>(threads), "thread") << "\n";
  const auto number = [&](const char* key) { return json["compare"][key].get<double>(); };
  if (peer)
    std::cout << options.compare << " " << peer->version() << ": min " << number("min_ms") << " ms, median "
              << number("median_ms") << " ms\n"
              << "their time / ours: " << number("ratio_median") << " by median, " << number("ratio_min")
              << " by minimum\n";
  return 0;
}

}  // namespace tensmith::cli
