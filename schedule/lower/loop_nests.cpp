#include "schedule/lower/loop_nests.h"

#include "schedule/lower/inline_stages.h"
#include "schedule/lower/nest_builder.h"
#include "schedule/places.h"
#include "schedule/primitives/helpers.h"

namespace tensmith {

NestBuilder::NestBuilder(const ScheduleState& state, int64_t line_bytes)
    : line_bytes_(line_bytes), state_(with_inlined_stages(state)) {}

LoopFunction NestBuilder::build() {
  // Inlining has made readers of readers.
  if (const Result<void> ok = check_places(state_); !ok)
    throw ScheduleError(ok.failure().id,
                        "schedule " + state_.name + ": " + ok.failure().message + "\n" + loop_nest_text(state_));
  // Steps that put loops into an order of their own (tile) may have moved a shifted loop into a reduction.
  for (const StageState& s : state_.stages)
    if (const Result<void> ok = check_shift_order(s, s.order, s.init_loop); !ok)
      throw ScheduleError(ok.failure().id,
                          "schedule " + state_.name + ": " + ok.failure().message + "\n" + loop_nest_text(state_));
  LoopFunction function;
  function.name = state_.name;
  function.scalars = state_.dims;
  // Symbolic dims are sizes.
  for (const Var& dim : state_.dims) facts_.assume(dim >= 1);
  const auto add_parameter = [&](const Buffer& logical) {
    const int index = state_.producer_of(logical.get());
    TS_CHECK(index >= 0) << logical->name;
    const StageState& s = stage(index);
    int output = 0;
    while (!s.stage->outputs[output].same_as(logical)) ++output;
    const Layout layout = s.layout_of(output);
    std::vector<Expr> shape = layout.physical_shape(logical->shape);
    for (Expr& extent : shape) extent = short_form(extent);
    // Callers may hand in any element-aligned memory; vector loads without alignment cost nothing where it is aligned.
    const Buffer buffer =
        make_buffer(logical->name, logical->dtype, shape, Scope::kGlobal, static_cast<int>(logical->dtype.bytes()));
    storage_[logical.get()] = {buffer, std::vector<Expr>(logical->shape.size(), Expr(0)), layout};
    function.buffers.push_back(buffer);
    return buffer;
  };
  for (const Buffer& input : state_.inputs) add_parameter(input);
  for (const Buffer& output : state_.outputs) {
    TS_CHECK(!storage_.count(output.get()))
        << state_.name << ": " << output->name << " is an input or stands twice among the outputs";
    function.outputs.push_back(add_parameter(output));
    output_buffers_.insert(output.get());
  }
  std::vector<Stmt> stmts;
  std::vector<Buffer> temporaries;
  for (size_t index = 0; index < state_.stages.size(); ++index) {
    const StageState& s = state_.stages[index];
    if (s.stage->stage_kind == StageKind::kPlaceholder || s.attach != AttachKind::kRoot) continue;
    Region whole;
    for (const Axis& axis : s.stage->axes) {
      whole.min.push_back(Expr(0));
      whole.extent.push_back(axis.extent);
    }
    for (size_t o = 0; o < s.stage->outputs.size(); ++o) {
      const Buffer& logical = s.stage->outputs[o];
      if (output_buffers_.count(logical.get())) continue;
      Region own;
      for (const Expr& extent : logical->shape) {
        own.min.push_back(Expr(0));
        own.extent.push_back(extent);
      }
      storage_[logical.get()] = allocate_for(static_cast<int>(index), static_cast<int>(o), own, /*at_root=*/true);
      temporaries.push_back(storage_[logical.get()].buffer);
    }
    stmts.push_back(emit_stage(static_cast<int>(index), whole));
  }
  function.body = Block::make(stmts);
  for (auto buffer = temporaries.rbegin(); buffer != temporaries.rend(); ++buffer)
    function.body = Allocate::make(*buffer, function.body);
  return function;
}

LoopFunction build_loop_nests(const ScheduleState& state, int64_t line_bytes) {
  return NestBuilder(state, line_bytes).build();
}

}  // namespace tensmith
