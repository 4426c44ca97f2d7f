#include "apps/driver/kernels.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <exception>
#include <system_error>
#include <thread>

#include "apps/driver/reproducer.h"
#include "apps/driver/subgraph.h"
#include "apps/driver/tuned.h"
#include "runtime/base/config.h"
#include "runtime/base/log.h"
#include "runtime/time_line.h"
#include "schedule/lower/in_place.h"
#include "schedule/trace.h"

namespace tensmith {

namespace {

/// What repeats a failure of this kernel alone.
ReproducerFiles files_of(const graph::Graph& graph, const KernelTask& task, const std::string& error) {
  ReproducerFiles files{
      {"error.txt", error + "\n"},
      {"workload.txt", to_text(task.work.workload)},
      {"schedule.json", trace_to_json(trace_of(task.info->schedule))},
      {"schedule.txt", task.info->schedule.to_string()},
      {"target.txt", to_string(task.request.target) + "\nthreads " + std::to_string(task.request.threads) + "\n"}};
  std::string layouts;
  for (const auto* list : {&task.request.input_layouts, &task.request.output_layouts})
    for (const Layout& layout : *list) layouts += (layout.dims().empty() ? "row-major" : layout.text()) + "\n";
  files["layouts.txt"] = layouts;
  std::vector<graph::Value> inputs;
  for (const graph::Value& input : task.group.inputs)
    if (!graph.constant(input)) inputs.push_back(input);
  if (const Result<graph::Graph> part = cut_subgraph(graph, task.group.nodes, inputs, task.group.outputs))
    files["kernel.graph"] = reproducer_graph(part.value());
  return files;
}

void schedule_and_lower(KernelTask& task, const CompileOptions& options, CompileObserver& observer) {
  CompiledKernel& info = *task.info;
  LowerOptions lowering = observer.lower_options(info.name, options.lower);
  lowering.line_bytes = options.target.line_bytes;
  const auto lower_now = [&] {
    if (observer.stop_at() == StopAt::kSchedule) return;
    const ScopedSpan span(process_time_line(), "lower " + info.name, "lower");
    const Timer timer;
    info.lowered = lower(info.schedule, lowering);
    info.lower_ms = timer.ms();
    observer.lowered(info.name);
  };
  if (options.records) {
    if (std::optional<Schedule> recorded = recorded_schedule(task, options)) {
      try {
        info.schedule = std::move(*recorded);
        info.explanation = "as tuned: " + info.tuning + "\n";
        lower_now();
        info.is_tuned = true;
        observer.scheduled(info);
        return;
      } catch (const ScheduleError& e) {
        info.tuning = "refused: " + info.tuning + ": " + std::string(e.what()).substr(0, 300);
      }
    }
  }
  try {
    {
      const ScopedSpan span(process_time_line(), "schedule " + info.name, "schedule");
      const Timer timer;
      info.schedule = default_schedule(task.work.workload, task.request, &info.explanation);
      info.schedule_ms = timer.ms();
      observer.time("schedule", info.schedule_ms);
    }
    observer.scheduled(info);
    lower_now();
  } catch (const ScheduleError& e) {
    // Slow but right beats refusing; it is our fault and said so. Any other error would hide here.
    info.schedule = plain_schedule(task.work.workload, task.request);
    info.explanation += std::string("plain loops, because the default schedule failed: ") + e.what() + "\n";
    info.is_plain = true;
    TS_LOG(kWarning) << "kernel " << info.name << " runs as plain loops: " << std::string(e.what()).substr(0, 300);
    observer.scheduled(info);
    lower_now();
  }
}

ObjectCode make_kernel(KernelTask& task, const CompileOptions& options, CompileObserver& observer) {
  CompiledKernel& info = *task.info;
  schedule_and_lower(task, options, observer);
  if (observer.stop_at() == StopAt::kSchedule || observer.stop_at() == StopAt::kLower) return {};
  info.lowered.function.name = options.prefix + info.name;
  mark_in_place(info.lowered, in_place_pairs(info.schedule));
  CodegenOptions codegen;
  const bool texts = observer.wants_code_text(info.name);
  codegen.want_asm = options.want_asm || texts || observer.stop_at() == StopAt::kCode;
  codegen.want_llvm_ir = texts;
  codegen.fast_math = options.fast_math;
  codegen.contract_fma = options.contract_fma;
  codegen.module_name = info.name;
  const ScopedSpan span(process_time_line(), "codegen " + info.name, "codegen");
  const Timer timer;
  ObjectCode object = compile(LoopProgram{{info.lowered.function}}, options.target, codegen);
  info.codegen_ms = timer.ms();
  observer.time("codegen", info.codegen_ms);
  observer.coded(info, object);
  info.assembly = std::move(object.assembly);
  object.assembly.clear();
  object.llvm_ir.clear();
  return object;
}

/// The same, with errors that are our fault made repeatable.
ObjectCode make_kernel_or_tell(const graph::Graph& graph, KernelTask& task, const CompileOptions& options,
                               CompileObserver& observer) {
  const auto tell = [&](const Error& e) {
    const std::string text = "kernel " + task.info->name + " (" + task.info->first_node + "): " + e.message();
    return ReproducibleError(text, files_of(graph, task, text));
  };
  try {
    try {
      return make_kernel(task, options, observer);
    } catch (const ScheduleError& e) {
      // A record's schedule may lower and still ask the code generator for too much.
      if (!task.info->is_tuned) throw;
      task.info->is_tuned = false;
      task.info->tuning = "refused: " + task.info->tuning + ": " + std::string(e.what()).substr(0, 300);
      task.info->explanation.clear();
      CompileOptions by_default = options;
      by_default.records = nullptr;
      return make_kernel(task, by_default, observer);
    }
  } catch (const ScheduleError& e) {
    throw tell(e);
  } catch (const InternalError& e) {
    throw tell(e);
  }
}

/// Tells of each task whether a record served it; refuses those that none did when all must be.
void report_tuning(const std::vector<KernelTask>& tasks, bool require_tuned) {
  std::vector<const CompiledKernel*> all, untuned;
  for (const KernelTask& task : tasks) {
    all.push_back(task.info);
    if (!task.info->is_tuned) untuned.push_back(task.info);
  }
  if (config()->explain.find("tuning") != std::string::npos) {
    const std::string text = "# which kernels stand as tuned\n" + tuning_list(all) + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  TS_USER_CHECK(!require_tuned || untuned.empty(), "untuned-kernel")
      << "records: expected one for each kernel, got none for " << untuned.size() << " of " << all.size() << ":\n"
      << tuning_list(untuned) << "tune the model again or leave --require-tuned out";
}

}  // namespace

std::string kernel_key(const graph::GroupWorkload& work, const ScheduleRequest& request) {
  std::string key = to_text(work.workload);
  for (const Layout& layout : request.input_layouts) key += "|" + layout.text();
  for (const Layout& layout : request.output_layouts) key += "|" + layout.text();
  return key;
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

std::vector<ObjectCode> make_kernels(const graph::Graph& graph, std::vector<KernelTask>& tasks,
                                     const CompileOptions& options, CompileObserver& observer) {
  std::vector<ObjectCode> objects(tasks.size());
  std::vector<std::exception_ptr> errors(tasks.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t k = next++; k < tasks.size(); k = next++) {
      try {
        objects[k] = make_kernel_or_tell(graph, tasks[k], options, observer);
      } catch (...) {
        errors[k] = std::current_exception();
        next = tasks.size();
      }
    }
  };
  std::vector<std::jthread> threads;
  const int wanted = options.compile_threads > 0 ? options.compile_threads : std::max(1, Target::host().cores);
  const size_t count = std::min(tasks.size(), static_cast<size_t>(std::min(wanted, kMaxCompileThreads)));
  threads.reserve(count);
  try {
    for (size_t k = 1; k < count; ++k) threads.emplace_back(work);
  } catch (const std::system_error& e) {
    // Those that run do the work of all.
    TS_LOG(kWarning) << "compile threads: expected " << count << ", got " << threads.size() + 1 << ": " << e.what();
  }
  work();
  threads.clear();  // joins
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  if (options.records) report_tuning(tasks, options.require_tuned);
  std::string standing;
  for (const KernelTask& task : tasks) standing += observer.standing(*task.info);
  for (const StopAt stop : {StopAt::kSchedule, StopAt::kLower, StopAt::kCode}) observer.stop_if(stop, standing);
  return objects;
}

}  // namespace tensmith
