#include "graph/parse_dim.h"

#include <charconv>

#include "graph/text.h"

namespace tensmith::graph {

Var DimScope::declare(const std::string& name) {
  const auto [it, fresh] = names_.try_emplace(name);
  if (fresh) it->second = Var(name);
  return it->second;
}

Var DimScope::find(const std::string& name) {
  const auto [it, fresh] = names_.try_emplace(name);
  if (fresh) {
    it->second = Var(name);
    pending_[it->second.operator->()] = name;
  }
  return it->second;
}

void DimScope::unify(const TensorType& written, const TensorType& inferred) {
  for (size_t k = 0; k < written.shape.size() && k < inferred.shape.size(); ++k) {
    const auto* var = written.shape[k].as<VarNode>();
    const auto* actual = inferred.shape[k].as<VarNode>();
    const auto found = pending_.find(var);
    if (!var || !actual || found == pending_.end()) continue;
    names_[found->second] = Var(actual);
    become_[var] = inferred.shape[k];
    pending_.erase(found);
  }
}

TensorType DimScope::resolve(TensorType type) const {
  if (!become_.empty())
    for (Expr& dim : type.shape) dim = substitute(dim, become_);
  return type;
}

namespace {

constexpr int kMaxDepth = 200;

class DimParser {
 public:
  DimParser(Lexer& lexer, DimScope& dims) : lex_(lexer), dims_(dims) {}

  Result<Expr> sum() {
    if (++depth_ > kMaxDepth) return lex_.error("the expression is nested too deeply");
    auto left = product();
    while (left) {
      const bool plus = lex_.accept("+");
      if (!plus && !lex_.accept("-")) break;
      auto right = product();
      if (!right) return right;
      if (left->dtype() != right->dtype()) return lex_.error("operands of different types");
      left = plus ? *left + *right : *left - *right;
    }
    --depth_;
    return left;
  }

 private:
  Result<Expr> product() {
    auto left = factor();
    while (left && lex_.accept("*")) {
      auto right = factor();
      if (!right) return right;
      if (left->dtype() != right->dtype()) return lex_.error("operands of different types");
      left = *left * *right;
    }
    return left;
  }

  Result<Expr> factor() {
    if (lex_.accept("(")) {
      auto inner = sum();
      if (inner && !lex_.accept(")")) return lex_.expected("')'");
      return inner;
    }
    if (lex_.peek() == '"') {
      auto name = lex_.string();
      if (!name) return name.failure();
      return Expr(dims_.find(*name));
    }
    const char next = lex_.peek();
    if (next == '-' || (next >= '0' && next <= '9')) {
      const std::string_view text = lex_.number();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (text.empty() || error != std::errc() || end != text.data() + text.size())
        return lex_.expected("an int in front of this");
      return Expr(value);
    }
    const std::string name(lex_.identifier());
    if (name.empty()) return lex_.expected("a dim");
    if (name == "true" || name == "false") return make_bool(name == "true");
    if (!lex_.accept("(")) return Expr(dims_.find(name));
    return name == "cast" ? cast_call() : function(name);
  }

  Result<Expr> cast_call() {
    const auto dtype = parse_dtype(lex_.identifier());
    if (!dtype || !dtype->is_scalar() || dtype->is_handle()) return lex_.expected("an element type in front of this");
    if (!lex_.accept(",")) return lex_.expected("','");
    Result<Expr> value = Expr(0);
    if (dtype->is_float()) {
      Lexer before = lex_;
      const std::string_view text = lex_.number();
      double real = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
      if (!text.empty() && error == std::errc() && end == text.data() + text.size()) {
        if (!lex_.accept(")")) return lex_.expected("')'");
        return FloatImm::make(*dtype, real);
      }
      lex_ = before;
    }
    value = sum();
    if (!value) return value;
    if (!lex_.accept(")")) return lex_.expected("')'");
    if (const auto* imm = value->as<IntImm>(); imm && imm->dtype == kInt64) return make_const_int(*dtype, imm->value);
    return cast(*dtype, *value);
  }

  Result<Expr> function(const std::string& name) {
    std::vector<Expr> args;
    do {
      auto arg = sum();
      if (!arg) return arg;
      args.push_back(*arg);
    } while (lex_.accept(","));
    if (!lex_.accept(")")) return lex_.expected("')'");
    try {
      if (name == "select" && args.size() == 3) return select(args[0], args[1], args[2]);
      if (name == "not" && args.size() == 1) return Not::make(args[0]);
      for (int op = 0; op <= static_cast<int>(BinaryOp::kGE); ++op)
        if (const char* text = dim_function(static_cast<BinaryOp>(op)); text && name == text && args.size() == 2)
          return Binary::make(static_cast<BinaryOp>(op), args[0], args[1]);
      for (int id = 0; id < static_cast<int>(Intrinsic::kExtern); ++id) {
        const IntrinsicInfo& info = intrinsic_info(static_cast<Intrinsic>(id));
        if (name != info.name || info.arity != static_cast<int>(args.size())) continue;
        const bool gives_bool =
            static_cast<Intrinsic>(id) == Intrinsic::kIsNan || static_cast<Intrinsic>(id) == Intrinsic::kIsInf;
        return Call::make(gives_bool ? kBool : args[0].dtype(), static_cast<Intrinsic>(id), args);
      }
    } catch (const InternalError&) {
      return lex_.error(
          name + ": arguments of wrong types");  // constructors check types as invariants; here they come from a text
    }
    return lex_.error("no function '" + name + "' of " + std::to_string(args.size()) + " arguments");
  }

  Lexer& lex_;
  DimScope& dims_;
  int depth_ = 0;
};

}  // namespace

Result<Expr> parse_dim(Lexer& lexer, DimScope& dims) {
  auto dim = DimParser(lexer, dims).sum();
  if (dim && dim->dtype() != kInt64) return lexer.error("a dim must be an i64 expression");
  return dim;
}

}  // namespace tensmith::graph
