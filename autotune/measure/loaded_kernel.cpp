#include "autotune/measure/loaded_kernel.h"

#include <array>
#include <utility>

#include "runtime/base/error.h"

namespace tensmith {

namespace {

using Call = int32_t (*)(void*, const tensmith_context*, void* const*);

template <size_t index>
using Pointer = void*;

template <size_t... index>
constexpr Call call_with(std::index_sequence<index...>) {
  return [](void* function, const tensmith_context* context, void* const* buffers) -> int32_t {
    return reinterpret_cast<int32_t (*)(const tensmith_context*, Pointer<index>...)>(function)(context,
                                                                                               buffers[index]...);
  };
}

template <size_t... count>
constexpr std::array<Call, sizeof...(count)> make_calls(std::index_sequence<count...>) {
  return {call_with(std::make_index_sequence<count>())...};
}

constexpr size_t kMostParameters = 64;
constexpr std::array<Call, kMostParameters + 1> kCalls = make_calls(std::make_index_sequence<kMostParameters + 1>());

}  // namespace

LoadedKernel::LoadedKernel(const BuiltKernel& kernel)
    : description_(kernel), module_(JitModule::load(std::span(&kernel.object, 1))) {
  description_.object = {};
  function_ = module_.find(kernel.function);
  TS_USER_CHECK(function_, "undefined-symbol")
      << "object code: expected a function " << kernel.function << ", got none";
  TS_USER_CHECK(kernel.buffer_bytes.size() <= kMostParameters, "too-many-parameters")
      << "kernel: expected at most " << kMostParameters << " parameters, got " << kernel.buffer_bytes.size();
  call_ = kCalls[kernel.buffer_bytes.size()];
}

}  // namespace tensmith
