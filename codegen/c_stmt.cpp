#include <algorithm>
#include <cctype>
#include <utility>

#include "codegen/artifact.h"
#include "codegen/c_source.h"
#include "codegen/c_writer.h"
#include "runtime/base/error.h"
#include "tensor/equal_hash.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

// What a function may have on its stack; larger buffers come from the heap.
constexpr int64_t kMaxStackBytes = 64 * 1024;

const std::set<std::string>& reserved_words() {
  static const std::set<std::string> words = {
      "auto", "bool",     "break",    "case",     "char",   "const",    "continue", "default", "do",     "double",
      "else", "enum",     "extern",   "false",    "float",  "for",      "goto",     "if",      "inline", "int",
      "long", "register", "restrict", "return",   "short",  "signed",   "sizeof",   "static",  "struct", "switch",
      "true", "typedef",  "union",    "unsigned", "void",   "volatile", "while",    "main",    "NAN",    "INFINITY",
      "asm",  "typeof",   "free",     "malloc",   "memcpy", "l",        "isnan",    "isinf",   "signbit"};
  return words;
}

bool reads(const Expr& e, const Buffer& buffer) {
  bool found = false;
  if (e.get() != nullptr)
    visit(e, [&](const Expr& part) {
      const auto* load = part.as<Load>();
      found = found || (load && load->buffer.same_as(buffer));
      return !found;
    });
  return found;
}

/// Whether a lane of the store may change what a later lane reads.
bool lanes_meet(const Store& node) {
  const Expr& last = node.indices.back();
  const auto* ramp = last.as<Ramp>();
  const bool apart = ramp && !is_const_int(ramp->stride, 0) && ramp->stride.kind() == NodeKind::kIntImm;
  bool meet = reads(node.predicate, node.buffer);
  for (const Expr& index : node.indices) meet = meet || reads(index, node.buffer);
  visit(node.value, [&](const Expr& part) {
    const auto* load = part.as<Load>();
    if (!load || !load->buffer.same_as(node.buffer)) return true;
    bool same = apart && load->indices.size() == node.indices.size();
    for (size_t d = 0; same && d < node.indices.size(); ++d) same = equal(load->indices[d], node.indices[d]);
    meet = meet || !same;
    return true;
  });
  return meet;
}

const char* word_of(ForKind kind) {
  switch (kind) {
    case ForKind::kParallel: return "parallel";
    case ForKind::kVectorized: return "vectorized";
    case ForKind::kUnrolled: return "unrolled";
    default: return "";
  }
}

}  // namespace

std::string CWriter::fresh(const std::string& name) {
  std::string base;
  for (char c : name) base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) != 0) base.insert(0, "v");
  // Names of helpers begin so.
  if (base.rfind("ts_", 0) == 0 || base.rfind("TS_", 0) == 0) base.insert(0, "v");
  std::string free = base;
  for (int k = 1; reserved_words().count(free) != 0 || c_library_has(free) || functions_.count(free) != 0 ||
                  taken_.count(free) != 0;
       ++k)
    free = base + "_" + std::to_string(k);
  taken_.insert(free);
  return free;
}

void CWriter::line(const std::string& text) {
  for (const std::string& declaration : declarations_) out_ += indent() + declaration + "\n";
  declarations_.clear();
  out_ += indent() + text + "\n";
}

void CWriter::leave(const std::string& code) {
  if (heap_.empty()) return line("return " + code + ";");
  for (size_t k = heap_.size(); k-- > 0;) line("free(" + heap_[k] + ");");
  line("return " + code + ";");
}

void CWriter::fill(const std::string& name, const Expr& value) {
  const DType type = value.dtype();
  const std::string head = c_type(type.element()) + " " + name + "[" + std::to_string(type.lanes) + "]";
  if (is_lane_by_lane(value)) {
    const std::string each = within(value, {"l", -1}, 2);
    line(head + ";");
    line("for (int64_t l = 0; l < " + std::to_string(type.lanes) + "; ++l) " + name + "[l] = " + each + ";");
    return;
  }
  std::string list;
  for (int l = 0; l < type.lanes; ++l) list += (l ? ", " : "") + within(value, {std::to_string(l), l}, 2);
  line(head + " = {" + list + "};");
}

void CWriter::stmt(const Stmt& s) {
  if (s.get() == nullptr) return;
  switch (s->kind) {
    case NodeKind::kBlock:
      for (const Stmt& part : s.as<Block>()->stmts) stmt(part);
      return;
    case NodeKind::kFor: return loop(*s.as<For>());
    case NodeKind::kWhile: {
      const auto& node = *s.as<While>();
      line("while (" + bare(node.cond, {}) + ") {");
      ++depth_;
      stmt(node.body);
      --depth_;
      return line("}");
    }
    case NodeKind::kIf: return branch(*s.as<If>());
    case NodeKind::kLetStmt: return bind(*s.as<LetStmt>());
    case NodeKind::kStore: return store(*s.as<Store>());
    case NodeKind::kAllocate: return allocate(*s.as<Allocate>());
    case NodeKind::kEvaluate: return evaluate(*s.as<Evaluate>());
    case NodeKind::kAssert: {
      const auto& node = *s.as<Assert>();
      std::string message = node.message;
      std::replace(message.begin(), message.end(), '\n', ' ');
      while (!message.empty() && message.back() == '\\') message.pop_back();
      line("if (!" + within(node.cond, {}, 14) + ") {" + (message.empty() ? "" : "  // expected: " + message));
      ++depth_;
      leave(std::to_string(node.code));
      --depth_;
      return line("}");
    }
    default: break;
  }
  TS_UNREACHABLE() << "statement kind " << static_cast<int>(s->kind);
}

void CWriter::loop(const For& node) {
  std::string note = word_of(node.for_kind);
  for (const auto& [key, value] : node.attrs) note += (note.empty() ? "" : ", ") + key + " = " + std::to_string(value);
  const bool saved = std::exchange(in_index_, true);
  const std::string first = within(node.min, {}, 2);
  const bool from_zero = is_const_int(node.min, 0);
  std::string end = from_zero ? within(node.extent, {}, 12)
                              : binary(BinaryOp::kAdd, kInt64, expr(node.min, {}), expr(node.extent, {}), false).text;
  in_index_ = saved;
  const bool is_fixed = from_zero && (node.extent.kind() == NodeKind::kIntImm || node.extent.kind() == NodeKind::kVar);
  const std::string name = fresh(node.var.name());
  if (!is_fixed && node.extent.kind() != NodeKind::kIntImm) {
    // Evaluated once: the body may change what it is made of.
    const std::string limit = fresh(node.var.name() + "_end");
    line("const int64_t " + limit + " = " + end + ";");
    end = limit;
  }
  line("for (int64_t " + name + " = " + first + "; " + name + " < " + end + "; ++" + name + ") {" +
       (note.empty() ? "" : "  // " + note));
  vars_[node.var.get()] = {name};
  ++depth_;
  stmt(node.body);
  --depth_;
  vars_.erase(node.var.get());
  line("}");
}

void CWriter::branch(const If& node) {
  line("if (" + bare(node.cond, {}) + ") {");
  ++depth_;
  stmt(node.then);
  --depth_;
  if (node.otherwise.get() != nullptr) {
    line("} else {");
    ++depth_;
    stmt(node.otherwise);
    --depth_;
  }
  line("}");
}

void CWriter::bind(const LetStmt& node) {
  const DType type = node.value.dtype();
  const std::string name = fresh(node.var.name());
  const bool used = uses_var(node.body, node.var);
  if (used && type.lanes == 1) line("const " + c_type(type) + " " + name + " = " + within(node.value, {}, 2) + ";");
  else if (used) fill(name, node.value);
  if (may_wrap(node.value)) data_.insert(node.var.get());
  vars_[node.var.get()] = {name};
  stmt(node.body);
  vars_.erase(node.var.get());
}

void CWriter::store(const Store& node) {
  if (node.value.dtype().lanes > 1) return store_lanes(node);
  const std::string place = element(node.buffer, node.indices, {});
  std::string text = place + " = " + as_stored(node.value.dtype(), within(node.value, {}, 2)) + ";";
  if (node.predicate.get() != nullptr) text = "if (" + bare(node.predicate, {}) + ") " + text;
  line(text);
}

void CWriter::store_lanes(const Store& node) {
  const DType type = node.value.dtype();
  const std::string head = "for (int64_t l = 0; l < " + std::to_string(type.lanes) + "; ++l) ";
  bool simple = is_lane_by_lane(node.value) && is_lane_by_lane(node.predicate) && !lanes_meet(node);
  for (const Expr& index : node.indices) simple = simple && is_lane_by_lane(index);
  const std::string count = "[" + std::to_string(type.lanes) + "]";
  std::string value, on, place;
  const CLane each{"l", -1};
  if (simple) {
    value = within(node.value, each, 2);
    place = element(node.buffer, node.indices, each);
    if (node.predicate.get() != nullptr) on = "if (" + bare(node.predicate, each) + ") ";
  } else {
    // All lanes are read before one is written. What a lane that is off would read need not exist.
    const std::string values = fresh("value"), places = fresh("place"), mask = fresh("on");
    const bool masked = node.predicate.get() != nullptr;
    line(c_type(type.element()) + " " + values + count + ";");
    line(c_storage_type(type.element()) + " *" + places + count + ";");
    if (masked) line("bool " + mask + count + ";");
    for (int l = 0; l < type.lanes; ++l) {
      const std::string number = "[" + std::to_string(l) + "]";
      const CLane lane{std::to_string(l), l};
      const std::string read = values + number + " = " + within(node.value, lane, 2) + ", " + places + number + " = &" +
                               element(node.buffer, node.indices, lane) + ";";
      if (!masked) line(read);
      else line("if ((" + mask + number + " = " + within(node.predicate, lane, 2) + ")) " + read);
    }
    value = values + "[l]";
    place = "*" + places + "[l]";
    if (masked) on = "if (" + mask + "[l]) ";
  }
  line(head + on + place + " = " + as_stored(type, value) + ";");
}

void CWriter::allocate(const Allocate& node) {
  const Buffer& buffer = node.buffer;
  if (buffer->scope == Scope::kShared)
    throw UnsupportedError("codegen-scope", "C source: buffer " + buffer->name +
                                                " lies in shared memory of a GPU; expected memory of a CPU");
  const std::string type = c_storage_type(buffer->dtype), name = fresh(buffer->name);
  int64_t bytes = buffer->dtype.bytes();
  bool constant = true;
  CText count{"1"};
  for (const Expr& extent : buffer->shape) {
    int64_t value = 0;
    constant = constant && as_const_int(extent, &value) && !__builtin_mul_overflow(bytes, value, &bytes);
    count = count.text == "1" ? expr(extent, {}) : binary(BinaryOp::kMul, kInt64, count, expr(extent, {}), false);
  }
  buffers_[buffer.get()] = name;
  if (constant && bytes <= kMaxStackBytes) {
    line(type + " " + name + "[" +
         std::to_string(std::max<int64_t>(bytes / std::max<int64_t>(buffer->dtype.bytes(), 1), 1)) + "];");
    stmt(node.body);
  } else {
    line(type + " *" + name + " = malloc(sizeof *" + name + " * (size_t)(" + count.text + ") + 1);");
    line("if (!" + name + ") {");
    ++depth_;
    leave(std::to_string(kOutOfMemoryCode));
    --depth_;
    line("}");
    heap_.push_back(name);
    stmt(node.body);
    heap_.pop_back();
    line("free(" + name + ");");
  }
  buffers_.erase(buffer.get());
}

void CWriter::evaluate(const Evaluate& node) {
  const auto* call = node.value.as<Call>();
  if (call && call->id == Intrinsic::kExtern && functions_.count(call->symbol) != 0) {
    const std::string code = fresh("code");
    line("const int32_t " + code + " = " + within(node.value, {}, 2) + ";");
    line("if (" + code + " != 0) {");
    ++depth_;
    leave(code);
    --depth_;
    return line("}");
  }
  if (node.value.dtype().lanes > 1) {
    for (int l = 0; l < node.value.dtype().lanes; ++l)
      line("(void)(" + bare(node.value, {std::to_string(l), l}) + ");");
    return;
  }
  if (call && call->id == Intrinsic::kPrefetch) return line(bare(node.value, {}) + ";");
  line("(void)" + within(node.value, {}, 14) + ";");
}

std::string CWriter::prototype(const LoopFunction& f) {
  std::string list;
  const bool may_overlap = f.attrs.count(kMayOverlap) != 0;
  for (const Buffer& buffer : f.buffers) {
    const bool written =
        std::any_of(f.outputs.begin(), f.outputs.end(), [&](const Buffer& b) { return b.same_as(buffer); });
    buffers_[buffer.get()] = fresh(buffer->name);
    list += (list.empty() ? "" : ", ") + std::string(written ? "" : "const ") + c_storage_type(buffer->dtype) + " *" +
            (may_overlap ? "" : "restrict ") + buffers_[buffer.get()];
  }
  for (const Var& scalar : f.scalars) {
    const std::string name = fresh(scalar.name());
    const DType type = scalar.dtype();
    list += (list.empty() ? "" : ", ") + c_storage_type(type) + " " + name;
    vars_[scalar.get()] = {c_storage_type(type) == c_type(type) ? name : helpers_.from_bits(type) + "(" + name + ")"};
  }
  return "int32_t " + f.name + "(" + (list.empty() ? "void" : list) + ")";
}

std::string CWriter::function(const LoopFunction& f) {
  const std::string head = prototype(f);
  out_.clear();
  depth_ = 1;
  stmt(f.body);
  leave("0");
  return head + " {\n" + out_ + "}\n";
}

std::string to_c(const LoopProgram& program) {
  CHelpers helpers;
  std::set<std::string> functions;
  for (const LoopFunction& f : program.functions) functions.insert(f.name);
  std::string prototypes, bodies;
  std::map<std::string, std::string> externs;
  for (const LoopFunction& f : program.functions) {
    prototypes += CWriter(helpers, functions).prototype(f) + ";\n";
    if (f.attrs.count(kDeclaration) != 0) continue;
    CWriter writer(helpers, functions);
    bodies += "\n" + writer.function(f);
    externs.insert(writer.externs().begin(), writer.externs().end());
  }
  std::string text =
      "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n\n";
  text += helpers.text();
  for (const auto& [name, declaration] : externs) text += declaration + "\n";
  return text + prototypes + bodies;
}

}  // namespace tensmith
