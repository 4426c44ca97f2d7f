#include "apps/driver/compile.h"

#include <chrono>
#include <unordered_map>

#include "apps/driver/choices.h"
#include "apps/driver/cost.h"
#include "apps/driver/kernels.h"
#include "apps/driver/main_program.h"
#include "apps/driver/reduce.h"
#include "apps/driver/reproducer.h"
#include "apps/driver/subgraph.h"
#include "autotune/inside_place.h"
#include "graph/partition/group_workload.h"
#include "graph/partition/placement.h"
#include "graph/partition/support.h"
#include "graph/pipeline.h"
#include "runtime/base/config.h"
#include "runtime/time_line.h"

namespace tensmith {

namespace {

Layout layout_of(const graph::LayoutMap& layouts, const graph::PlacementPlan& placements, const graph::Value& value) {
  if (const auto placed = placements.places.find(value); placed != placements.places.end())
    return placed->second.layout;
  const auto it = layouts.find(value);
  return it == layouts.end() ? Layout() : it->second;
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

/// A graph ready to be compiled kernel by kernel.
struct Front {
  graph::LayoutMap layouts;
  graph::PlacementPlan placements;
  std::vector<graph::Group> groups;
};

/// Refuses tensors that alone exceed what is allowed, before anything is compiled for them.
void check_sizes(const graph::Graph& graph, int64_t limit) {
  for (graph::NodeId id : graph.topological_order()) {
    const graph::Node& node = graph.node(id);
    for (size_t k = 0; k < node.types.size(); ++k) {
      int64_t bytes = node.types[k].dtype.bytes(), extent = 0;
      bool fits = true;
      for (const Expr& dim : node.types[k].shape)
        if (as_const_int(dim, &extent)) fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
      TS_USER_CHECK(fits && bytes <= limit, "arena-too-large")
          << "node " << node.name << ": tensor " << node.output_names[k] << " " << to_string(node.types[k])
          << ": expected at most " << (limit >> 20) << " MiB, got "
          << (fits ? std::to_string(bytes >> 20) : std::string("more")) << "; use smaller dims or raise "
          << "--memory-limit-mib";
    }
  }
}

Front run_front(graph::Graph& graph, const CompileOptions& options, const graph::PipelineOptions& pipeline,
                CompileObserver& observer, std::vector<graph::PassRecord>* records, MadeChoices* choices) {
  ChoiceMaker maker(graph, options);
  const graph::Chooser chooser = maker.chooser();
  graph::PipelineOptions for_target = pipeline;
  for_target.passes.choose = chooser;
  for_target.passes.target = options.target;
  for_target.passes.explain = observer.listener();
  *records = graph::optimize(graph, for_target);
  observer.chosen();
  observer.stop_if(StopAt::kGraph, to_string(graph) + "\n");
  if (const graph::UnsupportedReport report = graph::unsupported_nodes(graph); !report.empty())
    throw UnsupportedError(report.rows[0].id,
                           "model: expected only what can be compiled, got these:\n" + to_string(report));
  check_sizes(graph, config()->memory_limit_mib << 20);
  Front front;
  Timer timer;
  const std::string& wanted = config()->layouts;
  const graph::LayoutChoice choice = wanted == "channels-last" ? graph::LayoutChoice::kChannelsLast
                                     : wanted == "blocked"     ? graph::LayoutChoice::kBlocked
                                                               : graph::LayoutChoice::kPriced;
  if (options.opt_level >= 2) front.layouts = choose_layouts(graph, options.target, choice, nullptr, chooser);
  observer.time("layouts", timer.ms());
  observer.laid_out(graph, front.layouts);
  timer.restart();
  std::string explanation;
  front.placements = place_values(graph, front.layouts, &explanation);
  observer.time("placement", timer.ms());
  observer.placed(explanation);
  timer.restart();
  explanation.clear();
  graph::FuseOptions fusion{options.opt_level > 0, front.placements.free};
  if (options.opt_level >= 2) fusion.near_bytes = near_bytes(options.target);
  front.groups = fuse(graph, fusion, &explanation);
  observer.time("fuse", timer.ms());
  for (size_t k = 0; k < front.groups.size(); ++k) {
    explanation += "group " + std::to_string(k) + ":";
    for (graph::NodeId id : front.groups[k].nodes) explanation += " " + graph.node(id).name;
    explanation += "\n";
  }
  observer.fused(explanation);
  *choices = maker.take();
  observer.decided(choice_list(*choices));
  return front;
}

/// The smallest part of the model whose passes fail in the same way.
graph::Graph reduced(const graph::Graph& original, const CompileOptions& options, const std::string& message) {
  const auto run = [&](const graph::Graph& part) {
    graph::Graph copy = part.clone();
    graph::PipelineOptions pipeline = graph::pipeline_options(*config(), options.opt_level);
    pipeline.observer = nullptr;
    CompileObserver silent{Config{}};
    std::vector<graph::PassRecord> records;
    MadeChoices choices;
    const Front front = run_front(copy, options, pipeline, silent, &records, &choices);
    for (const graph::Group& group : front.groups) make_group_workload(copy, group, "kernel");
  };
  return reduce_to_failure(original, run, message, /*seconds=*/5);
}

/// The nodes of a group alone, fed like its kernel.
std::shared_ptr<const graph::Graph> reference_of(const graph::Graph& graph, const graph::Group& group,
                                                 const graph::GroupWorkload& work) {
  std::vector<graph::Value> inputs;
  for (const graph::Value& input : work.inputs)
    if (!graph.constant(input)) inputs.push_back(input);
  Result<graph::Graph> part = cut_subgraph(graph, group.nodes, inputs, work.outputs);
  return part ? std::make_shared<const graph::Graph>(std::move(part).value()) : nullptr;
}

/// `original` is let go when all passes are done: its weights would be memory beside those that passes made of them.
CompiledProgram compile_with(graph::Graph& graph, std::optional<graph::Graph>& original, const CompileOptions& options,
                             CompileObserver& observer) {
  const Timer total;
  CompiledProgram program;
  program.prefix = options.prefix;
  program.target = options.target;
  program.threads = options.threads;
  program.stats.nodes_in = static_cast<int>(graph.num_nodes());
  const ScopedSpan whole(process_time_line(), "compile", "compile");
  std::optional<ScopedSpan> span(std::in_place, process_time_line(), "graph passes", "compile");
  const Front front = run_front(graph, options, graph::pipeline_options(*config(), options.opt_level), observer,
                                &program.pass_records, &program.choices);
  program.stats.nodes_out = static_cast<int>(graph.num_nodes());
  program.stats.groups = static_cast<int>(front.groups.size());

  MainProgramBuilder builder(graph, front.layouts, front.placements, options.prefix);
  std::vector<KernelTask> tasks;
  std::vector<std::unique_ptr<CompiledKernel>> infos;
  std::unordered_map<std::string, int> known;
  for (const graph::Group& group : front.groups) {
    KernelTask task{
        make_group_workload(graph, group, "kernel"), {options.target, options.threads, {}, {}}, group, nullptr};
    for (const graph::Value& value : task.work.inputs)
      task.request.input_layouts.push_back(layout_of(front.layouts, front.placements, value));
    for (const graph::Value& value : task.work.outputs)
      task.request.output_layouts.push_back(layout_of(front.layouts, front.placements, value));
    const auto [it, fresh] = known.try_emplace(kernel_key(task.work, task.request), static_cast<int>(tasks.size()));
    std::string label;
    for (graph::NodeId id : group.nodes) label += (label.empty() ? "" : "+") + graph.node(id).name;
    std::vector<graph::IndexLimits> limits;
    for (graph::NodeId id : group.nodes)
      if (std::optional<graph::IndexLimits> of_node = graph::index_limits(graph, id)) limits.push_back(*of_node);
    builder.add_call(task.work, it->second, std::move(limits));
    program.calls.push_back(
        {it->second, label, options.want_references ? reference_of(graph, group, task.work) : nullptr});
    if (!fresh) continue;
    infos.push_back(std::make_unique<CompiledKernel>(Schedule(task.work.workload)));
    task.info = infos.back().get();
    task.info->request = task.request;
    task.info->name = kernel_name(graph, group, tasks.size());
    task.info->first_node = graph.node(group.nodes[0]).name;
    task.info->cost = cost_of(graph, group, task.work);
    for (graph::NodeId id : group.nodes) task.info->ops.push_back(graph.node(id).op->name);
    tasks.push_back(std::move(task));
  }
  original.reset();
  program.stats.passes_ms = total.ms();

  Timer timer;
  span.emplace(process_time_line(), "kernels", "compile");
  program.objects = make_kernels(graph, tasks, options, observer);
  for (auto& info : infos) program.kernels.push_back(std::move(*info));
  program.stats.kernels_ms = timer.ms();

  timer.restart();
  span.emplace(process_time_line(), "memory plan and weights", "compile");
  builder.finish(program);
  program.stats.weights_ms = timer.ms();
  observer.time("memory plan and weights", program.stats.weights_ms);
  TS_USER_CHECK(program.arena_bytes >> 20 <= config()->memory_limit_mib, "arena-too-large")
      << "model: expected an arena of at most " << config()->memory_limit_mib << " MiB, got "
      << (program.arena_bytes >> 20) << "; use smaller dims or raise --memory-limit-mib";
  span.emplace(process_time_line(), "main", "compile");
  CodegenOptions codegen;
  codegen.module_name = "main";
  codegen.want_asm = codegen.want_llvm_ir = observer.wants_code_text("main");
  ObjectCode main = compile(builder.functions(), options.target, codegen);
  observer.finished(program, main);
  main.assembly.clear();
  main.llvm_ir.clear();
  program.objects.push_back(std::move(main));
  std::vector<graph::Value> inputs;
  std::vector<std::string> input_names;
  for (graph::NodeId id : graph.inputs) {
    inputs.push_back({id, 0});
    input_names.push_back(graph.value_name({id, 0}));
  }
  program.inputs = ports(graph, inputs, input_names);
  program.outputs = ports(graph, graph.outputs, graph.output_names);
  program.stats.total_ms = total.ms();
  observer.print_times(program.pass_records);
  return program;
}

}  // namespace

CompiledProgram compile_graph(graph::Graph& graph, const CompileOptions& given) {
  const std::shared_ptr<const Config> switches = config();
  CompileOptions options = given;
  if (options.threads <= 0) options.threads = options.target.cores;
  if (options.compile_threads <= 0)
    options.compile_threads = static_cast<int>(std::clamp<int64_t>(switches->compile_threads, 0, kMaxCompileThreads));
  options.contract_fma = options.contract_fma && switches->contract;
  options.want_references = options.want_references || switches->check;
  CompileObserver observer(*switches);
  std::optional<graph::Graph> original = graph.clone();  // constants are shared
  try {
    CompiledProgram program = compile_with(graph, original, options, observer);
    program.default_threads = given.threads;
    return program;
  } catch (const ReproducibleError&) {
    throw;
  } catch (const InternalError& e) {
    const std::string model =
        original ? reproducer_graph(reduced(*original, options, e.message())) : reproducer_graph(graph);
    throw ReproducibleError(e.message(), {{"error.txt", e.message() + "\n"}, {"model.graph", model}});
  }
}

}  // namespace tensmith
