#include "tensor/print.h"

#include "runtime/base/error.h"
#include "tensor/text_printer.h"

namespace tensmith {

namespace text {

namespace {

bool is_number(const Expr& e) {
  if (const auto* broadcast = e.as<Broadcast>()) return is_number(broadcast->value);
  return e.as<FloatImm>() || (e.as<IntImm>() && !e.dtype().is_bool());
}

}  // namespace

void Printer::number(const Expr& e, bool suffix) {
  const DType type = e.dtype();
  if (const auto* imm = e.as<IntImm>()) {
    if (type.is_bool()) {
      out_ += imm->value ? "true" : "false";
      return;
    }
    out_ += type.is_uint() ? std::to_string(static_cast<uint64_t>(imm->value)) : std::to_string(imm->value);
    if (suffix && type != kInt64) out_ += to_string(type);
    return;
  }
  const std::string digits = float_text(type, e.as<FloatImm>()->value);
  out_ += digits;
  if (!suffix || type == kFloat32) return;
  if (digits.back() == 'f' || digits.back() == 'n') out_ += '_';  // inf_f64, nan_f64
  out_ += to_string(type);
}

void Printer::operand(const Expr& e, const Expr& other, int precedence) {
  if (!is_number(e) || is_number(other)) return expr(e, precedence);
  const auto* broadcast = e.as<Broadcast>();
  number(broadcast ? broadcast->value : e, /*suffix=*/false);
}

void Printer::typed_value(const Expr& e, DType type) {
  // The place gives the type and the lanes, as in `C[i] = 0.0`.
  if (is_number(e) && e.dtype() == type) {
    const auto* broadcast = e.as<Broadcast>();
    number(broadcast ? broadcast->value : e, /*suffix=*/false);
  } else {
    expr(e);
  }
}

void Printer::list(const std::vector<Expr>& exprs) {
  for (size_t k = 0; k < exprs.size(); ++k) {
    if (k > 0) out_ += ", ";
    expr(exprs[k]);
  }
}

void Printer::access(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate) {
  out_ += names_.name(buffer.get(), buffer->name) + "[";
  // Load::make and Store::make broadcast scalar indices beside a vector, so the text need not.
  bool has_vector = false;
  for (const Expr& index : indices) has_vector |= index.dtype().lanes > 1 && !index.as<Broadcast>();
  for (size_t k = 0; k < indices.size(); ++k) {
    if (k > 0) out_ += ", ";
    const auto* broadcast = has_vector ? indices[k].as<Broadcast>() : nullptr;
    expr(broadcast ? broadcast->value : indices[k]);
  }
  if (predicate) {
    out_ += indices.empty() ? "if " : " if ";
    expr(predicate);
  }
  out_ += "]";
}

void Printer::expr(const Expr& e, int precedence) {
  if (e.get() == nullptr) {
    out_ += "<none>";  // ill-formed; printed all the same, so that an error message can show it
    return;
  }
  switch (e.kind()) {
    case NodeKind::kIntImm:
    case NodeKind::kFloatImm: return number(e, /*suffix=*/true);
    case NodeKind::kVar: out_ += names_.name(e.get(), e.as<VarNode>()->name); return;
    case NodeKind::kCast:
      out_ += to_string(e.dtype()) + "(";
      expr(e.as<Cast>()->value);
      out_ += ")";
      return;
    case NodeKind::kBinary: {
      const auto& node = *e.as<Binary>();
      const BinaryForm form = binary_form(node.op, node.a.dtype().is_bool());
      if (form.precedence == 0) {
        out_ += std::string(form.word) + "(";
        operand(node.a, node.b, 0);
        out_ += ", ";
        operand(node.b, node.a, 0);
        out_ += ")";
        return;
      }
      const bool parens = form.precedence < precedence;
      if (parens) out_ += "(";
      operand(node.a, node.b, form.precedence + (form.precedence == kComparePrecedence ? 1 : 0));
      out_ += " " + std::string(form.word) + " ";
      operand(node.b, node.a, form.precedence + 1);
      if (parens) out_ += ")";
      return;
    }
    case NodeKind::kNot: out_ += e.dtype().is_bool() ? "!" : "~"; return expr(e.as<Not>()->value, kUnaryPrecedence);
    case NodeKind::kSelect: {
      const auto& node = *e.as<Select>();
      out_ += "select(";
      expr(node.cond);
      out_ += ", ";
      operand(node.a, node.b, 0);
      out_ += ", ";
      operand(node.b, node.a, 0);
      out_ += ")";
      return;
    }
    case NodeKind::kLoad: {
      const auto& node = *e.as<Load>();
      return access(node.buffer, node.indices, node.predicate);
    }
    case NodeKind::kRamp: {
      const auto& node = *e.as<Ramp>();
      out_ += "ramp(";
      operand(node.base, node.stride, 0);
      out_ += ", ";
      operand(node.stride, node.base, 0);
      out_ += ", " + std::to_string(node.lanes) + ")";
      return;
    }
    case NodeKind::kBroadcast:
      out_ += "broadcast(";
      expr(e.as<Broadcast>()->value);
      out_ += ", " + std::to_string(e.as<Broadcast>()->lanes) + ")";
      return;
    case NodeKind::kLet: {
      const auto& node = *e.as<Let>();
      out_ += "(let ";
      std::string value = detached([&] { typed_value(node.value, node.var.dtype()); });
      std::string previous = names_.bind(node.var.get(), node.var.name());
      out_ +=
          names_.name(node.var.get(), node.var.name()) + ": " + to_string(node.var.dtype()) + " = " + value + " in ";
      expr(node.body);
      out_ += ")";
      names_.unbind(node.var.get(), std::move(previous));
      return;
    }
    case NodeKind::kCall: return call(*e.as<Call>());
    default: TS_UNREACHABLE() << static_cast<int>(e.kind());
  }
}

void Printer::call(const Call& node) {
  out_ += intrinsic_word(node.id);
  if (implied_call_type(node.id, node.args) != node.dtype) out_ += ":" + to_string(node.dtype);
  if (node.id == Intrinsic::kExtern) out_ += " " + word_or_quoted(node.symbol);
  out_ += "(";
  list(node.args);
  out_ += ")";
}

void Printer::attrs(const Attrs& attrs) {
  if (attrs.empty()) return;
  const char* separator = " @(";
  for (const auto& [key, value] : attrs) {
    out_ += separator + word_or_quoted(key) + " = " + std::to_string(value);
    separator = ", ";
  }
  out_ += ")";
}

void Printer::buffer_type(const Buffer& buffer) {
  out_ += ": " + to_string(buffer->dtype) + "[";
  list(buffer->shape);
  out_ += "]";
  if (buffer->scope != Scope::kGlobal) out_ += " " + std::string(scope_word(buffer->scope));
  if (buffer->alignment != 64) out_ += " align " + std::to_string(buffer->alignment);
}

void Printer::braces(const Stmt& body) {
  out_ += " {\n";
  ++indent_;
  stmt(body, /*last=*/true);
  --indent_;
  line("}");
}

void Printer::line(std::string_view start) {
  out_.append(static_cast<size_t>(indent_) * 2, ' ');
  out_ += start;
}

void Printer::if_chain(const If& node) {
  out_ += "if ";
  expr(node.cond);
  braces(node.then);
  if (!node.otherwise) return;
  out_ += " else";
  if (const auto* next = node.otherwise.as<If>()) {
    out_ += " ";
    if_chain(*next);
  } else {
    braces(node.otherwise);
  }
}

void Printer::stmt(const Stmt& s, bool last) {
  if (!s) return;
  // A let or an allocation reaches to the end of the surrounding braces, so it gets braces of its own unless it comes
  // last.
  if (!last && (s.as<LetStmt>() || s.as<Allocate>())) {
    line("{\n");
    ++indent_;
    stmt(s, /*last=*/true);
    --indent_;
    line("}\n");
    return;
  }
  switch (s->kind) {
    case NodeKind::kFor: {
      const auto& node = *s.as<For>();
      const std::string range = detached([&] {
        if (!is_const_int(node.min, 0)) {
          expr(node.min);
          out_ += " +: ";
        }
        expr(node.extent);
        attrs(node.attrs);
      });
      std::string previous = names_.bind(node.var.get(), node.var.name());
      line(for_word(node.for_kind));
      out_ += " " + names_.name(node.var.get(), node.var.name()) + " in " + range;
      braces(node.body);
      out_ += "\n";
      return names_.unbind(node.var.get(), std::move(previous));
    }
    case NodeKind::kWhile: {
      line("while ");
      expr(s.as<While>()->cond);
      braces(s.as<While>()->body);
      out_ += "\n";
      return;
    }
    case NodeKind::kIf:
      line("");
      if_chain(*s.as<If>());
      out_ += "\n";
      return;
    case NodeKind::kLetStmt: {
      const auto& node = *s.as<LetStmt>();
      const std::string value = detached([&] { typed_value(node.value, node.var.dtype()); });
      std::string previous = names_.bind(node.var.get(), node.var.name());
      line("let ");
      out_ += names_.name(node.var.get(), node.var.name()) + ": " + to_string(node.var.dtype()) + " = " + value + "\n";
      stmt(node.body, /*last=*/true);
      return names_.unbind(node.var.get(), std::move(previous));
    }
    case NodeKind::kStore: {
      const auto& node = *s.as<Store>();
      line("");
      access(node.buffer, node.indices, node.predicate);
      out_ += " = ";
      // A constant takes its lanes from the indices; where all indices are scalars there is no other place for them.
      const bool scalar_place = node.indices.empty() || node.indices[0].dtype().is_scalar();
      typed_value(node.value, scalar_place ? node.buffer->dtype : node.value.dtype());
      out_ += "\n";
      return;
    }
    case NodeKind::kBlock: {
      const auto& stmts = s.as<Block>()->stmts;
      for (size_t k = 0; k < stmts.size(); ++k) stmt(stmts[k], last && k + 1 == stmts.size());
      return;
    }
    case NodeKind::kAllocate: {
      const auto& node = *s.as<Allocate>();
      const std::string type = detached([&] { buffer_type(node.buffer); });
      std::string previous = names_.bind(node.buffer.get(), node.buffer->name);
      line("alloc ");
      out_ += names_.name(node.buffer.get(), node.buffer->name) + type + "\n";
      stmt(node.body, /*last=*/true);
      return names_.unbind(node.buffer.get(), std::move(previous));
    }
    case NodeKind::kEvaluate:
      line("eval ");
      expr(s.as<Evaluate>()->value);
      out_ += "\n";
      return;
    case NodeKind::kAssert: {
      const auto& node = *s.as<Assert>();
      line("assert ");
      expr(node.cond);
      out_ += ", " + std::to_string(node.code) + ", " + quoted(node.message) + "\n";
      return;
    }
    default: TS_UNREACHABLE() << static_cast<int>(s->kind);
  }
}

void Printer::function(const LoopFunction& f) {
  // Shapes use the scalars, so these get their names first.
  std::vector<std::string> params;
  for (const Var& var : f.scalars) names_.bind(var.get(), var.name());
  for (const Buffer& buffer : f.buffers) names_.bind(buffer.get(), buffer->name);
  for (const Buffer& buffer : f.buffers)
    params.push_back(names_.name(buffer.get(), buffer->name) + detached([&] { buffer_type(buffer); }));
  std::string scalars, outputs;
  for (const Var& var : f.scalars) {
    scalars += scalars.empty() ? "; " : ", ";
    scalars += names_.name(var.get(), var.name()) + ": " + to_string(var.dtype());
  }
  for (const Buffer& buffer : f.outputs) {
    outputs += outputs.empty() ? " -> " : ", ";
    outputs += names_.name(buffer.get(), buffer->name);
  }
  size_t width = f.name.size() + scalars.size() + outputs.size();
  for (const std::string& param : params) width += param.size() + 2;
  const std::string separator = width > 100 ? ",\n    " : ", ";
  out_ += "func " + word_or_quoted(f.name) + (width > 100 ? "(\n    " : "(");
  for (size_t k = 0; k < params.size(); ++k) out_ += (k > 0 ? separator : "") + params[k];
  out_ += scalars + ")" + outputs;
  attrs(f.attrs);
  braces(f.body);
  out_ += "\n";
}

std::string_view Printer::intrinsic_word(Intrinsic id) {
  return id == Intrinsic::kExtern ? "extern" : intrinsic_info(id).name;
}

}  // namespace text

std::string to_string(const Expr& e) {
  text::Printer printer;
  printer.expr(e);
  return printer.take();
}

std::string to_string(const Stmt& s) {
  text::Printer printer;
  printer.stmt(s, /*last=*/true);
  return printer.take();
}

std::string to_string(const LoopFunction& f) {
  text::Printer printer;
  printer.function(f);
  return printer.take();
}

std::string to_string(const LoopProgram& p) {
  std::string result;
  for (const LoopFunction& f : p.functions) result += (result.empty() ? "" : "\n") + to_string(f);
  return result;
}

}  // namespace tensmith
