#include "tensor/verify/types.h"

namespace tensmith::verifier {

namespace {

std::string expected_got(const std::string& what, const std::string& expected, const std::string& got) {
  return what + ": expected " + expected + ", got " + got;
}

std::string access_error(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate, int* lanes) {
  if (!buffer) return expected_got("access", "a buffer", "none");
  const size_t rank = buffer->shape.size();
  if (indices.size() != rank && indices.size() != 1)
    return expected_got("indices of " + buffer->name, std::to_string(rank) + ", or one flat index",
                        std::to_string(indices.size()));
  *lanes = 1;
  for (const Expr& index : indices) {
    if (!index.get()) return expected_got("index of " + buffer->name, "an expression", "none");
    if (index.dtype().element() != kInt64)
      return expected_got("index of " + buffer->name, "i64", to_string(index.dtype()));
    *lanes = std::max<int>(*lanes, index.dtype().lanes);
  }
  for (const Expr& index : indices)
    if (index.dtype().lanes != *lanes)
      return expected_got("lanes of the indices of " + buffer->name, std::to_string(*lanes),
                          std::to_string(index.dtype().lanes));
  if (predicate.get() && predicate.dtype() != kBool.with_lanes(*lanes))
    return expected_got("predicate", to_string(kBool.with_lanes(*lanes)), to_string(predicate.dtype()));
  return {};
}

std::string call_error(const Call& call) {
  const IntrinsicInfo& info = intrinsic_info(call.id);
  const std::string name = info.name;
  if (info.arity >= 0 && static_cast<int>(call.args.size()) != info.arity)
    return expected_got("arguments of " + name, std::to_string(info.arity), std::to_string(call.args.size()));
  for (const Expr& arg : call.args)
    if (!arg.get()) return expected_got("argument of " + name, "an expression", "none");
  switch (call.id) {
    case Intrinsic::kExtern:
      if (call.symbol.empty()) return expected_got("external call", "a symbol", "an empty name");
      return {};
    case Intrinsic::kAddressOf:
    case Intrinsic::kPrefetch:
      return call.args[0].as<Load>()
                 ? std::string()
                 : expected_got("first argument of " + name, "a load", to_string(call.args[0].dtype()));
    case Intrinsic::kExtractLane:
    case Intrinsic::kShuffle: {
      if (call.args.empty()) return expected_got("arguments of " + name, "a vector", "none");
      for (size_t i = 1; i < call.args.size(); ++i) {
        int64_t lane;
        if (!as_const_int(call.args[i], &lane) || lane < 0 || lane >= call.args[0].dtype().lanes)
          return expected_got("lane of " + name, "a constant below " + std::to_string(call.args[0].dtype().lanes),
                              "another");
      }
      return {};
    }
    default: return {};
  }
}

}  // namespace

std::string type_error(const Expr& e) {
  if (const auto* op = e.as<Binary>()) {
    if (op->a.dtype() != op->b.dtype())
      return expected_got("operands", "one type", to_string(op->a.dtype()) + " and " + to_string(op->b.dtype()));
    const DType want = is_compare(op->op) ? kBool.with_lanes(op->a.dtype().lanes) : op->a.dtype();
    if (op->dtype != want) return expected_got("result", to_string(want), to_string(op->dtype));
  } else if (const auto* select = e.as<Select>()) {
    if (!select->cond.dtype().is_bool()) return expected_got("condition", "bool", to_string(select->cond.dtype()));
    if (select->a.dtype() != select->b.dtype())
      return expected_got("branches", "one type",
                          to_string(select->a.dtype()) + " and " + to_string(select->b.dtype()));
  } else if (const auto* load = e.as<Load>()) {
    int lanes;
    if (std::string error = access_error(load->buffer, load->indices, load->predicate, &lanes); !error.empty())
      return error;
    if (load->dtype != load->buffer->dtype.with_lanes(lanes))
      return expected_got("load from " + load->buffer->name, to_string(load->buffer->dtype.with_lanes(lanes)),
                          to_string(load->dtype));
  } else if (const auto* let = e.as<Let>()) {
    if (let->var.dtype() != let->value.dtype())
      return expected_got("value of " + let->var.name(), to_string(let->var.dtype()), to_string(let->value.dtype()));
  } else if (const auto* call = e.as<Call>()) {
    return call_error(*call);
  }
  return {};
}

std::string type_error(const Stmt& s) {
  const auto condition_error = [](const Expr& cond) {
    return cond.get() && cond.dtype() == kBool
               ? std::string()
               : expected_got("condition", "bool", cond ? to_string(cond.dtype()) : "none");
  };
  if (const auto* loop = s.as<For>()) {
    for (const Expr& e : {Expr(loop->var), loop->min, loop->extent})
      if (!e.get() || e.dtype() != kInt64)
        return expected_got("loop " + loop->var.name(), "i64", e ? to_string(e.dtype()) : "none");
  } else if (const auto* op = s.as<While>()) {
    return condition_error(op->cond);
  } else if (const auto* branch = s.as<If>()) {
    return condition_error(branch->cond);
  } else if (const auto* let = s.as<LetStmt>()) {
    if (let->var.dtype() != let->value.dtype())
      return expected_got("value of " + let->var.name(), to_string(let->var.dtype()), to_string(let->value.dtype()));
  } else if (const auto* store = s.as<Store>()) {
    int lanes;
    if (std::string error = access_error(store->buffer, store->indices, store->predicate, &lanes); !error.empty())
      return error;
    const DType want = store->buffer->dtype.with_lanes(lanes);
    if (!store->value.get() || store->value.dtype() != want)
      return expected_got("value for " + store->buffer->name, to_string(want),
                          store->value ? to_string(store->value.dtype()) : "none");
  } else if (const auto* block = s.as<Block>()) {
    for (const Stmt& part : block->stmts)
      if (!part || part.as<Block>())
        return expected_got("block", "statements that are neither null nor blocks", part ? "a block" : "null");
  } else if (const auto* allocation = s.as<Allocate>()) {
    for (const Expr& extent : allocation->buffer->shape)
      if (extent.dtype() != kInt64)
        return expected_got("extent of " + allocation->buffer->name, "i64", to_string(extent.dtype()));
  } else if (const auto* assertion = s.as<Assert>()) {
    if (assertion->code == 0) return expected_got("error code", "not zero", "0");
    return condition_error(assertion->cond);
  }
  return {};
}

}  // namespace tensmith::verifier
