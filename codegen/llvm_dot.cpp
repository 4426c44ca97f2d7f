// Sums of four 8-bit products onto 32-bit lanes.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm_function.h"

namespace tensmith {

using llvm::Value;

namespace {

class DotEmitter {
 public:
  DotEmitter(LlvmValues& values) : v_(values), b_(values.builder()) {}

  /// One piece of 4, 8 or 16 lanes (8 and 16 only where the target has such vectors).
  Value* piece(Value* acc, Value* a, bool a_signed, Value* b) {
    const Isa& isa = v_.isa();
    const int lanes = v_.lanes_of(acc);
    if (isa.x86) {
      if (a_signed && isa.avxvnniint8 && lanes <= 8) {
        const auto id = lanes == 8 ? llvm::Intrinsic::x86_avx2_vpdpbssd_256 : llvm::Intrinsic::x86_avx2_vpdpbssd_128;
        return b_.CreateIntrinsic(id, {}, {acc, words(a), words(b)});
      }
      if (isa.avx512vnni || (isa.avxvnni && lanes <= 8)) return unsigned_dot(acc, a, a_signed, b);
      return multiply_add_words(acc, a, a_signed, b);
    }
    if (isa.aarch64 && lanes == 4) {
      llvm::Type* types[] = {acc->getType(), a->getType()};
      if (a_signed && isa.dotprod) return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_sdot, types, {acc, a, b});
      if (!a_signed && isa.i8mm) return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_usdot, types, {acc, a, b});
      if (isa.dotprod) {  // u * s = (u - 128) * s + 128 * s
        Value* flipped = b_.CreateXor(a, byte_splat(a, 0x80));
        Value* offset =
            b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_sdot, types, {zero(acc), byte_splat(a, 0x40), b});
        acc = b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_sdot, types, {acc, flipped, b});
        return b_.CreateAdd(acc, b_.CreateShl(offset, llvm::ConstantInt::get(offset->getType(), 1)));
      }
    }
    return plain(acc, a, a_signed, b);
  }

 private:
  static llvm::Constant* zero(Value* v) { return llvm::Constant::getNullValue(v->getType()); }
  static llvm::Constant* byte_splat(Value* v, uint64_t bits) { return llvm::ConstantInt::get(v->getType(), bits); }
  Value* words(Value* bytes) {
    return b_.CreateBitCast(bytes, llvm::FixedVectorType::get(b_.getInt32Ty(), v_.lanes_of(bytes) / 4));
  }

  Value* vpdpbusd(Value* acc, Value* a, Value* b) {
    const int lanes = v_.lanes_of(acc);
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                 : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return b_.CreateIntrinsic(id, {}, {acc, words(a), words(b)});
  }

  Value* unsigned_dot(Value* acc, Value* a, bool a_signed, Value* b) {
    if (!a_signed) return vpdpbusd(acc, a, b);
    // s * t = (s + 128) * t - 128 * t; the second sum depends on b alone, so it is shared by all rows of a tile.
    Value* offset = vpdpbusd(zero(acc), byte_splat(a, 0x80), b);
    return b_.CreateSub(vpdpbusd(acc, b_.CreateXor(a, byte_splat(a, 0x80)), b), offset);
  }

  // pmaddubsw would saturate, so even and odd bytes are extended to 16 bits and go through pmaddwd, which is exact. The
  // extensions of a and of b are separate values, so a tile computes each once.
  Value* multiply_add_words(Value* acc, Value* a, bool a_signed, Value* b) {
    const int lanes = v_.lanes_of(acc);
    llvm::Type* i16 = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * lanes);
    llvm::Constant* eight = llvm::ConstantInt::get(i16, 8);
    auto even = [&](Value* v, bool is_signed) {
      Value* pairs = b_.CreateBitCast(v, i16);
      if (!is_signed) return b_.CreateAnd(pairs, llvm::ConstantInt::get(i16, 0xff));
      return b_.CreateAShr(b_.CreateShl(pairs, eight), eight);
    };
    auto odd = [&](Value* v, bool is_signed) {
      Value* pairs = b_.CreateBitCast(v, i16);
      return is_signed ? b_.CreateAShr(pairs, eight) : b_.CreateLShr(pairs, eight);
    };
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                 : llvm::Intrinsic::x86_sse2_pmadd_wd;
    Value* even_sum = b_.CreateIntrinsic(id, {}, {even(a, a_signed), even(b, true)});
    Value* odd_sum = b_.CreateIntrinsic(id, {}, {odd(a, a_signed), odd(b, true)});
    return b_.CreateAdd(acc, b_.CreateAdd(even_sum, odd_sum));
  }

  Value* plain(Value* acc, Value* a, bool a_signed, Value* b) {
    const int lanes = v_.lanes_of(acc);
    llvm::Type* wide = llvm::FixedVectorType::get(b_.getInt32Ty(), 4 * lanes);
    Value* product = b_.CreateMul(a_signed ? b_.CreateSExt(a, wide) : b_.CreateZExt(a, wide), b_.CreateSExt(b, wide));
    for (int part = 0; part < 4; ++part) {
      std::vector<int> mask(lanes);
      for (int lane = 0; lane < lanes; ++lane) mask[lane] = 4 * lane + part;
      acc = b_.CreateAdd(acc, b_.CreateShuffleVector(product, mask));
    }
    return acc;
  }

  LlvmValues& v_;
  LlvmBuilder& b_;
};

}  // namespace

Value* emit_dot_accumulate(LlvmValues& values, Value* acc, Value* a, bool a_signed, Value* b) {
  const Isa& isa = values.isa();
  const int lanes = values.lanes_of(acc);
  const int widest = isa.avx512 && isa.vector_bits >= 512 ? 16 : isa.avx2 && isa.vector_bits >= 256 ? 8 : 4;
  LlvmBuilder& builder = values.builder();
  DotEmitter emitter(values);
  if (lanes == 1)
    acc = builder.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(builder.getInt32Ty(), 1)), acc,
                                      builder.getInt64(0));
  std::vector<Value*> parts;
  for (int begin = 0; begin < lanes;) {
    int size = widest;
    while (size > 4 && begin + size > lanes) size /= 2;
    const int used = std::min(size, lanes - begin);
    // A rest of fewer than four lanes is computed in four.
    auto take = [&](Value* v, int scale) {
      if (used == size) return values.slice(v, begin * scale, size * scale);
      std::vector<int> mask(size * scale, -1);
      for (int i = 0; i < used * scale; ++i) mask[i] = begin * scale + i;
      return builder.CreateShuffleVector(v, mask);
    };
    Value* part = emitter.piece(take(acc, 1), take(a, 4), a_signed, take(b, 4));
    parts.push_back(used == size ? part : values.slice(part, 0, used));
    begin += used;
  }
  return values.concat(parts);
}

}  // namespace tensmith
