#include "graph/ops/scatter_reduction.h"

#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"

namespace tensmith::graph::ops {

namespace {

std::string reduction_of(const AttrMap& attrs) { return attrs.get_string("reduction", "none"); }

}  // namespace

AttrSpec reduction_attr() {
  return {.name = "reduction",
          .kind = AttrKind::kString,
          .default_value = std::string("none"),
          .since = 16,
          .allowed = {"none", "add", "mul", "max", "min"}};
}

Result<void> check_reduction(const AttrMap& attrs, DType dtype) {
  if (!dtype.is_bool() || reduction_of(attrs) == "none") return {};
  return refuse("unsupported-dtype") << "attribute reduction: expected none for bool, got " << reduction_of(attrs)
                                     << "; insert a Cast";
}

Expr reduce_update(const AttrMap& attrs, const Expr& old, const Expr& update) {
  const std::string reduction = reduction_of(attrs);
  if (reduction == "none") return update;
  const Expr a = widen(old), b = widen(update);
  return cast(old.dtype(), reduction == "add"   ? a + b
                           : reduction == "mul" ? a * b
                           : reduction == "max" ? max(a, b)
                                                : min(a, b));
}

void reduce_update(const AttrMap& attrs, RefTensor& to, int64_t at, const RefTensor& updates, int64_t from) {
  const std::string reduction = reduction_of(attrs);
  if (reduction == "none") return copy_element(to, at, updates, from);
  if (to.is_float()) {
    const double a = to.f[at], b = updates.f[from];
    const bool nan = std::isnan(a) || std::isnan(b);
    to.f[at] = reduction == "add"   ? a + b
               : reduction == "mul" ? a * b
               : nan                ? NAN
               : reduction == "max" ? std::max(a, b)
                                    : std::min(a, b);
    return;
  }
  const int64_t a = to.i[at], b = updates.i[from];
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool less = to.dtype.is_uint() ? ua < ub : a < b;
  if (reduction == "add") to.i[at] = wrap_int(to.dtype, static_cast<int64_t>(ua + ub));
  else if (reduction == "mul") to.i[at] = wrap_int(to.dtype, static_cast<int64_t>(ua * ub));
  else to.i[at] = (reduction == "max") == less ? b : a;
}

}  // namespace tensmith::graph::ops
