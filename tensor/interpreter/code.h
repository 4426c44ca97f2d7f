/// The compiled form that the interpreter runs: a flat list of instructions on numbered cells.
#pragma once

#include <string>
#include <vector>

#include "tensor/interpreter/number.h"
#include "tensor/stmt.h"

namespace tensmith::interp {

/// Instructions. A value of n lanes lies in n cells side by side; `lanes` of them are worked on. Names end in F for
/// floats, I for integers (signed, or unsigned narrower than 64 bits, which are never negative), U for unsigned 64-bit
/// integers.
enum class Op : uint16_t {
  // Control. Targets are instruction numbers.
  kJump,       // to dst
  kJumpIfNot,  // to dst unless a
  kForEnter,   // dst = a, dst + 1 (turns left) = b; to c when there is no turn
  kForNext,    // ++dst; to c while turns are left
  kStep,       // counts a statement
  kAssert,     // unless a: ends the function with asserts[b]
  kCall,       // dst = result code of calls[a]
  kCheckCode,  // a result code a other than 0 ends everything
  kReturn,
  // Moves.
  kCopy,    // dst = a
  kSplat,   // dst = a in every lane
  kRamp,    // dst = a, a + b, ...
  kSelect,  // dst = a ? b : c
  kAny,     // one cell dst = any lane of a
  // Memory. Buffers by number in the function.
  kLoad1,        // dst = buffer a [b], one lane, flat
  kLoad2,        // dst = buffer a [b, c], one lane
  kLoad,         // dst = accesses[a]
  kLoadMasked,   // the same where b, else 0
  kStore1,       // buffer dst [a] = c, one lane, flat
  kStore2,       // buffer dst [a, b] = c, one lane
  kStore,        // accesses[a] = b
  kStoreMasked,  // the same where c
  kAddress,      // dst = handle of accesses[a]
  kBind,         // works out the shape of parameter a
  kAllocate,     // makes buffer a
  kFree,         // ends the newest buffer
  // Floats.
  kAddF,
  kSubF,
  kMulF,
  kDivF,
  kMinF,
  kMaxF,
  kMinNumF,
  kMaxNumF,
  kPowF,
  kCopySignF,
  kEqF,
  kNeF,
  kLtF,
  kLeF,
  kGtF,
  kGeF,
  kUnaryF,   // dst = Intrinsic(c) of a
  kFmaF,     // dst = a * b + c with one rounding
  kFmaOddF,  // the same for a narrow type: rounded to odd, a kRound follows
  kIsNanF,
  kIsInfF,
  kRoundF32,
  kRoundF16,
  kRoundBF16,  // dst in place
  // Integers and bools.
  kAddI,
  kSubI,
  kMulI,
  kFloorDivI,
  kFloorModI,
  kTruncDivI,
  kTruncModI,
  kDivU,
  kModU,
  kMinI,
  kMaxI,
  kMinU,
  kMaxU,
  kAndI,
  kOrI,
  kXorI,
  kShlI,
  kShrI,
  kShrU,  // c: width in bits
  kEqI,
  kNeI,
  kLtI,
  kLeI,
  kGtI,
  kGeI,
  kLtU,
  kLeU,
  kGtU,
  kGeU,
  kNotI,
  kNotBool,
  kAbsI,
  kPopCountI,
  kClzI,  // c: width
  kMulHighI,
  kMulHighU,  // c: width
  kDotI,      // dst = a + products of 4 lanes each of b and c
  kWrapSigned,
  kWrapUnsigned,  // dst in place; c: 64 - width
  kToBoolI,       // dst = a != 0
  // Conversions.
  kIntToF,
  kUIntToF,
  kOddIntToF,
  kOddUIntToF,
  kFToInt,   // c: packed type
  kBitcast,  // dst = bits of a; bitcasts[c]
};

struct Inst {
  Op op;
  uint16_t lanes;
  int32_t dst, a, b, c;
};

/// An element access: the cells of its indices are operands[first ..]. `flat`: one index that counts elements of the
/// whole buffer.
struct Access {
  int32_t buffer;
  int32_t first;
  int32_t rank;
  bool flat;
};

/// A buffer of the function; its extents are computed in the cells operands[first_extent ..].
struct BufferInfo {
  Buffer node;
  int32_t first_extent = 0;
  int32_t first_geometry = 0;  ///< where its extents and strides stand in the frame's geometry
};

struct AssertInfo {
  int code;
  std::string message;
};

inline constexpr int kMaxBitcastBits = 1 << 16;
struct BitcastInfo {
  DType from, to;
};

/// A call of function number `callee` (-1: not in the program). The cells of its arguments are operands[first ..]:
/// handles, then scalars.
struct CallInfo {
  int callee;
  std::string symbol;
  int32_t first = 0;
};

/// A compiled function. Constants lie in the cells -1, -2, ...
struct Code {
  const LoopFunction* function = nullptr;
  std::vector<Inst> insts;
  std::vector<int32_t> operands;
  std::vector<Access> accesses;
  std::vector<BufferInfo> buffers;  ///< parameters first
  std::vector<AssertInfo> asserts;
  std::vector<BitcastInfo> bitcasts;
  std::vector<CallInfo> calls;
  std::vector<Cell> constants;  ///< constants[k] belongs into cell -1 - k
  int32_t first_scalar = 0;     ///< cells of the scalar parameters, in order
  int32_t cells = 0;            ///< how many cells from 0 on
  int32_t geometry = 0;         ///< how many numbers of geometry
};

inline int32_t pack_type(DType type) { return static_cast<int32_t>(type.code) << 8 | type.bits; }
inline DType unpack_type(int32_t packed) {
  return {static_cast<DType::Code>(packed >> 8), static_cast<uint8_t>(packed & 255), 1};
}

/// Thrown by the compiler for a program that is not well-formed; never leaves `interpret`.
struct Malformed {
  std::string message;
};

}  // namespace tensmith::interp
