#include "schedule/lower/lowering.h"

#include <algorithm>
#include <chrono>

#include "schedule/lower/flatten_buffers.h"
#include "schedule/lower/loop_nests.h"
#include "schedule/lower/partition_loops.h"
#include "schedule/lower/private_workspaces.h"
#include "schedule/lower/unroll_loops.h"
#include "schedule/lower/vectorize_loops.h"
#include "tensor/simplify.h"
#include "tensor/verify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

Stmt run_simplify(const Stmt& s, const LowerOptions&) { return simplify(s); }
Stmt run_private(const Stmt& s, const LowerOptions&) { return private_workspaces(s); }
Stmt run_vectorize(const Stmt& s, const LowerOptions&) { return vectorize_loops(s); }
Stmt run_unroll(const Stmt& s, const LowerOptions& options) { return unroll_loops(s, options.max_unroll); }
Stmt run_partition(const Stmt& s, const LowerOptions&) { return partition_loops(s); }
Stmt run_flatten(const Stmt& s, const LowerOptions&) { return flatten_buffers(s); }

constexpr LowerPass kPasses[] = {
    {"simplify_nests", "canonical index expressions",
     "so that the passes below see linear indices and decided conditions", run_simplify},
    {"private_workspaces", "each iteration of a parallel loop gets memory of its own",
     "while dimensions are apart, so that the verifier sees iterations in different parts", run_private},
    {"vectorize", "vectorized loops become vector expressions",
     "before unrolling: a body is widened once, not once per copy", run_vectorize},
    {"unroll", "unrolled loops become copies", "after vectorizing; conditions then concern single loop variables",
     run_unroll},
    {"simplify_copies", "fold the constants that unrolling put in", "partitioning solves conditions in canonical form",
     run_simplify},
    {"partition", "conditions on the edges leave the inside of loops", "before flattening, which hides the dimensions",
     run_partition},
    {"flatten", "one flat index per access", "code generators know only flat memory", run_flatten},
    {"simplify", "fold the address arithmetic", "last, so that code generation sees base + constant", run_simplify},
};

/// Moves allocations of scope kGlobal out of the body: they become parameters that the caller's memory plan provides.
Stmt hoist_workspaces(const Stmt& body, std::vector<Buffer>* workspaces) {
  return rewrite(body, {}, [&](const Stmt& s) {
    const auto* allocation = s.as<Allocate>();
    if (!allocation || allocation->buffer->scope != Scope::kGlobal) return s;
    // Copies of an unrolled loop use the same memory, one after the other.
    const auto same = [&](const Buffer& b) { return b.same_as(allocation->buffer); };
    if (std::none_of(workspaces->begin(), workspaces->end(), same)) workspaces->push_back(allocation->buffer);
    return allocation->body;
  });
}

void check_no_shared_workspace(const Stmt& body, const std::string& name) {
  visit(body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop || loop->for_kind != ForKind::kParallel) return true;
    visit(loop->body, [&](const Stmt& inner) {
      if (const auto* allocation = inner.as<Allocate>(); allocation && allocation->buffer->scope == Scope::kGlobal)
        throw ScheduleError("parallel-workspace",
                            "schedule " + name + ": buffer " + allocation->buffer->name + " inside the parallel loop " +
                                loop->var.name() +
                                " is too large for a thread's stack; compute it at a loop further inside");
      return true;
    });
    return false;
  });
}

}  // namespace

std::span<const LowerPass> lowering_passes() { return kPasses; }

LoweredKernel lower(const Schedule& schedule, const LowerOptions& options) {
  const ScheduleState& state = schedule.state();
  LoweredKernel kernel;
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  const auto finish = [&](int number, const char* name, bool changed) {
    if (options.on_time) options.on_time(name, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (changed && options.on_pass) options.on_pass(number, name, kernel.function);
    start = Clock::now();
  };
  kernel.function = build_loop_nests(state, options.line_bytes);
  finish(0, "loop_nests", true);
  int number = 1;
  bool flat = false;
  for (const LowerPass& pass : kPasses) {
    if (options.pass_limit >= 0 && number > options.pass_limit) break;
    const Stmt before = kernel.function.body;
    kernel.function.body = pass.run(before, options);
    if (options.verify_each) {
      // One flat index hides the dimensions that keep the iterations of a parallel loop apart; the passes before were
      // checked.
      flat = flat || pass.run == run_flatten;
      VerifyOptions checks;
      checks.races = !flat;
      for (const Var& dim : state.dims) checks.facts.assume(dim >= 1);
      const Result<void> ok = verify(kernel.function, checks);
      TS_CHECK(ok.ok()) << "after pass " << pass.name << " of " << state.name << ": " << ok.failure().message;
    }
    finish(number++, pass.name, !kernel.function.body.same_as(before));
  }
  check_no_shared_workspace(kernel.function.body, state.name);
  std::vector<Buffer> workspaces;
  kernel.function.body = hoist_workspaces(kernel.function.body, &workspaces);
  for (const Buffer& workspace : workspaces) {
    kernel.function.buffers.push_back(workspace);
    kernel.function.outputs.push_back(workspace);
  }
  kernel.num_inputs = static_cast<int>(state.inputs.size());
  kernel.num_outputs = static_cast<int>(state.outputs.size());
  kernel.num_workspaces = static_cast<int>(workspaces.size());
  const auto layout_of = [&](const Buffer& buffer) {
    const StageState& s = state.stages[state.producer_of(buffer.get())];
    int output = 0;
    while (!s.stage->outputs[output].same_as(buffer)) ++output;
    return s.layout_of(output);
  };
  for (const Buffer& input : state.inputs) kernel.input_layouts.push_back(layout_of(input));
  for (const Buffer& output : state.outputs) kernel.output_layouts.push_back(layout_of(output));
  return kernel;
}

}  // namespace tensmith
