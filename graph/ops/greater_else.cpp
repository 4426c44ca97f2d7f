#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/binary_rule.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

/// An internal operator, which passes make of `where(isnan(x), low, x)` for x that is never below `low`: one
/// instruction, where the selection would read x under a mask.
OpDef greater_else() {
  OpDef op = make_binary(
      {.name = "GreaterElse",
       .since = 1,
       .types = TypeSet::kFloat,
       .doc = "a where it is greater than b, else b: b too when either is NaN.",
       .body = [](const Expr& a, const Expr& b, const AttrMap&) { return call(Intrinsic::kMaxNum, {a, b}); },
       .reference = [](double a, double b, const AttrMap&) { return a > b ? a : b; },
       .more_samples = {{.name = "nan",
                         .inputs = {given(kFloat32, {4}, {NAN, 1, -INFINITY, NAN}),
                                    given(kFloat32, {4}, {0, NAN, 2, NAN})}}}});
  op.domain = "tensmith";
  return op;
}

}  // namespace tensmith::graph::ops
