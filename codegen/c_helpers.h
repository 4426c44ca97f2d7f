/// The functions that give loop IR's operations their meaning in C, as far as a file needs them. Internal to codegen/.
#pragma once

#include <set>
#include <string>

#include "tensor/expr.h"

namespace tensmith {

/// The C type of a value of one lane: 16-bit floats are kept as float, rounded after each operation.
std::string c_type(DType type);
/// The C type of an element in memory: 16-bit floats are their bits.
std::string c_storage_type(DType type);

/// Whether math.h or string.h has the name, in double or with an f behind it: a call needs no declaration, and nothing
/// else may be called so.
bool c_library_has(const std::string& name);

/// Writes functions at their first use. Names: `ts_<what>_<type>`.
class CHelpers {
 public:
  /// `a op b` of one lane of a type as a call, for operations that C has not.
  std::string binary(BinaryOp op, DType type);
  /// Float to integer (truncates, saturates, NaN gives 0), from double.
  std::string from_double(DType to);
  /// The value as its type holds it, from double to float: 16-bit floats only.
  std::string round(DType type);
  /// 16-bit floats: float from the bits in memory, and back for a value that the type holds.
  std::string from_bits(DType type);
  std::string to_bits(DType type);
  /// Lane `lane` of the bytes at an address.
  std::string lane_of_bytes(DType type);
  /// All lanes of an array into one: the upper half onto the lower half until one is left. `combine`: `a op b` in C.
  std::string reduce(const char* name, DType type, const std::string& combine);
  /// abs of integers, popcount, clz, mulhi, sigmoid, rsqrt, minnum, maxnum.
  std::string intrinsic(Intrinsic id, DType type);
  /// Prefetching, where the compiler has it.
  std::string prefetch();
  /// A function that a runtime would give: no threads, no observer.
  std::string runtime(const std::string& symbol);

  /// All that was used, in order.
  const std::string& text() const { return text_; }

 private:
  std::string add(const std::string& name, const std::string& definition);
  std::string narrow_bits();
  std::string narrow_value();

  std::set<std::string> known_;
  std::string text_;
};

}  // namespace tensmith
