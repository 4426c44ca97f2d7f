#include "apps/driver/compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "apps/driver/in_place.h"
#include "apps/driver/main_program.h"
#include "apps/driver/pack.h"
#include "autotune/default_schedule.h"
#include "graph/partition/group_workload.h"
#include "graph/partition/placement.h"
#include "graph/partition/support.h"
#include "graph/pipeline.h"
#include "runtime/base/config.h"
#include "runtime/base/files.h"
#include "runtime/base/log.h"
#include "tensor/print.h"

namespace tensmith {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A kernel to be made and who asked for it.
struct KernelTask {
  graph::GroupWorkload work;
  ScheduleRequest request;
  CompiledKernel* info = nullptr;
};

Layout layout_of(const graph::LayoutMap& layouts, const graph::PlacementPlan& placements, const graph::Value& value) {
  if (const auto placed = placements.places.find(value); placed != placements.places.end())
    return placed->second.layout;
  const auto it = layouts.find(value);
  return it == layouts.end() ? Layout() : it->second;
}

std::string kernel_key(const graph::GroupWorkload& work, const ScheduleRequest& request) {
  std::string key = to_text(work.workload);
  for (const Layout& layout : request.input_layouts) key += "|" + layout.text();
  for (const Layout& layout : request.output_layouts) key += "|" + layout.text();
  return key;
}

double traffic_of(const Workload& workload) {
  double bytes = 0;
  const auto add = [&](const Tensor& tensor) {
    double size = static_cast<double>(tensor.dtype().bytes());
    for (const Expr& extent : tensor.shape()) {
      int64_t value;
      if (as_const_int(extent, &value)) size *= static_cast<double>(value);
    }
    bytes += size;
  };
  for (const Tensor& input : workload.inputs) add(input);
  for (const Tensor& output : workload.outputs) add(output);
  return bytes;
}

double flops_of(const graph::Graph& graph, const graph::Group& group) {
  double flops = 0;
  for (graph::NodeId id : group.nodes) {
    const graph::Node& node = graph.node(id);
    if (node.op->flops) {
      graph::InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
      for (const graph::Value& input : node.inputs) {
        context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
        context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
      }
      flops += node.op->flops(context);
    } else {
      double elements = 1;
      for (const Expr& extent : node.types[0].shape) {
        int64_t value;
        if (as_const_int(extent, &value)) elements *= static_cast<double>(value);
      }
      flops += node.op->fusion == graph::FusionKind::kInjective ? 0 : elements;
    }
  }
  return flops;
}

std::string kernel_name(const graph::Graph& graph, const graph::Group& group, size_t number) {
  std::string name = "k" + std::to_string(number);
  size_t shown = 0;
  for (graph::NodeId id : group.nodes) {
    if (shown++ == 3) break;
    name += "_";
    for (char c : graph.node(id).op->name)
      name += static_cast<char>(std::isalnum(static_cast<unsigned char>(c)) ? std::tolower(c) : '_');
  }
  return name;
}

ObjectCode make_kernel(KernelTask& task, const CompileOptions& options, std::mutex& hooks) {
  CompiledKernel& info = *task.info;
  auto start = Clock::now();
  LowerOptions lower_options = options.lower;
  if (options.lower.on_pass)
    lower_options.on_pass = [&](int number, const char* pass, const LoopFunction& function) {
      const std::lock_guard lock(hooks);
      options.lower.on_pass(number, pass, function);
    };
  try {
    info.schedule = default_schedule(task.work.workload, task.request, &info.explanation);
    info.schedule_ms = ms_since(start);
    start = Clock::now();
    info.lowered = lower(info.schedule, lower_options);
  } catch (const Error& e) {
    // Slow but right beats refusing; it is our fault and said so.
    info.schedule = plain_schedule(task.work.workload, task.request);
    info.explanation += std::string("plain loops, because the default schedule failed: ") + e.what() + "\n";
    info.is_plain = true;
    TS_LOG(kWarning) << "kernel " << info.name << " runs as plain loops: " << std::string(e.what()).substr(0, 300);
    info.lowered = lower(info.schedule, lower_options);
  }
  info.lowered.function.name = options.prefix + info.name;
  mark_in_place(info.lowered, in_place_pairs(info.schedule));
  info.lower_ms = ms_since(start);
  start = Clock::now();
  CodegenOptions codegen;
  codegen.want_asm = options.want_asm;
  codegen.fast_math = options.fast_math;
  codegen.module_name = info.name;
  ObjectCode object = compile(LoopProgram{{info.lowered.function}}, options.target, codegen);
  info.codegen_ms = ms_since(start);
  info.assembly = std::move(object.assembly);
  object.assembly.clear();
  return object;
}

/// Runs all tasks on as many threads as the process may use; the first error is thrown again.
std::vector<ObjectCode> make_kernels(std::vector<KernelTask>& tasks, const CompileOptions& options) {
  std::vector<ObjectCode> objects(tasks.size());
  std::atomic<size_t> next{0};
  std::mutex hooks, failed;
  std::exception_ptr error;
  const auto work = [&] {
    for (size_t k = next++; k < tasks.size(); k = next++) {
      try {
        objects[k] = make_kernel(tasks[k], options, hooks);
      } catch (const ScheduleError& e) {
        // A default schedule that cannot be lowered is our fault: say which, so that it can be repeated.
        const std::lock_guard lock(failed);
        if (!error)
          error = std::make_exception_ptr(InternalError(
              "kernel " + tasks[k].info->name + " (" + tasks[k].info->first_node + "): " + e.what() + "\nworkload:\n" +
              to_text(tasks[k].work.workload) + "\nschedule:\n" + tasks[k].info->schedule.to_string()));
        next = tasks.size();
      } catch (...) {
        const std::lock_guard lock(failed);
        if (!error) error = std::current_exception();
        next = tasks.size();
      }
    }
  };
  std::vector<std::thread> threads;
  const size_t count = std::min<size_t>(tasks.size(), std::max(1, Target::host().cores));
  for (size_t k = 1; k < count; ++k) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return objects;
}

std::vector<PortSpec> ports(const graph::Graph& graph, const std::vector<graph::Value>& values,
                            const std::vector<std::string>& names) {
  std::vector<PortSpec> list;
  for (size_t k = 0; k < values.size(); ++k) {
    const graph::TensorType& type = graph.type(values[k]);
    list.push_back({names[k], type.dtype, type.static_shape()});
  }
  return list;
}

}  // namespace

int64_t PortSpec::bytes() const {
  int64_t count = dtype.bytes();
  for (int64_t extent : shape) count *= extent;
  return count;
}

namespace {

/// The switches that concern lowering: verification, bisecting, printing and dumping of loops.
void apply_switches(const Config& config, CompileOptions& options) {
  options.lower.verify_each = options.lower.verify_each || config.verify_each;
  const bool print = !config.print_ir.empty(), dump = !config.dump.empty();
  if (!options.lower.on_pass && (print || dump)) {
    const auto wanted = [config](const char* pass, const std::string& text) {
      if (!config.filter.empty() && text.find(config.filter) == std::string::npos) return false;
      const std::string after = "after:" + std::string(pass);
      return config.print_ir == "after-change" || config.print_ir == "after-each" || config.print_ir == after;
    };
    options.lower.on_pass = [config, wanted](int number, const char* pass, const LoopFunction& function) {
      const std::string text = to_string(function);
      if (wanted(pass, text)) std::fprintf(stderr, "// after %d %s\n%s\n", number, pass, text.c_str());
      if (config.dump.empty()) return;
      char name[32];
      std::snprintf(name, sizeof name, "%016llx_%02d_",
                    static_cast<unsigned long long>(std::hash<std::string>{}(function.name)), number);
      const Result<void> written = write_file(config.dump + "/loops_" + name + pass + ".ir", text);
      if (!written) throw UserError(written.failure().id, written.failure().message);
    };
  }
}

}  // namespace

CompiledProgram compile_graph(graph::Graph& graph, const CompileOptions& given) {
  CompileOptions options = given;
  apply_switches(*config(), options);
  if (options.threads <= 0) options.threads = options.target.cores;
  const auto start = Clock::now();
  CompiledProgram program;
  program.prefix = options.prefix;
  program.target = options.target;
  program.threads = options.threads;
  program.default_threads = given.threads;
  program.stats.nodes_in = static_cast<int>(graph.num_nodes());
  graph::PipelineOptions pipeline = graph::pipeline_options(*config(), options.opt_level);
  const std::vector<graph::PassRecord> records = graph::optimize(graph, pipeline);
  program.pass_records = records;
  program.stats.nodes_out = static_cast<int>(graph.num_nodes());
  if (const graph::UnsupportedReport report = graph::unsupported_nodes(graph); !report.empty())
    throw UnsupportedError(report.rows[0].id,
                           "model: expected only what can be compiled, got these:\n" + to_string(report));

  std::string explanation;
  std::string* const explain = options.explain ? &explanation : nullptr;
  const std::string& wanted = config()->layouts;
  const graph::LayoutChoice choice = wanted == "channels-last" ? graph::LayoutChoice::kChannelsLast
                                     : wanted == "blocked"     ? graph::LayoutChoice::kBlocked
                                                               : graph::LayoutChoice::kPriced;
  const graph::LayoutMap layouts =
      options.opt_level >= 2 ? choose_layouts(graph, options.target, choice) : graph::LayoutMap();
  const graph::PlacementPlan placements = place_values(graph, layouts, explain);
  const std::vector<graph::Group> groups = fuse(graph, {options.opt_level > 0, placements.free}, explain);
  program.fusion_explanation = explanation;
  program.stats.groups = static_cast<int>(groups.size());
  if (options.dump) options.dump("graph", "optimised", to_string(graph));

  MainProgramBuilder builder(graph, layouts, placements, options.prefix);
  std::vector<KernelTask> tasks;
  std::vector<std::unique_ptr<CompiledKernel>> infos;
  std::unordered_map<std::string, int> known;
  for (const graph::Group& group : groups) {
    KernelTask task{make_group_workload(graph, group, "kernel"), {options.target, options.threads, {}, {}}, nullptr};
    for (const graph::Value& value : task.work.inputs)
      task.request.input_layouts.push_back(layout_of(layouts, placements, value));
    for (const graph::Value& value : task.work.outputs)
      task.request.output_layouts.push_back(layout_of(layouts, placements, value));
    const auto [it, fresh] = known.try_emplace(kernel_key(task.work, task.request), static_cast<int>(tasks.size()));
    std::string label;
    for (graph::NodeId id : group.nodes) label += (label.empty() ? "" : "+") + graph.node(id).name;
    builder.add_call(group, task.work, it->second);
    program.calls.push_back({it->second, label});
    if (!fresh) continue;
    infos.push_back(std::make_unique<CompiledKernel>(Schedule(task.work.workload)));
    task.info = infos.back().get();
    task.info->name = kernel_name(graph, group, tasks.size());
    task.info->first_node = graph.node(group.nodes[0]).name;
    task.info->flops = flops_of(graph, group);
    task.info->bytes = traffic_of(task.work.workload);
    for (graph::NodeId id : group.nodes) task.info->ops.push_back(graph.node(id).op->name);
    tasks.push_back(std::move(task));
  }
  program.stats.passes_ms = ms_since(start);

  const auto kernels_start = Clock::now();
  program.objects = make_kernels(tasks, options);
  for (auto& info : infos) program.kernels.push_back(std::move(*info));
  program.stats.kernels_ms = ms_since(kernels_start);

  const auto weights_start = Clock::now();
  builder.finish(program);
  program.stats.weights_ms = ms_since(weights_start);
  CodegenOptions codegen;
  codegen.module_name = "main";
  program.objects.push_back(compile(builder.functions(), options.target, codegen));
  std::vector<graph::Value> inputs;
  std::vector<std::string> input_names;
  for (graph::NodeId id : graph.inputs) {
    inputs.push_back({id, 0});
    input_names.push_back(graph.value_name({id, 0}));
  }
  program.inputs = ports(graph, inputs, input_names);
  program.outputs = ports(graph, graph.outputs, graph.output_names);
  program.stats.total_ms = ms_since(start);
  return program;
}

}  // namespace tensmith
