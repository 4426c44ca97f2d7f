// A kernel engineer's walk: write a tensor expression, look at its default schedule, write one by hand, let the tuner
// search, compare the three, ship the best as an object file with a C header.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "apps/driver/trials.h"
#include "autotune/default_schedule.h"
#include "autotune/records/record_index.h"
#include "autotune/space/space.h"
#include "codegen/artifact.h"
#include "schedule/lower/lowering.h"
#include "tensor/print.h"

using namespace tensmith;

namespace {

/// K[i, j] = exp(-gamma * sum over f of (x[i, f] - y[j, f])^2): the kernel matrix of radial basis functions between
/// `rows` points and `columns` constant ones of `features` coordinates. No library has it as an operator.
Workload rbf(int64_t rows, int64_t columns, int64_t features) {
  const Tensor x = placeholder("x", {rows, features}, kFloat32);
  const Tensor y = placeholder("y", {columns, features}, kFloat32, /*is_constant=*/true);
  const Tensor distance = sum("distance", {rows, columns}, {features}, [&](const Indices& i, const Indices& r) {
    const Expr difference = x(i[0], r[0]) - y(i[1], r[0]);
    return difference * difference;
  });
  const Tensor k = compute("k", {rows, columns}, [&](const Indices& i) {
    return Call::make(kFloat32, Intrinsic::kExp, {distance(i[0], i[1]) * FloatImm::make(kFloat32, -0.5)});
  });
  return make_workload("rbf", {x, y}, {k});
}

/// What one might write first: four rows by two vectors of columns, points transposed so that lanes lie side by side.
Schedule by_hand(const Workload& workload, int lanes) {
  Schedule s(workload);
  s.transform_layout("y", "1,0");
  s.split("k", "i0", 4, "rows", "row", Tail::kPeel);
  s.split("k", "i1", 2 * lanes, "columns", "column", Tail::kPeel);
  s.split("k", "column", lanes, "vector", "lane", Tail::kPeel);
  s.reorder("k", {"rows", "columns", "row", "vector", "lane"});
  s.vectorize("k", "lane");
  s.unroll("k", "vector");
  s.unroll("k", "row");
  s.parallel("k", "rows");
  s.compute_at("distance", "k", "columns");
  s.tile("distance", {"i0"}, "i1", lanes);
  return s;
}

void show(const char* title, const Schedule& schedule) {
  std::cout << "== " << title << "\n" << schedule.to_string() << "\n";
}

/// Writes the kernel as `rbf.o` with `rbf.h`. Its buffers are those of the lowered function, in order.
void ship(const Schedule& schedule, const Target& target, const std::string& folder) {
  LoweredKernel kernel = lower(schedule);
  const ObjectCode object = compile(LoopProgram{{kernel.function}}, target);
  std::ofstream(folder + "/rbf.o", std::ios::binary)
      .write(reinterpret_cast<const char*>(object.bytes.data()), static_cast<std::streamsize>(object.bytes.size()));
  std::ofstream header(folder + "/rbf.h");
  header << "#include <stdint.h>\n/* A null context: one thread. Buffers are aligned to 64 bytes:\n";
  for (const Buffer& buffer : kernel.function.buffers) {
    header << " * " << buffer->name << ":";
    for (const Expr& extent : buffer->shape) header << " " << to_string(extent);
    header << "\n";
  }
  header << " */\nint32_t " << kernel.function.name << "(const void* context";
  for (const Buffer& buffer : kernel.function.buffers) header << ", void* " << buffer->name;
  header << ");\n";
}

int walk(const std::string& worker, const std::string& folder, int64_t trials) {
  const Workload workload = rbf(200, 250, 96);
  ScheduleRequest request;
  request.target = Target::host();
  request.threads = 1;
  std::cout << to_text(workload) << "\n";

  std::string why;
  const Schedule usual = default_schedule(workload, request, &why);
  show("the default schedule, and why", usual);
  std::cout << why << "\n";

  const Schedule mine = by_hand(workload, request.target.lanes(4));
  show("by hand", mine);
  std::cout << "its loops:\n" << to_string(lower(mine).function) << "\n";

  // Search. Every trial is checked against plain loops and kept in a file; the same call goes on from it.
  const std::vector<TuningTask> tasks{{workload, request, "rbf", 1, 3.0 * 200 * 250 * 96, 0, 0, false, true}};
  SessionOptions session;
  session.worker = {worker, "worker", "--stdio"};
  const std::string records = folder + "/rbf.jsonl";
  TunerOptions options;
  options.trials = trials;
  {
    SessionMeasurer measurer(session);
    Result<RecordStore> opened = RecordStore::open(records, tasks, options.seed);
    if (!opened) throw UserError(opened.failure().id, opened.failure().message);
    RecordStore store = std::move(opened).value();
    const TuningReport report = tune(tasks, options, measurer, store);
    std::cout << "tuned with " << report.trials << " trials in " << report.elapsed_s
              << " s: " << to_string(report.why_stopped) << "\n";
  }
  const RecordIndex index = RecordIndex::read({records}).value();
  const RecordFound found = index.best(workload, request);
  if (!found.record) throw UserError("no-valid-candidate", "tuning: " + found.reason);
  Schedule tuned(workload);
  for (const Step& step : found.record->steps) tuned.apply(step);
  show("tuned", tuned);

  // All three in one process, in turns with the default.
  MeasureSession measure(session);
  const int task = measure.add_task({workload, request, false, true, 0, 1}).value();
  std::cout << "== compared\n";
  for (const auto& [name, schedule] :
       {std::pair<const char*, const Schedule*>{"default", &usual}, {"by hand", &mine}, {"tuned", &tuned}}) {
    MeasureCandidate candidate;
    candidate.steps = schedule->steps();
    candidate.thorough = true;
    candidate.make_incumbent = schedule == &usual;
    measure.submit(task, std::move(candidate));
    const std::optional<MeasureResult> result = measure.wait(60);
    if (!result || !result->valid()) {
      std::printf("%-8s %s\n", name, result ? result->message.c_str() : "no answer");
      return 1;
    }
    std::printf("%-8s %8.1f us, %5.1f GFLOP/s, n = %zu, spread %.1f %%\n", name, result->cost_us,
                3.0 * 200 * 250 * 96 / result->cost_us * 1e-3, result->timing.windows_us.size(),
                100 * result->timing.spread);
  }
  std::fflush(stdout);
  ship(tuned, request.target, folder);
  std::cout << folder << "/rbf.o and rbf.h are ready\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: " << argv[0] << " TENSMITH FOLDER TRIALS\n";
    return 2;
  }
  try {
    return walk(argv[1], argv[2], std::atoll(argv[3]));
  } catch (const Error& e) {
    std::cerr << "example: " << e.what() << "\n";
    return exit_code(e.kind());
  }
}
