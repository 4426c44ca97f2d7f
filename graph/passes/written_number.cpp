#include "graph/passes/written_number.h"

#include <cmath>

namespace tensmith::graph {

namespace {

constexpr int kFewestDecimals = 4, kMostDecimals = 12;
constexpr double kFourDigits = 1000;

double tolerance(DType dtype) {
  if (dtype == kFloat16) return 0x1p-10;
  if (dtype == kBFloat16) return 0x1p-7;
  return 0x1p-22;
}

bool is_spelled(double value, double exact, double relative) {
  const auto is = [&](double number) { return std::fabs(value - number) <= relative * std::fabs(number); };
  if (is(exact)) return true;
  double shift = std::pow(10.0, kFewestDecimals);
  for (int decimals = kFewestDecimals; decimals <= kMostDecimals; ++decimals, shift *= 10) {
    const double digits = exact * shift;
    if (std::fabs(digits) >= kFourDigits && (is(std::round(digits) / shift) || is(std::trunc(digits) / shift)))
      return true;
  }
  return false;
}

}  // namespace

bool is_written_as(double value, double exact, DType dtype) {
  const double relative = tolerance(dtype);
  if (is_spelled(value, exact, relative)) return true;
  return value != 0 && exact != 0 && is_spelled(1 / value, 1 / exact, relative);
}

}  // namespace tensmith::graph
