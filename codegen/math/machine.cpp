#include "codegen/math/machine.h"

#include "runtime/base/error.h"

namespace tensmith::math {

bool is_machine_operation(const std::string& symbol) {
  return symbol == kMachineScale || symbol == kMachineLookup || symbol == kMachineReciprocal;
}

Expr scale(Expr value, Expr exponent) {
  const DType type = value.dtype();
  TS_CHECK(exponent.dtype() == type) << to_string(exponent.dtype());
  return Call::make_extern(type, kMachineScale, {std::move(value), std::move(exponent)});
}

Expr lookup(std::span<const float> table, Expr bits) {
  TS_CHECK(table.size() == 16 && bits.dtype().bits == 32) << table.size();
  const DType type = kFloat32.with_lanes(bits.dtype().lanes);
  std::vector<Expr> args = {std::move(bits)};
  for (float value : table) args.push_back(make_const(kFloat32, value));
  return Call::make_extern(type, kMachineLookup, std::move(args));
}

Expr reciprocal(Expr value) {
  const DType type = value.dtype();
  return Call::make_extern(type, kMachineReciprocal, {std::move(value)});
}

}  // namespace tensmith::math
