#include "apps/bench/vector_math/ulp.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensmith {

namespace {

template <typename Number, typename Exact>
double error_in_ulp(Number got, Exact exact) {
  using Limits = std::numeric_limits<Number>;
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kWrong;
  if (exact == 0 || std::isinf(exact)) return got == exact && std::signbit(got) == std::signbit(exact) ? 0 : kWrong;
  if (got == 0 && std::signbit(got) != std::signbit(exact)) return kWrong;
  int exponent;
  std::frexp(exact, &exponent);
  const int lowest = Limits::min_exponent, highest = Limits::max_exponent;
  const Exact ulp = std::ldexp(Exact(1), std::clamp(exponent, lowest, highest) - Limits::digits);
  const Exact bound = std::ldexp(Exact(1), highest);
  const auto limited = [&](Exact v) { return std::clamp(v, -bound, bound); };
  return static_cast<double>(std::fabs(limited(got) - limited(exact)) / ulp);
}

}  // namespace

double ulp_error(float got, double exact) { return error_in_ulp(got, exact); }
double ulp_error(double got, long double exact) { return error_in_ulp(got, exact); }

}  // namespace tensmith
