#include "apps/driver/observer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "codegen/c_source.h"
#include "graph/pipeline.h"
#include "runtime/base/files.h"
#include "schedule/trace.h"
#include "tensor/print.h"

namespace tensmith {

namespace {

/// The passes of lowering by number: the nests that a schedule describes stand first.
std::vector<std::string> lowering_names() {
  std::vector<std::string> names{"loop_nests"};
  for (const LowerPass& pass : lowering_passes()) names.push_back(pass.name);
  return names;
}

int number_of(const std::string& pass) {
  const std::vector<std::string> names = lowering_names();
  const auto it = std::find(names.begin(), names.end(), pass);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

[[noreturn]] void refuse_pass(const char* where, const std::string& name, std::vector<std::string> known) {
  std::string list;
  for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
  const std::string near = nearest_word(name, known);
  throw UserError("unknown-pass", std::string("option --") + where + ": expected one of " + list + "; got '" + name +
                                      "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

std::string two_digits(int number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

/// Shows a kernel's loops after each pass. Lowering tells of time for every pass and of a function only for changes, so
/// a pass is settled when the next one speaks.
struct CompileObserver::Lowering {
  CompileObserver& observer;
  std::string kernel, text;
  std::string before;   ///< of the pass in front of which the loops are to be printed; "": none
  std::string pending;  ///< the pass that ran last
  int number = -1;
  bool is_changed = false;

  void begin(const std::string& pass) {
    settle();
    if (!before.empty() && pass == before) show("before", pass);
    pending = pass;
    ++number;
    is_changed = false;
  }
  void settle() {
    if (pending.empty()) return;
    const std::string& print = observer.config_.print_ir;
    if (print == "after-each" || (print == "after-change" && is_changed) || print == "after:" + pending)
      show("after", pending);
    if (is_changed && !observer.config_.dump.empty())
      observer.write(kernel + "/" + two_digits(number) + "_" + pending + ".ir", text + "\n");
    pending.clear();
  }
  void show(const char* when, const std::string& pass) {
    observer.print("# " + kernel + " " + when + " " + pass + "\n" + text + "\n");
  }
};

CompileObserver::CompileObserver(const Config& config) : config_(config) {
  std::vector<std::string> names;
  for (const graph::GraphPass& pass : graph::graph_passes()) names.push_back(pass.name);
  const size_t graph_names = names.size();
  for (const char* stage : {"layouts", "placement", "fuse", "schedule"}) names.push_back(stage);
  for (const std::string& name : lowering_names()) names.push_back(name);
  names.push_back("codegen");
  if (const std::string& stop = config_.stop_after; !stop.empty()) {
    const auto it = std::find(names.begin(), names.end(), stop);
    if (it == names.end()) refuse_pass("stop-after", stop, names);
    stop_lowering_ = number_of(stop);
    stop_at_ = it - names.begin() < static_cast<std::ptrdiff_t>(graph_names) ? StopAt::kGraph
               : stop == "fuse"                                              ? StopAt::kFuse
               : stop == "layouts"                                           ? StopAt::kLayouts
               : stop == "placement"                                         ? StopAt::kPlacement
               : stop == "schedule"                                          ? StopAt::kSchedule
               : stop == "codegen"                                           ? StopAt::kCode
                                                                             : StopAt::kLower;
  }
  if (const size_t colon = config_.print_ir.find(':'); colon != std::string::npos)
    if (const std::string pass = config_.print_ir.substr(colon + 1); number_of(pass) < 0)
      refuse_pass("print-ir", pass, lowering_names());
}

bool CompileObserver::shows(const std::string& kernel) const {
  return config_.filter.empty() || kernel.find(config_.filter) != std::string::npos;
}

void CompileObserver::print(const std::string& text) {
  const std::lock_guard lock(mutex_);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void CompileObserver::write(const std::string& file, std::string_view text) {
  const std::filesystem::path path = std::filesystem::path(config_.dump) / file;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (const Result<void> written = write_file(path.string(), text); !written)
    throw UserError(written.failure().id, "option --dump: " + written.failure().message);
}

LowerOptions CompileObserver::lower_options(const std::string& kernel, const LowerOptions& given) {
  LowerOptions options = given;
  options.verify_each = options.verify_each || config_.verify_each;
  if (stop_at_ == StopAt::kLower) options.pass_limit = stop_lowering_;
  const bool print = !config_.print_ir.empty() && shows(kernel), dump = !config_.dump.empty() && shows(kernel);
  std::shared_ptr<Lowering> state;
  if (print || dump) {
    state = std::make_shared<Lowering>(Lowering{*this, kernel, "", "", "", -1, false});
    if (config_.print_ir.rfind("before:", 0) == 0) state->before = config_.print_ir.substr(7);
    const std::lock_guard lock(mutex_);
    lowering_[kernel] = state;
  }
  options.on_time = [this, state, inner = given.on_time](const char* pass, double ms) {
    if (inner) inner(pass, ms);
    if (config_.time_passes) time(std::string("lower/") + pass, ms);
    if (state) state->begin(pass);
  };
  if (state)
    options.on_pass = [state, inner = given.on_pass](int number, const char* pass, const LoopFunction& function) {
      if (inner) inner(number, pass, function);
      state->text = to_string(function);
      state->is_changed = true;
    };
  return options;
}

void CompileObserver::lowered(const std::string& kernel) {
  std::shared_ptr<Lowering> state;
  {
    const std::lock_guard lock(mutex_);
    const auto it = lowering_.find(kernel);
    if (it == lowering_.end()) return;
    state = it->second;
    lowering_.erase(it);
  }
  state->settle();
}

void CompileObserver::scheduled(const CompiledKernel& kernel) {
  if (!shows(kernel.name)) return;
  const Schedule& schedule = kernel.schedule;
  const std::string& form = config_.print_schedule;
  if (!form.empty()) {
    const Trace trace = trace_of(schedule);
    // The head is a comment in the language of what follows.
    const std::string head =
        (form == "cpp" || form == "c" ? "// " : "# ") + kernel.name + " (" + kernel.first_node + ")";
    print(head + "\n" +
          (form == "cpp"     ? trace_to_cpp(trace, kernel.name)
           : form == "json"  ? trace_to_json(trace) + "\n"
           : form == "loops" ? to_string(lower(schedule, LowerOptions{.pass_limit = 0}).function) + "\n"
           : form == "c"     ? to_c(LoopProgram{{lower(schedule, LowerOptions{.pass_limit = 0}).function}})
                             : schedule.to_string()) +
          "\n");
  }
  if (config_.explain.find("schedule") != std::string::npos)
    print("# why " + kernel.name + " (" + kernel.first_node + ") is scheduled so\n" + kernel.explanation + "\n");
  if (!config_.dump.empty()) {
    const Trace trace = trace_of(schedule);
    write(kernel.name + "/workload.txt", to_text(schedule.workload()));
    write(kernel.name + "/schedule.txt", schedule.to_string() + "\n" + kernel.explanation);
    write(kernel.name + "/schedule.json", trace_to_json(trace));
    write(kernel.name + "/schedule.cpp", trace_to_cpp(trace, kernel.name));
  }
}

void CompileObserver::coded(const CompiledKernel& kernel, const ObjectCode& object) {
  if (!wants_code_text(kernel.name)) return;
  write(kernel.name + "/code.ll", object.llvm_ir);
  write(kernel.name + "/code.s", object.assembly);
  write(kernel.name + "/code.o", {reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()});
}

std::function<void(const std::string&)> CompileObserver::listener() {
  if (config_.explain.find("algorithm") == std::string::npos && config_.dump.empty()) return nullptr;
  return [this](const std::string& line) { algorithms_ += line + "\n"; };
}

void CompileObserver::chosen() {
  if (config_.explain.find("algorithm") != std::string::npos)
    print("# how convolutions are computed, and what other ways would cost\n" + algorithms_ + "\n");
  if (!config_.dump.empty()) write("algorithms.txt", algorithms_);
}

void CompileObserver::decided(const std::string& list) {
  if (config_.explain.find("algorithm") != std::string::npos || config_.explain.find("tuning") != std::string::npos)
    print("# which ways the passes over the graph went\n" + list + "\n");
}

void CompileObserver::placed(const std::string& explanation) {
  if (config_.explain.find("layout") != std::string::npos && !explanation.empty())
    print("# what lies in the memory of others\n" + explanation + "\n");
  if (!config_.dump.empty()) write("placement.txt", explanation);
  stop_if(StopAt::kPlacement, explanation);
}

void CompileObserver::fused(const std::string& explanation) {
  if (config_.explain.find("fusion") != std::string::npos) print("# what is fused, and why not\n" + explanation + "\n");
  if (!config_.dump.empty()) write("fusion.txt", explanation);
  stop_if(StopAt::kFuse, explanation);
}

void CompileObserver::laid_out(const graph::Graph& graph, const graph::LayoutMap& layouts) {
  const bool explain = config_.explain.find("layout") != std::string::npos;
  if (!explain && config_.dump.empty() && stop_at_ != StopAt::kLayouts) return;
  std::string text;
  for (const auto& [value, layout] : layouts)
    text += graph.value_name(value) + ": " + to_string(graph.type(value)) + " as " + layout.text() + "\n";
  text += "all other values are row-major\n";
  if (explain) print("# layouts\n" + text + "\n");
  if (!config_.dump.empty()) write("layouts.txt", text);
  stop_if(StopAt::kLayouts, text);
}

void CompileObserver::finished(const CompiledProgram& program, const ObjectCode& main) {
  const bool explain = config_.explain.find("memory") != std::string::npos;
  if (explain || !config_.dump.empty()) {
    const CompileStats& stats = program.stats;
    const double bound = static_cast<double>(std::max<int64_t>(stats.arena_lower_bound, 1));
    char line[256];
    std::snprintf(line, sizeof line,
                  "arena %lld bytes, at least %lld are in use at one step (%.3f times that); weights %lld bytes\n",
                  static_cast<long long>(stats.arena_bytes), static_cast<long long>(stats.arena_lower_bound),
                  static_cast<double>(stats.arena_bytes) / bound, static_cast<long long>(stats.weight_bytes));
    std::string text = line;
    for (const CompiledKernel& kernel : program.kernels) {
      const LoweredKernel& lowered = kernel.lowered;
      for (int w = 0; w < lowered.num_workspaces; ++w) {
        const Buffer& buffer = lowered.function.buffers[lowered.num_inputs + lowered.num_outputs + w];
        text += "workspace of " + kernel.name + ": " + buffer->name + " " + to_string(buffer->dtype) + "[";
        for (size_t d = 0; d < buffer->shape.size(); ++d) text += (d ? ", " : "") + to_string(buffer->shape[d]);
        text += "]\n";
      }
    }
    if (explain) print("# memory\n" + text + "\n");
    if (!config_.dump.empty()) write("memory.txt", text);
  }
  if (!config_.dump.empty() && shows("main")) {
    write("main/main.ir", to_string(program.main) + "\n");
    write("main/code.ll", main.llvm_ir);
    write("main/code.s", main.assembly);
  }
  if (!config_.print_ir.empty() && shows("main") && config_.print_ir.rfind("after-", 0) == 0)
    print("# main\n" + to_string(program.main) + "\n");
}

void CompileObserver::time(const std::string& pass, double milliseconds) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = times_.try_emplace(pass);
  if (fresh) order_.push_back(pass);
  it->second.ms += milliseconds;
  ++it->second.count;
}

void CompileObserver::print_times(const std::vector<graph::PassRecord>& records) {
  if (!config_.time_passes) return;
  std::string text = "# time of the passes; those of kernels are added up over all threads\n" + to_string(records);
  for (const std::string& pass : order_) {
    char line[128];
    std::snprintf(line, sizeof line, "%-26s %6d times   %10.3f ms\n", pass.c_str(), times_[pass].count,
                  times_[pass].ms);
    text += line;
  }
  print(text);
}

std::string CompileObserver::standing(const CompiledKernel& kernel) const {
  if (!shows(kernel.name)) return {};
  const std::string head = "# " + kernel.name + " (" + kernel.first_node + ")\n";
  switch (stop_at_) {
    case StopAt::kSchedule: return head + to_text(kernel.schedule.workload()) + kernel.schedule.to_string() + "\n";
    case StopAt::kLower: return head + to_string(kernel.lowered.function) + "\n\n";
    case StopAt::kCode: return head + kernel.assembly + "\n";
    default: return {};
  }
}

}  // namespace tensmith
