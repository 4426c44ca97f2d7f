#include "apps/bench/vector_math/functions.h"

#include <cmath>
#include <cstring>

namespace tensmith {

namespace {

template <typename T>
T sigmoid(T x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
template <typename T>
T rsqrt(T x) {
  return 1 / std::sqrt(x);
}

#define TS_BOTH(function) \
  [](double x) -> double { return function(x); }, [](long double x) -> long double { return function(x); }

constexpr MathFunction kFunctions[] = {
    {"exp", Intrinsic::kExp, 1, TS_BOTH(std::exp), 1, 3.5, 1, -10, 10},
    {"log", Intrinsic::kLog, 1, TS_BOTH(std::log), 1, 3.5, 1, 0.01, 100},
    {"tanh", Intrinsic::kTanh, 1, TS_BOTH(std::tanh), 1, 3.5, 1, -4, 4},
    {"erf", Intrinsic::kErf, 1, TS_BOTH(std::erf), 1, 3.5, 1, -4, 4},
    {"sigmoid", Intrinsic::kSigmoid, 1, TS_BOTH(sigmoid), 1, 3.5, 1, -10, 10},
    {"rsqrt", Intrinsic::kRsqrt, 1, TS_BOTH(rsqrt), 1, 3.5, 1, 0.01, 100},
    {"sin", Intrinsic::kSin, 1, TS_BOTH(std::sin), 1, 3.5, 1, -10, 10},
    {"cos", Intrinsic::kCos, 1, TS_BOTH(std::cos), 1, 3.5, 1, -10, 10},
    {"tan", Intrinsic::kTan, 1, TS_BOTH(std::tan), 1, 1, 2.5, -10, 10},
    {"asin", Intrinsic::kAsin, 1, TS_BOTH(std::asin), 1, 1, 1, -1, 1},
    {"acos", Intrinsic::kAcos, 1, TS_BOTH(std::acos), 1, 1, 1, -1, 1},
    {"atan", Intrinsic::kAtan, 1, TS_BOTH(std::atan), 1, 1, 1.5, -4, 4},
    {"sinh", Intrinsic::kSinh, 1, TS_BOTH(std::sinh), 1, 1, 2, -4, 4},
    {"cosh", Intrinsic::kCosh, 1, TS_BOTH(std::cosh), 1, 1, 2, -4, 4},
    {"asinh", Intrinsic::kAsinh, 1, TS_BOTH(std::asinh), 1, 1, 2.5, -4, 4},
    {"acosh", Intrinsic::kAcosh, 1, TS_BOTH(std::acosh), 1, 1, 3, 1, 4},
    {"atanh", Intrinsic::kAtanh, 1, TS_BOTH(std::atanh), 1, 1, 2, -1, 1},
    {"pow", Intrinsic::kPow, 2, nullptr, nullptr, 1, 1, 1, 0.01, 4},
};

#undef TS_BOTH

}  // namespace

std::span<const MathFunction> math_functions() { return kFunctions; }

const MathFunction* find_math_function(const char* name) {
  for (const MathFunction& function : kFunctions)
    if (std::strcmp(function.name, name) == 0) return &function;
  return nullptr;
}

}  // namespace tensmith
