#include "autotune/measure/build.h"

#include <algorithm>
#include <sstream>

#include "codegen/asm_guard.h"
#include "codegen/disassemble.h"
#include "runtime/base/sha256.h"
#include "runtime/timer.h"
#include "schedule/lower/in_place.h"
#include "schedule/lower/lowering.h"
#include "schedule/trace.h"

namespace tensmith {

namespace {

/// The layouts that a kernel's caller has to use must be those that the task fixes.
std::string layout_problem(const MeasureTask& task, const LoweredKernel& kernel) {
  const auto wrong = [](const std::vector<Layout>& wanted, const std::vector<Layout>& got,
                        const std::vector<Tensor>& tensors, bool constants_are_free) -> std::string {
    for (size_t k = 0; k < tensors.size(); ++k) {
      if (constants_are_free && tensors[k].stage()->is_constant) continue;
      const Layout row = Layout::row_major(tensors[k].rank());
      const Layout& a = k < wanted.size() && !wanted[k].dims().empty() ? wanted[k] : row;
      const Layout& b = got[k].dims().empty() ? row : got[k];
      if (a == b || (a.is_row_major() && b.is_row_major())) continue;
      return tensors[k].buffer()->name + ": expected layout " + a.text() + ", got " + b.text();
    }
    return {};
  };
  std::string text = wrong(task.request.input_layouts, kernel.input_layouts, task.workload.inputs, true);
  if (text.empty()) text = wrong(task.request.output_layouts, kernel.output_layouts, task.workload.outputs, false);
  return text;
}

}  // namespace

std::vector<std::string> guard_findings(const std::string& assembly, const GuardOptions& options,
                                        std::string* refused) {
  std::vector<std::string> findings;
  const auto note = [&](const AsmLoop& loop, bool is_refused, const std::string& text) {
    findings.push_back("hot loop " + loop.label + ": " + text);
    if (is_refused && loop.fmas + loop.scalar_fmas >= options.min_fmas && refused->empty()) *refused = findings.back();
  };
  // The loop of all functions with the most FMAs: bodies of parallel loops are functions of their own.
  const AsmLoop* hot = nullptr;
  const std::vector<AsmFunction> functions = inspect_assembly(assembly);
  for (const AsmFunction& function : functions)
    if (const AsmLoop* loop = function.hot_loop(); loop && (!hot || loop->fmas > hot->fmas)) hot = loop;
  if (!hot || hot->fmas + hot->scalar_fmas == 0) return findings;
  const double all = hot->fmas + hot->scalar_fmas;
  std::ostringstream text;
  if (const double share = hot->stack_references / all; share > 0) {
    text << "stack references: " << hot->stack_references << " beside " << all << " FMAs";
    note(*hot, share > options.max_stack_share, text.str());
    text.str({});
  }
  if (const double share = hot->scalar_fmas / all; share > 0) {
    text << "scalar FMAs: " << hot->scalar_fmas << " of " << all;
    // Without any vector FMA this is scalar code, slow but not a spilled tile: it is left to the clock.
    note(*hot, hot->fmas > 0 && share > options.max_scalar_share, text.str());
    text.str({});
  }
  if (hot->calls > 0) note(*hot, !options.allow_calls, "calls: " + std::to_string(hot->calls));
  return findings;
}

BuildOutcome build_candidate(const MeasureTask& task, const std::vector<Step>& steps, const MeasureLimits& limits,
                             const GuardOptions* guard) {
  BuildOutcome out;
  const auto fail = [&](MeasureFailure failure, const std::string& message) {
    out.failure = failure;
    out.message = message.substr(0, message.find('\n')).substr(0, 500);
    return out;
  };
  try {
    Timer timer;
    Result<Schedule> schedule = replay(task.workload, Trace{{}, steps}, ReplayOn::kAnyWorkload);
    out.report.replay_ms = timer.ms();
    if (!schedule) return fail(MeasureFailure::kIllegalSchedule, schedule.failure().message);
    timer.restart();
    LowerOptions lowering;
    lowering.max_unroll = limits.max_unroll;
    lowering.line_bytes = task.request.target.line_bytes;
    LoweredKernel lowered = lower(schedule.value(), lowering);
    // As in a program, where results may take the place of operands.
    mark_in_place(lowered, in_place_pairs(schedule.value()));
    out.report.lower_ms = timer.ms();
    if (std::string wrong = layout_problem(task, lowered); !wrong.empty())
      return fail(MeasureFailure::kIllegalSchedule, wrong);
    timer.restart();
    lowered.function.name = kMeasuredFunction;
    CodegenOptions codegen;
    codegen.fast_math = task.fast_math;
    codegen.contract_fma = task.contract_fma;
    codegen.module_name = "measured";
    codegen.verify = false;
    out.kernel.object = compile(LoopProgram{{lowered.function}}, task.request.target, codegen);
    out.report.codegen_ms = timer.ms();
    const std::vector<uint8_t>& bytes = out.kernel.object.bytes;
    out.report.code_bytes = static_cast<int64_t>(bytes.size());
    out.report.code_sha256 = sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    out.kernel.function = kMeasuredFunction;
    out.kernel.num_inputs = lowered.num_inputs;
    out.kernel.num_outputs = lowered.num_outputs;
    out.kernel.input_layouts = std::move(lowered.input_layouts);
    out.kernel.output_layouts = std::move(lowered.output_layouts);
    for (const Buffer& buffer : lowered.function.buffers) {
      int64_t size = buffer->dtype.bytes();
      for (const Expr& extent : buffer->shape) {
        int64_t value = 1;
        if (!as_const_int(extent, &value)) return fail(MeasureFailure::kBuildFailed, buffer->name + ": open size");
        size *= value;
      }
      out.kernel.buffer_bytes.push_back(size);
    }
    if (out.report.code_bytes > limits.code_bytes)
      return fail(MeasureFailure::kCodeTooLarge, "code: expected at most " + std::to_string(limits.code_bytes) +
                                                     " bytes, got " + std::to_string(out.report.code_bytes));
    timer.restart();
    std::string refused;
    const GuardOptions standard;
    out.report.guard_findings =
        guard_findings(disassemble(out.kernel.object, task.request.target), guard ? *guard : standard, &refused);
    out.report.guard_ms = timer.ms();
    if (guard && !refused.empty()) return fail(MeasureFailure::kGuardRejected, refused);
    return out;
  } catch (const ScheduleError& e) {
    return fail(MeasureFailure::kIllegalSchedule, e.message());
  } catch (const std::exception& e) {
    return fail(MeasureFailure::kBuildFailed, e.what());
  }
}

}  // namespace tensmith
