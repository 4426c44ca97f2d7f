#include "codegen/c_writer.h"
#include "runtime/base/error.h"

namespace tensmith {

namespace {

bool is_half(DType type) { return type.is_float() && type.bits == 16; }

int lane_number(const Expr& e) {
  int64_t value = 0;
  TS_CHECK(as_const_int(e, &value)) << "lanes are constants";
  return static_cast<int>(value);
}

const char* libm_name(Intrinsic id) {
  switch (id) {
    case Intrinsic::kAbs: return "fabs";
    case Intrinsic::kRoundEven: return "nearbyint";
    case Intrinsic::kSqrt:
    case Intrinsic::kExp:
    case Intrinsic::kLog:
    case Intrinsic::kTanh:
    case Intrinsic::kErf:
    case Intrinsic::kSin:
    case Intrinsic::kCos:
    case Intrinsic::kTan:
    case Intrinsic::kAsin:
    case Intrinsic::kAcos:
    case Intrinsic::kAtan:
    case Intrinsic::kSinh:
    case Intrinsic::kCosh:
    case Intrinsic::kAsinh:
    case Intrinsic::kAcosh:
    case Intrinsic::kAtanh:
    case Intrinsic::kPow:
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kTrunc:
    case Intrinsic::kCopySign:
    case Intrinsic::kFma: return intrinsic_info(id).name;
    default: return nullptr;
  }
}

}  // namespace

CText CWriter::float_call(const Call& node, const CLane& lane) {
  const DType type = node.args[0].dtype().element();
  const char* name = libm_name(node.id);
  // 16-bit floats in double, so that only the last step rounds.
  std::string text = name ? std::string(name) + (type.bits == 32 ? "f" : "") : helpers_.intrinsic(node.id, type);
  text += "(";
  for (size_t k = 0; k < node.args.size(); ++k) text += (k ? ", " : "") + within(node.args[k], lane, 2);
  return rounded(type, {text + ")"});
}

CText CWriter::extern_call(const Call& node) {
  const bool is_own = functions_.count(node.symbol) != 0;
  std::string name = node.symbol, list, types;
  if (name == "tensmith_thread_index" || name == "tensmith_num_threads" || name == "tensmith_on_kernel") {
    name = helpers_.runtime(name);
  }
  for (const Expr& arg : node.args) {
    TS_CHECK(arg.dtype().is_scalar()) << node.symbol << " takes scalars";
    list += (list.empty() ? "" : ", ") + as_stored(arg.dtype(), within(arg, {}, 2));
    types += (types.empty() ? "" : ", ") + c_storage_type(arg.dtype());
  }
  if (!is_own && name == node.symbol && !c_library_has(name))
    externs_.emplace(name, c_storage_type(node.dtype) + " " + name + "(" + (types.empty() ? "void" : types) + ");");
  const std::string text = name + "(" + list + ")";
  return {is_half(node.dtype) ? helpers_.from_bits(node.dtype) + "(" + text + ")" : text};
}

CText CWriter::call(const Call& node, const CLane& lane) {
  const DType type = node.dtype.element();
  const auto reduce = [&](const char* name, BinaryOp op) -> CText {
    const CText combine = binary(op, type, {"a"}, {"b"}, /*may_wrap=*/true);
    return {helpers_.reduce(name, type, combine.text) + "(" + lanes_of(node.args[0]) + ", " +
            std::to_string(node.args[0].dtype().lanes) + ")"};
  };
  switch (node.id) {
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
      return {
          std::string(node.id == Intrinsic::kIsNan ? "isnan(" : "isinf(") + within(node.args[0], lane, 2) + ") != 0",
          9};
    case Intrinsic::kReduceAdd: return reduce("add", BinaryOp::kAdd);
    case Intrinsic::kReduceMul: return reduce("mul", BinaryOp::kMul);
    case Intrinsic::kReduceMin: return reduce("min", BinaryOp::kMin);
    case Intrinsic::kReduceMax: return reduce("max", BinaryOp::kMax);
    case Intrinsic::kReduceAnd: return reduce("and", BinaryOp::kAnd);
    case Intrinsic::kReduceOr: return reduce("or", BinaryOp::kOr);
    case Intrinsic::kExtractLane: {
      const int l = lane_number(node.args[1]);
      return expr(node.args[0], {std::to_string(l), l});
    }
    case Intrinsic::kShuffle: {
      TS_CHECK(lane.number >= 0) << "a shuffle in a loop over lanes";
      const int l = lane_number(node.args[1 + static_cast<size_t>(lane.number)]);
      return expr(node.args[0], {std::to_string(l), l});
    }
    case Intrinsic::kConcat: {
      TS_CHECK(lane.number >= 0) << "parts side by side in a loop over lanes";
      int l = lane.number;
      for (const Expr& part : node.args) {
        if (l < part.dtype().lanes) return expr(part, {std::to_string(l), l});
        l -= part.dtype().lanes;
      }
      break;
    }
    case Intrinsic::kBitcast: {
      const Expr& from = node.args[0];
      const bool is_same = from.dtype().lanes == node.dtype.lanes;
      const std::string lane_text = is_same ? "0" : lane.text;
      const std::string bytes = is_same ? "(" + c_storage_type(from.dtype().element()) + "[1]){" +
                                              as_stored(from.dtype(), within(from, lane, 2)) + "}"
                                        : lanes_of(from, /*as_stored=*/true);
      return {helpers_.lane_of_bytes(type) + "(" + bytes + ", " + lane_text + ")"};
    }
    case Intrinsic::kDotAccumulate: {
      std::string sum = "(uint32_t)" + within(node.args[0], lane, 14);
      for (int k = 0; k < 4; ++k) {
        const CLane part = lane.number >= 0 ? CLane{std::to_string(4 * lane.number + k), 4 * lane.number + k}
                                            : CLane{"(4 * " + lane.text + " + " + std::to_string(k) + ")", -1};
        sum += " + (uint32_t)(" + within(node.args[1], part, 14) + " * " + within(node.args[2], part, 14) + ")";
      }
      return {"(int32_t)(" + sum + ")", 14};
    }
    case Intrinsic::kAddressOf: {
      const auto* place = node.args[0].as<Load>();
      TS_CHECK(place != nullptr) << "address_of wants a load";
      return {"(void *)&" + element(place->buffer, place->indices, lane), 14};
    }
    case Intrinsic::kPrefetch: {
      const auto* place = node.args[0].as<Load>();
      TS_CHECK(place != nullptr) << "prefetch wants a load";
      return {helpers_.prefetch() + "(&" + element(place->buffer, place->indices, {}) + ")"};
    }
    case Intrinsic::kExtern: return extern_call(node);
    default: break;
  }
  if (type.is_float()) return float_call(node, lane);
  std::string text = helpers_.intrinsic(node.id, type) + "(";
  for (size_t k = 0; k < node.args.size(); ++k) text += (k ? ", " : "") + within(node.args[k], lane, 2);
  return {text + ")"};
}

}  // namespace tensmith
