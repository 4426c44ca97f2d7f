#include "autotune/measure/task.h"

#include <nlohmann/json.hpp>

#include "tensor/parse.h"

namespace tensmith {

namespace {

Json layouts_json(const std::vector<Layout>& layouts) {
  Json list = Json::array();
  for (const Layout& layout : layouts) list.push_back(layout.dims().empty() ? "" : layout.text());
  return list;
}

/// Layouts of tensors with these ranks; "" stands for the default one.
Result<std::vector<Layout>> read_layouts(const Json& list, const std::vector<Tensor>& tensors) {
  std::vector<Layout> layouts;
  if (list.size() > tensors.size())
    return Failure{"bad-layout", "expected at most " + std::to_string(tensors.size()) + " layouts, got " +
                                     std::to_string(list.size())};
  for (size_t k = 0; k < list.size(); ++k) {
    const std::string text = list[k].get<std::string>();
    if (text.empty()) {
      layouts.emplace_back();
      continue;
    }
    Result<Layout> layout = Layout::parse(text, tensors[k].rank());
    if (!layout) return layout.failure();
    layouts.push_back(std::move(layout).value());
  }
  return layouts;
}

std::vector<std::string> names_of(const Workload& workload) {
  std::vector<std::string> names;
  for (const StageState& stage : initial_state(workload).stages) {
    names.push_back(stage.name);
    for (const LoopVar& loop : stage.loops) names.push_back(stage.name + "." + loop.name);
  }
  return names;
}

/// The number of dims behind a layout's text, which itself does not say it.
Json ranked_layouts(const std::vector<Layout>& layouts) {
  Json list = Json::array();
  for (const Layout& layout : layouts)
    list.push_back(Json{{"rank", layout.rank()}, {"layout", layout.dims().empty() ? "" : layout.text()}});
  return list;
}

Result<std::vector<Layout>> read_ranked_layouts(const Json& list) {
  std::vector<Layout> layouts;
  for (const Json& item : list) {
    const std::string text = item.at("layout").get<std::string>();
    const int rank = item.at("rank").get<int>();
    if (rank < 0 || rank > 64)
      return Failure{"bad-layout", "expected a rank from 0 to 64, got " + std::to_string(rank)};
    if (text.empty()) {
      layouts.push_back(rank == 0 ? Layout() : Layout::row_major(rank));
      continue;
    }
    Result<Layout> layout = Layout::parse(text, rank);
    if (!layout) return layout.failure();
    layouts.push_back(std::move(layout).value());
  }
  return layouts;
}

}  // namespace

Json to_json(const MeasureTask& task) {
  return Json{{"workload", to_text(task.workload)},
              {"target", to_string(task.request.target)},
              {"threads", task.request.threads},
              {"input_layouts", layouts_json(task.request.input_layouts)},
              {"output_layouts", layouts_json(task.request.output_layouts)},
              {"fast_math", task.fast_math},
              {"contract_fma", task.contract_fma},
              {"cold_bytes", task.cold_bytes},
              {"seed", task.seed}};
}

Result<MeasureTask> measure_task_from_json(const Json& json) {
  try {
    Result<Workload> workload = parse_workload(json.at("workload").get<std::string>());
    if (!workload) return workload.failure();
    Result<Target> target = Target::parse(json.at("target").get<std::string>());
    if (!target) return target.failure();
    MeasureTask task;
    task.workload = std::move(workload).value();
    task.request.target = std::move(target).value();
    task.request.threads = json.at("threads").get<int>();
    if (task.request.threads < 1 || task.request.threads > 1024)
      return Failure{"bad-task", "task: threads: expected 1 to 1024, got " + std::to_string(task.request.threads)};
    for (auto [name, tensors, into] :
         {std::tuple{"input_layouts", &task.workload.inputs, &task.request.input_layouts},
          std::tuple{"output_layouts", &task.workload.outputs, &task.request.output_layouts}}) {
      Result<std::vector<Layout>> layouts = read_layouts(json.at(name), *tensors);
      if (!layouts) return Failure{"bad-task", "task: " + std::string(name) + ": " + layouts.failure().message};
      *into = std::move(layouts).value();
    }
    task.fast_math = json.value("fast_math", task.fast_math);
    task.contract_fma = json.value("contract_fma", task.contract_fma);
    task.cold_bytes = json.value("cold_bytes", task.cold_bytes);
    task.seed = json.value("seed", task.seed);
    if (task.cold_bytes < 0) return Failure{"bad-task", "task: cold_bytes: expected 0 or more, got less"};
    if (!task.workload.dims.empty())
      return Failure{"task-open-dims", "task " + task.workload.name + ": expected fixed sizes, got the open dim " +
                                           task.workload.dims[0].name() + "; give it a size"};
    return task;
  } catch (const nlohmann::json::exception& e) {
    return Failure{"bad-task", std::string("task: expected all fields in their types, got ") + e.what()};
  }
}

Result<void> check_measure_task(const MeasureTask& task) {
  Result<MeasureTask> read = measure_task_from_json(to_json(task));
  if (!read) return read.failure();
  const std::vector<std::string> here = names_of(task.workload), there = names_of(read->workload);
  for (size_t k = 0; k < std::max(here.size(), there.size()); ++k) {
    const std::string a = k < here.size() ? here[k] : "nothing", b = k < there.size() ? there[k] : "nothing";
    if (a != b)
      return Failure{"task-names", "task " + task.workload.name +
                                       ": expected names that are words and distinct, got '" + a +
                                       "', which its text calls '" + b + "'; rename the stage"};
  }
  return {};
}

Json to_json(const BuiltKernel& kernel) {
  return Json{{"function", kernel.function},
              {"inputs", kernel.num_inputs},
              {"outputs", kernel.num_outputs},
              {"buffer_bytes", kernel.buffer_bytes},
              {"input_layouts", ranked_layouts(kernel.input_layouts)},
              {"output_layouts", ranked_layouts(kernel.output_layouts)}};
}

Result<BuiltKernel> built_kernel_from_json(const Json& json) {
  try {
    BuiltKernel kernel;
    kernel.function = json.at("function").get<std::string>();
    kernel.num_inputs = json.at("inputs").get<int>();
    kernel.num_outputs = json.at("outputs").get<int>();
    kernel.buffer_bytes = json.at("buffer_bytes").get<std::vector<int64_t>>();
    const auto count = static_cast<int64_t>(kernel.buffer_bytes.size());
    if (kernel.num_inputs < 0 || kernel.num_outputs < 0 || int64_t{kernel.num_inputs} + kernel.num_outputs > count ||
        count > 4096)
      return Failure{"bad-kernel", "kernel: buffer_bytes: expected inputs, outputs and workspaces, got " +
                                       std::to_string(count) + " sizes"};
    for (int64_t bytes : kernel.buffer_bytes)
      if (bytes < 0 || bytes > int64_t{1} << 40)
        return Failure{"bad-kernel", "kernel: buffer_bytes: expected 0 to 2^40, got " + std::to_string(bytes)};
    for (auto [name, into] :
         {std::pair{"input_layouts", &kernel.input_layouts}, std::pair{"output_layouts", &kernel.output_layouts}}) {
      Result<std::vector<Layout>> layouts = read_ranked_layouts(json.at(name));
      if (!layouts) return Failure{"bad-kernel", "kernel: " + std::string(name) + ": " + layouts.failure().message};
      *into = std::move(layouts).value();
    }
    if (static_cast<int>(kernel.input_layouts.size()) != kernel.num_inputs ||
        static_cast<int>(kernel.output_layouts.size()) != kernel.num_outputs)
      return Failure{"bad-kernel", "kernel: layouts: expected one a parameter, got another number"};
    return kernel;
  } catch (const nlohmann::json::exception& e) {
    return Failure{"bad-kernel", std::string("kernel: expected all fields in their types, got ") + e.what()};
  }
}

}  // namespace tensmith
