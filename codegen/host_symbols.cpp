#include "codegen/host_symbols.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tensmith {

namespace {

void* address_of(void (*function)()) { return reinterpret_cast<void*>(function); }

#define TS_SYMBOL(name) \
  { #name, address_of(reinterpret_cast <void (*)()>(&::name)) }
// Both precisions, with the overload named by its type.
#define TS_LIBM1(name)                                                                           \
  {#name, address_of(reinterpret_cast<void (*)()>(static_cast<double (*)(double)>(&::name)))}, { \
#name "f", address_of(reinterpret_cast <void (*)()>(&::name##f))                             \
  }
#define TS_LIBM2(name)                                                                                   \
  {#name, address_of(reinterpret_cast<void (*)()>(static_cast<double (*)(double, double)>(&::name)))}, { \
#name "f", address_of(reinterpret_cast <void (*)()>(&::name##f))                                     \
  }
#define TS_LIBM3(name)                                                                                           \
  {#name, address_of(reinterpret_cast<void (*)()>(static_cast<double (*)(double, double, double)>(&::name)))}, { \
#name "f", address_of(reinterpret_cast <void (*)()>(&::name##f))                                             \
  }

}  // namespace

const SymbolTable& host_symbols() {
  static const SymbolTable table = {
      TS_SYMBOL(memcpy), TS_SYMBOL(memmove), TS_SYMBOL(memset),   TS_SYMBOL(memcmp), TS_SYMBOL(aligned_alloc),
      TS_SYMBOL(free),   TS_LIBM1(exp),      TS_LIBM1(exp2),      TS_LIBM1(expm1),   TS_LIBM1(log),
      TS_LIBM1(log2),    TS_LIBM1(log10),    TS_LIBM1(log1p),     TS_LIBM1(tanh),    TS_LIBM1(sinh),
      TS_LIBM1(cosh),    TS_LIBM1(asinh),    TS_LIBM1(acosh),     TS_LIBM1(atanh),   TS_LIBM1(sin),
      TS_LIBM1(cos),     TS_LIBM1(tan),      TS_LIBM1(asin),      TS_LIBM1(acos),    TS_LIBM1(atan),
      TS_LIBM1(erf),     TS_LIBM1(erfc),     TS_LIBM1(sqrt),      TS_LIBM1(cbrt),    TS_LIBM1(floor),
      TS_LIBM1(ceil),    TS_LIBM1(trunc),    TS_LIBM1(rint),      TS_LIBM1(round),   TS_LIBM1(nearbyint),
      TS_LIBM1(fabs),    TS_LIBM2(pow),      TS_LIBM2(atan2),     TS_LIBM2(fmod),    TS_LIBM2(fmin),
      TS_LIBM2(fmax),    TS_LIBM3(fma),      TS_LIBM1(roundeven),
  };
  return table;
}

}  // namespace tensmith
