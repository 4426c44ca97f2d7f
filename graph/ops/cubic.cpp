#include "graph/ops/cubic.h"

#include <cmath>

namespace tensmith::graph::ops {

Expr cubic_kernel(const Expr& d, double a) {
  return with_value("d", call(Intrinsic::kAbs, {d}), [&](const Expr& x) {
    const auto c = [&](double value) { return constant_like(x, value); };
    const Expr near = ((c(a + 2) * x - c(a + 3)) * x) * x + c(1);
    const Expr far = ((c(a) * x - c(5 * a)) * x + c(8 * a)) * x - c(4 * a);
    return select(x <= c(1), near, select(x < c(2), far, c(0)));
  });
}

double cubic_kernel(double d, double a) {
  const double x = std::fabs(d);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

}  // namespace tensmith::graph::ops
