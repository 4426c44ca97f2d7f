#include "tensor/text_printer.h"
#include "tensor/workload.h"

namespace tensmith {

namespace {

using text::Printer;

void axes(Printer& out, const char* word, const std::vector<Axis>& list) {
  if (list.empty()) return;
  out.line(word);
  const char* separator = " ";
  for (const Axis& axis : list) {
    out.names().bind(axis.var.get(), axis.var.name());
    out.raw(separator + out.names().name(axis.var.get(), axis.var.name()) + " in ");
    out.expr(axis.extent);
    separator = ", ";
  }
  out.raw("\n");
}

void exprs(Printer& out, const char* word, const std::vector<Expr>& list) {
  if (list.empty()) return;
  out.line(word);
  out.raw(" ");
  out.list(list);
  out.raw("\n");
}

/// `by sum(a: f32, b: f32): a + b from 0.0`
void reducer(Printer& out, const Reducer& reducer) {
  out.line("by ");
  out.raw(text::word_or_quoted(reducer.name));
  const char* separator = "(";
  for (const auto* vars : {&reducer.lhs, &reducer.rhs})
    for (const Var& var : *vars) {
      out.names().bind(var.get(), var.name());
      out.raw(separator + out.names().name(var.get(), var.name()) + ": " + to_string(var.dtype()));
      separator = ", ";
    }
  out.raw("): ");
  out.list(reducer.combined);
  out.raw(" from ");
  out.list(reducer.identity);
  out.raw("\n");
  for (const auto* vars : {&reducer.lhs, &reducer.rhs})
    for (const Var& var : *vars) out.names().release(var.get());
}

void stage(Printer& out, const StageNode& stage) {
  out.line("");
  for (size_t k = 0; k < stage.outputs.size(); ++k) {
    const Buffer& buffer = stage.outputs[k];
    if (k > 0) out.raw(", ");
    out.raw(out.names().name(buffer.get(), buffer->name));
    out.buffer_type(buffer);
  }
  out.raw(" = ");
  switch (stage.stage_kind) {
    case StageKind::kPlaceholder: out.raw(stage.is_constant ? "constant input\n" : "input\n"); return;
    case StageKind::kImperative:
      out.raw("loops {\n");
      out.indent(1);
      out.stmt(stage.imperative, /*last=*/true);
      break;
    case StageKind::kCompute:
      out.raw("compute {\n");
      out.indent(1);
      axes(out, "for", stage.axes);
      axes(out, "reduce", stage.reduce_axes);
      if (stage.reducer) reducer(out, *stage.reducer);
      exprs(out, "where", stage.where ? std::vector<Expr>{stage.where} : std::vector<Expr>{});
      exprs(out, "initial", stage.initial);
      exprs(out, "value", stage.bodies);
      for (const auto* list : {&stage.axes, &stage.reduce_axes})
        for (const Axis& axis : *list) out.names().release(axis.var.get());
      break;
  }
  out.indent(-1);
  out.line("}\n");
}

}  // namespace

std::string to_text(const Workload& workload) {
  Printer out;
  for (const Var& dim : workload.dims) out.names().bind(dim.get(), dim.name());
  for (const Stage& s : workload.stages)
    for (const Buffer& buffer : s->outputs) out.names().bind(buffer.get(), buffer->name);
  // Inputs and outputs in the caller's order, which the stages' order need not be.
  const auto tensors = [&](const std::vector<Tensor>& list) {
    for (size_t k = 0; k < list.size(); ++k)
      out.raw((k > 0 ? ", " : "") + out.names().name(list[k].buffer().get(), list[k].buffer()->name));
  };
  out.raw("workload " + text::word_or_quoted(workload.name) + "(");
  tensors(workload.inputs);
  for (size_t k = 0; k < workload.dims.size(); ++k) {
    const Var& dim = workload.dims[k];
    out.raw((k > 0 ? ", " : "; ") + out.names().name(dim.get(), dim.name()) + ": " + to_string(dim.dtype()));
  }
  out.raw(") -> ");
  tensors(workload.outputs);
  out.raw(" {\n");
  out.indent(1);
  for (const Stage& s : workload.stages) stage(out, *s);
  out.raw("}\n");
  return out.take();
}

}  // namespace tensmith
