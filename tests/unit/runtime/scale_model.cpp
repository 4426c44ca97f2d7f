#include "tests/unit/runtime/scale_model.h"

#include <cmath>

namespace tensmith::test {
namespace {

struct Closure {
  const float* x;
  const float* weights;
  float* y;
  float* scratch;
};

int32_t rows(void* closure, int64_t begin, int64_t end, int32_t thread) {
  const Closure* c = static_cast<const Closure*>(closure);
  float* row = c->scratch + 16 * thread;  // 64 bytes of the arena for each thread
  for (int64_t i = begin; i < end; ++i) {
    for (int k = 0; k < 4; ++k) {
      if (std::isnan(c->x[4 * i + k])) return 1;
      row[k] = c->x[4 * i + k] * c->weights[0];
    }
    for (int k = 0; k < 4; ++k) c->y[4 * i + k] = row[k] + c->weights[1 + k];
  }
  return 0;
}

int32_t run(const tensmith_context* context, void* const* buffers, const int64_t* dims) {
  Closure c{static_cast<const float*>(buffers[0]), static_cast<const float*>(buffers[3]),
            static_cast<float*>(buffers[1]), static_cast<float*>(buffers[4])};
  if (context->on_kernel) context->on_kernel(context->user, 0, 0);
  const int32_t code = context->num_threads > 1 && context->pool
                           ? context->parallel_for(context->pool, rows, &c, dims[0])
                           : rows(&c, 0, dims[0], 0);
  if (context->on_kernel) context->on_kernel(context->user, 0, 1);
  if (code) return code;
  if (context->on_kernel) context->on_kernel(context->user, 1, 0);
  for (int64_t i = 0; i < dims[1]; ++i) static_cast<int64_t*>(buffers[2])[i] = 2 * i;
  if (context->on_kernel) context->on_kernel(context->user, 1, 1);
  return 0;
}

int64_t arena_size(const int64_t* dims, int64_t threads) { return 64 * threads + 0 * dims[0]; }

int32_t derive(const int64_t* symbols, int64_t* derived) {
  derived[0] = 2 * symbols[0];
  return symbols[0] == 99 ? 7 : 0;
}

}  // namespace

const float kScaleWeights[5] = {3, 10, 20, 30, 40};

const void* scale_symbol(const std::string& name) {
  if (name == "scale_main") return reinterpret_cast<const void*>(&run);
  if (name == "scale_arena") return reinterpret_cast<const void*>(&arena_size);
  if (name == "scale_derive") return reinterpret_cast<const void*>(&derive);
  if (name == "scale_weights") return kScaleWeights;
  return nullptr;
}

ModelDescription scale_description() {
  ModelDescription d;
  d.name = "scale";
  d.digest = "0123";
  d.manifest = "{}";
  d.symbols = {{"n", 1, 100}};
  d.num_derived = 1;
  d.derive_symbol = "scale_derive";
  d.inputs = {{"x", {-1, 4}, kFloat32, 0}};
  d.outputs = {{"y", {-1, 4}, kFloat32, 0}, {"twice", {-2}, kInt64, 0}};
  d.messages = {"x holds a NaN"};
  d.default_threads = 1;
  ModelDescription::Variant v;
  v.target = "x86-64";
  v.run_symbol = "scale_main";
  v.arena_size_symbol = "scale_arena";
  v.weights_symbol = "scale_weights";
  v.weights_bytes = sizeof kScaleWeights;
  v.kernels = {{"scale_rows", 8, 32}, {"twice", 0, 0}};
  d.variants = {v};
  return d;
}

}  // namespace tensmith::test
