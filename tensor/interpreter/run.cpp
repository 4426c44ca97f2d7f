#include "tensor/interpreter/run.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tensor/expr.h"

namespace tensmith::interp {

namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double unary(Intrinsic id, double x) {
  switch (id) {
    case Intrinsic::kAbs: return std::fabs(x);
    case Intrinsic::kSqrt: return std::sqrt(x);
    case Intrinsic::kRsqrt: return 1.0 / std::sqrt(x);
    case Intrinsic::kExp: return std::exp(x);
    case Intrinsic::kLog: return std::log(x);
    case Intrinsic::kTanh: return std::tanh(x);
    case Intrinsic::kErf: return std::erf(x);
    case Intrinsic::kSigmoid: return sigmoid(x);
    case Intrinsic::kSin: return std::sin(x);
    case Intrinsic::kCos: return std::cos(x);
    case Intrinsic::kTan: return std::tan(x);
    case Intrinsic::kAsin: return std::asin(x);
    case Intrinsic::kAcos: return std::acos(x);
    case Intrinsic::kAtan: return std::atan(x);
    case Intrinsic::kSinh: return std::sinh(x);
    case Intrinsic::kCosh: return std::cosh(x);
    case Intrinsic::kAsinh: return std::asinh(x);
    case Intrinsic::kAcosh: return std::acosh(x);
    case Intrinsic::kAtanh: return std::atanh(x);
    case Intrinsic::kFloor: return std::floor(x);
    case Intrinsic::kCeil: return std::ceil(x);
    case Intrinsic::kTrunc: return std::trunc(x);
    case Intrinsic::kRoundEven: return std::nearbyint(x);
    default: TS_UNREACHABLE() << static_cast<int>(id);
  }
}

// Division by zero gives 0 for quotient and remainder; INT64_MIN / -1 wraps. x86 traps on both.
int64_t trunc_div(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(a)) : a / b;
}
int64_t trunc_mod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return trunc_div(a, b);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t rest = trunc_mod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double min_nan(double a, double b) { return a < b || std::isnan(a) ? a : b; }
double max_nan(double a, double b) { return a > b || std::isnan(a) ? a : b; }

uint64_t u(int64_t value) { return static_cast<uint64_t>(value); }
int64_t s(uint64_t value) { return static_cast<int64_t>(value); }

int64_t dot4(int64_t sum, const Cell* a, const Cell* b) {
  for (int k = 0; k < 4; ++k) sum += a[k].i * b[k].i;
  return sum;
}

void bitcast(const BitcastInfo& info, const Cell* from, Cell* to) {
  // Lane k lies in bits [k * width, (k + 1) * width), lowest first, as in memory of a little-endian machine.
  uint64_t buffer[kMaxBitcastBits / 64];
  const int in = info.from.bits, out = info.to.bits;
  std::fill_n(buffer, (in * info.from.lanes + 63) / 64, uint64_t{0});
  for (int k = 0; k < info.from.lanes; ++k) {
    const int at = k * in;
    buffer[at / 64] |= to_bits(info.from.element(), from[k])
                       << (at % 64);  // widths divide 64, so no lane crosses a word
  }
  for (int k = 0; k < info.to.lanes; ++k) {
    const int at = k * out;
    const uint64_t mask = out == 64 ? ~uint64_t{0} : (uint64_t{1} << out) - 1;
    to[k] = from_bits(info.to.element(), buffer[at / 64] >> (at % 64) & mask);
  }
}

}  // namespace

// One lane a turn; `k` is the lane.
#define TS_LANES(...)                    \
  {                                      \
    for (int k = 0; k < in.lanes; ++k) { \
      __VA_ARGS__;                       \
    }                                    \
    break;                               \
  }
#define TS_F(expression) TS_LANES(const double a = r[in.a + k].f, b = r[in.b + k].f; r[in.dst + k].f = (expression))
#define TS_F_TEST(expression) \
  TS_LANES(const double a = r[in.a + k].f, b = r[in.b + k].f; r[in.dst + k].i = (expression))
#define TS_I(expression) TS_LANES(const int64_t a = r[in.a + k].i, b = r[in.b + k].i; r[in.dst + k].i = (expression))
#define TS_F1(expression) TS_LANES(const double a = r[in.a + k].f; r[in.dst + k].f = (expression))
#define TS_I1(expression) TS_LANES(const int64_t a = r[in.a + k].i; r[in.dst + k].i = (expression))

std::optional<int> Machine::run(Frame& frame) {
  const Code& code = *frame.code;
  Cell* const r = frame.r;
  const View* const views = frame.views.data();
  const Inst* const insts = code.insts.data();
  for (const Inst* pc = insts;;) {
    const Inst& in = *pc++;
    switch (in.op) {
      case Op::kJump: pc = insts + in.dst; break;
      case Op::kJumpIfNot:
        if (!r[in.a].i) pc = insts + in.dst;
        break;
      case Op::kForEnter:
        r[in.dst].i = r[in.a].i;
        r[in.dst + 1].i = r[in.b].i;
        if (r[in.b].i <= 0) pc = insts + in.c;
        break;
      case Op::kForNext:
        if (++steps_ > max_steps_) return too_many_steps(frame);
        if (--r[in.dst + 1].i > 0) {
          r[in.dst].i = s(u(r[in.dst].i) + 1);
          pc = insts + in.c;
        }
        break;
      case Op::kStep:
        if (++steps_ > max_steps_) return too_many_steps(frame);
        break;
      case Op::kAssert:
        if (!r[in.a].i) {
          const AssertInfo& info = code.asserts[static_cast<size_t>(in.b)];
          assert_text_ =
              code.function->name + ": assertion failed with code " + std::to_string(info.code) + ": " + info.message;
          return info.code;
        }
        break;
      case Op::kCall: {
        const CallInfo& info = code.calls[static_cast<size_t>(in.a)];
        if (info.callee < 0)
          return fail("interp-unknown-function", frame,
                      "expected a function of the program, got a call of " + info.symbol);
        const LoopFunction& callee = *codes_[static_cast<size_t>(info.callee)].function;
        std::vector<Cell> arguments(callee.buffers.size() + callee.scalars.size());
        for (size_t k = 0; k < arguments.size(); ++k)
          arguments[k] = r[code.operands[static_cast<size_t>(info.first) + k]];
        const std::optional<int> result = call(info.callee, arguments);
        if (!result) return std::nullopt;
        r[in.dst].i = *result;
        break;
      }
      case Op::kCheckCode:
        if (r[in.a].i != 0) {
          failure_ = {"assert-failed", assert_text_};
          return std::nullopt;
        }
        break;
      case Op::kReturn: return 0;

      case Op::kCopy: TS_LANES(r[in.dst + k] = r[in.a + k])
      case Op::kSplat: TS_LANES(r[in.dst + k] = r[in.a])
      case Op::kRamp: TS_LANES(r[in.dst + k].i = s(u(r[in.a].i) + u(r[in.b].i) * static_cast<uint64_t>(k)))
      case Op::kSelect: TS_LANES(r[in.dst + k] = r[in.a + k].i ? r[in.b + k] : r[in.c + k])
      case Op::kAny: {
        int64_t any = 0;
        for (int k = 0; k < in.lanes; ++k) any |= r[in.a + k].i;
        r[in.dst].i = any;
        break;
      }

      case Op::kLoad1: {
        const View& view = views[in.a];
        const int64_t i = r[in.b].i;
        if (u(i) >= u(view.size)) return bad_index(frame, in.a, i);
        r[in.dst] = view.base[i * view.scale];
        break;
      }
      case Op::kLoad2: {
        const View& view = views[in.a];
        const int64_t *g = view.geometry, i = r[in.b].i, j = r[in.c].i;
        if (u(i) >= u(g[0]) || u(j) >= u(g[1])) return bad_index(frame, in.a, i, j);
        r[in.dst] = view.base[(i * g[2] + j) * view.scale];
        break;
      }
      case Op::kLoad: {
        const Access& access = code.accesses[static_cast<size_t>(in.a)];
        const View& view = views[access.buffer];
        const int32_t* const index = code.operands.data() + access.first;
        for (int k = 0; k < in.lanes; ++k) {
          int64_t element;
          if (!find(view, access, index, r + k, &element)) return bad_index(frame, access, k);
          r[in.dst + k] = view.base[element * view.scale];
        }
        break;
      }
      case Op::kLoadMasked:
        if (!load_masked(frame, in)) return std::nullopt;
        break;
      case Op::kStore1: {
        const View& view = views[in.dst];
        const int64_t i = r[in.a].i;
        if (u(i) >= u(view.size)) return bad_index(frame, in.dst, i);
        if (++steps_ > max_steps_) return too_many_steps(frame);
        view.base[i * view.scale] = r[in.c];
        break;
      }
      case Op::kStore2: {
        const View& view = views[in.dst];
        const int64_t *g = view.geometry, i = r[in.a].i, j = r[in.b].i;
        if (u(i) >= u(g[0]) || u(j) >= u(g[1])) return bad_index(frame, in.dst, i, j);
        if (++steps_ > max_steps_) return too_many_steps(frame);
        view.base[(i * g[2] + j) * view.scale] = r[in.c];
        break;
      }
      case Op::kStore: {
        const Access& access = code.accesses[static_cast<size_t>(in.a)];
        const View& view = views[access.buffer];
        const int32_t* const index = code.operands.data() + access.first;
        if (++steps_ > max_steps_) return too_many_steps(frame);
        for (int k = 0; k < in.lanes; ++k) {
          int64_t element;
          if (!find(view, access, index, r + k, &element)) return bad_index(frame, access, k);
          view.base[element * view.scale] = r[in.b + k];
        }
        break;
      }
      case Op::kStoreMasked:
        if (!store_masked(frame, in)) return std::nullopt;
        break;
      case Op::kAddress:
        if (!address(frame, in)) return std::nullopt;
        break;
      case Op::kBind:
        if (!bind(frame, in.a)) return std::nullopt;
        break;
      case Op::kAllocate:
        if (!allocate(frame, in.a)) return std::nullopt;
        break;
      case Op::kFree: free(); break;

      case Op::kAddF: TS_F(a + b)
      case Op::kSubF: TS_F(a - b)
      case Op::kMulF: TS_F(a * b)
      case Op::kDivF: TS_F(a / b)
      case Op::kMinF: TS_F(min_nan(a, b))
      case Op::kMaxF: TS_F(max_nan(a, b))
      case Op::kMinNumF: TS_F(a < b ? a : b)
      case Op::kMaxNumF: TS_F(a > b ? a : b)
      case Op::kPowF: TS_F(std::pow(a, b))
      case Op::kCopySignF: TS_F(std::copysign(a, b))
      case Op::kEqF: TS_F_TEST(a == b)
      case Op::kNeF: TS_F_TEST(a != b)
      case Op::kLtF: TS_F_TEST(a < b)
      case Op::kLeF: TS_F_TEST(a <= b)
      case Op::kGtF: TS_F_TEST(a > b)
      case Op::kGeF: TS_F_TEST(a >= b)
      case Op::kUnaryF: TS_F1(unary(static_cast<Intrinsic>(in.c), a))
      case Op::kFmaF: TS_LANES(r[in.dst + k].f = std::fma(r[in.a + k].f, r[in.b + k].f, r[in.c + k].f))
      case Op::kFmaOddF: TS_LANES(r[in.dst + k].f = odd_fma(r[in.a + k].f, r[in.b + k].f, r[in.c + k].f))
      case Op::kIsNanF: TS_LANES(r[in.dst + k].i = std::isnan(r[in.a + k].f))
      case Op::kIsInfF: TS_LANES(r[in.dst + k].i = std::isinf(r[in.a + k].f))
      case Op::kRoundF32: TS_LANES(r[in.dst + k].f = round_f32(r[in.dst + k].f))
      case Op::kRoundF16: TS_LANES(r[in.dst + k].f = round_f16(r[in.dst + k].f))
      case Op::kRoundBF16: TS_LANES(r[in.dst + k].f = round_bf16(r[in.dst + k].f))

      case Op::kAddI: TS_I(s(u(a) + u(b)))
      case Op::kSubI: TS_I(s(u(a) - u(b)))
      case Op::kMulI: TS_I(s(u(a) * u(b)))
      case Op::kFloorDivI: TS_I(floor_div(a, b))
      case Op::kFloorModI: TS_I(floor_mod(a, b))
      case Op::kTruncDivI: TS_I(trunc_div(a, b))
      case Op::kTruncModI: TS_I(trunc_mod(a, b))
      case Op::kDivU: TS_I(b == 0 ? 0 : s(u(a) / u(b)))
      case Op::kModU: TS_I(b == 0 ? 0 : s(u(a) % u(b)))
      case Op::kMinI: TS_I(a < b ? a : b)
      case Op::kMaxI: TS_I(a > b ? a : b)
      case Op::kMinU: TS_I(u(a) < u(b) ? a : b)
      case Op::kMaxU: TS_I(u(a) > u(b) ? a : b)
      case Op::kAndI: TS_I(a & b)
      case Op::kOrI: TS_I(a | b)
      case Op::kXorI: TS_I(a ^ b)
      case Op::kShlI: TS_I(u(b) >= u(in.c) ? 0 : s(u(a) << b))
      case Op::kShrI: TS_I(u(b) >= u(in.c) ? (a < 0 ? -1 : 0) : a >> b)
      case Op::kShrU: TS_I(u(b) >= u(in.c) ? 0 : s(u(a) >> b))
      case Op::kEqI: TS_I(a == b)
      case Op::kNeI: TS_I(a != b)
      case Op::kLtI: TS_I(a < b)
      case Op::kLeI: TS_I(a <= b)
      case Op::kGtI: TS_I(a > b)
      case Op::kGeI: TS_I(a >= b)
      case Op::kLtU: TS_I(u(a) < u(b))
      case Op::kLeU: TS_I(u(a) <= u(b))
      case Op::kGtU: TS_I(u(a) > u(b))
      case Op::kGeU: TS_I(u(a) >= u(b))
      case Op::kNotI: TS_I1(~a)
      case Op::kNotBool: TS_I1(!a)
      case Op::kAbsI: TS_I1(a < 0 ? s(0 - u(a)) : a)
      case Op::kPopCountI: TS_I1(std::popcount(u(a) << (64 - in.c)))
      case Op::kClzI: TS_I1(a == 0 ? in.c : std::countl_zero(u(a) << (64 - in.c)))
      case Op::kMulHighI: TS_I(static_cast<int64_t>((static_cast<Int128>(a) * b) >> in.c))
      case Op::kMulHighU: TS_I(s(static_cast<uint64_t>(static_cast<UInt128>(u(a)) * u(b) >> in.c)))
      case Op::kDotI: TS_LANES(r[in.dst + k].i = dot4(r[in.a + k].i, r + in.b + 4 * k, r + in.c + 4 * k))
      case Op::kWrapSigned: TS_LANES(r[in.dst + k].i = s(u(r[in.dst + k].i) << in.c) >> in.c)
      case Op::kWrapUnsigned: TS_LANES(r[in.dst + k].i = s((u(r[in.dst + k].i) << in.c) >> in.c))
      case Op::kToBoolI: TS_I1(a != 0)

      case Op::kIntToF: TS_LANES(r[in.dst + k].f = static_cast<double>(r[in.a + k].i))
      case Op::kUIntToF: TS_LANES(r[in.dst + k].f = static_cast<double>(u(r[in.a + k].i)))
      case Op::kOddIntToF: TS_LANES(r[in.dst + k].f = odd_from_int(r[in.a + k].i))
      case Op::kOddUIntToF: TS_LANES(r[in.dst + k].f = odd_from_uint(u(r[in.a + k].i)))
      case Op::kFToInt: TS_LANES(r[in.dst + k].i = float_to_int(unpack_type(in.c), r[in.a + k].f))
      case Op::kBitcast: bitcast(code.bitcasts[static_cast<size_t>(in.c)], r + in.a, r + in.dst); break;
    }
  }
}

#undef TS_LANES
#undef TS_F
#undef TS_F_TEST
#undef TS_I
#undef TS_F1
#undef TS_I1

}  // namespace tensmith::interp
