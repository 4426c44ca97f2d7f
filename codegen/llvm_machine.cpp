// The operations of codegen/math/machine.h as AVX-512 instructions.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm_function.h"
#include "codegen/math/machine.h"

namespace tensmith {

using llvm::Value;

namespace {

constexpr int kCurrentRounding = 4;

/// Cuts operands of any number of lanes into pieces that fill a register and puts the results together.
template <typename F>
Value* in_registers(LlvmValues& v, const std::vector<Value*>& operands, int most_lanes, int least_lanes,
                    const F& piece) {
  const int lanes = v.lanes_of(operands[0]);
  std::vector<Value*> results;
  for (int begin = 0; begin < lanes; begin += most_lanes) {
    const int wanted = std::min(most_lanes, lanes - begin);
    int width = most_lanes;
    while (width / 2 >= wanted && width / 2 >= least_lanes) width /= 2;
    std::vector<Value*> parts;
    for (Value* operand : operands) {
      Value* part = lanes == wanted ? operand : v.slice(operand, begin, wanted);
      if (wanted < width) {
        llvm::Type* type = llvm::FixedVectorType::get(part->getType()->getScalarType(), width);
        part = v.insert(llvm::PoisonValue::get(type), part, 0);
      }
      parts.push_back(part);
    }
    Value* result = piece(parts, width);
    results.push_back(wanted < width ? v.slice(result, 0, wanted) : result);
  }
  return v.concat(results);
}

}  // namespace

Value* emit_machine_operation(LlvmValues& v, const Call& e, const std::vector<Value*>& args) {
  TS_CHECK(v.isa().avx512) << e.symbol;
  LlvmBuilder& b = v.builder();
  const auto all_lanes = [&](int width) { return b.getIntN(std::max(width, 8), (uint64_t{1} << width) - 1); };
  if (e.symbol == math::kMachineLookup) {
    std::vector<llvm::Constant*> table;
    for (size_t k = 1; k < args.size(); ++k) table.push_back(llvm::cast<llvm::Constant>(args[k]));
    llvm::Constant* values = llvm::ConstantVector::get(table);
    return in_registers(v, {args[0]}, 16, 16, [&](const std::vector<Value*>& x, int) {
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {values, x[0]});
    });
  }
  if (e.symbol == math::kMachineReciprocal) {
    return in_registers(v, args, 16, 4, [&](const std::vector<Value*>& x, int width) {
      const auto id = width == 16  ? llvm::Intrinsic::x86_avx512_rcp14_ps_512
                      : width == 8 ? llvm::Intrinsic::x86_avx512_rcp14_ps_256
                                   : llvm::Intrinsic::x86_avx512_rcp14_ps_128;
      return b.CreateIntrinsic(id, {}, {x[0], llvm::Constant::getNullValue(x[0]->getType()), all_lanes(width)});
    });
  }
  TS_CHECK(e.symbol == math::kMachineScale) << e.symbol;
  const bool is_double = e.dtype.bits == 64;
  return in_registers(v, args, is_double ? 8 : 16, is_double ? 2 : 4, [&](const std::vector<Value*>& x, int width) {
    llvm::Constant* zero = llvm::Constant::getNullValue(x[0]->getType());
    if (width * e.dtype.bits == 512) {
      const auto id =
          is_double ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
      return b.CreateIntrinsic(id, {}, {x[0], x[1], zero, all_lanes(width), b.getInt32(kCurrentRounding)});
    }
    const bool half = width * e.dtype.bits == 256;
    const auto id =
        is_double
            ? (half ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256 : llvm::Intrinsic::x86_avx512_mask_scalef_pd_128)
            : (half ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128);
    return b.CreateIntrinsic(id, {}, {x[0], x[1], zero, all_lanes(width)});
  });
}

}  // namespace tensmith
