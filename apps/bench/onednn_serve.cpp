// Serves one convolution by oneDNN, in the layouts that it chooses itself and without the conversions to them, with the
// protocol of contest.py. Built by apps/bench/onednn with g++ alone.
//
//   onednn_serve CHANNELS SIZE OUT KERNEL STRIDE GROUPS ALGORITHM THREADS     ALGORITHM: direct or winograd
//
// oneDNN falls back to the next implementation it has; `implementation` in the first line tells which one runs.
#include <omp.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Shape {
  memory::dim channels, size, out, kernel, stride, groups;
  memory::dim pad() const { return kernel / 2; }
  memory::dim out_size() const { return (size + 2 * pad() - kernel) / stride + 1; }
};

void fill(const memory& target, const dnnl::engine& engine, dnnl::stream& stream, memory::format_tag plain, float scale) {
  memory source({target.get_desc().get_dims(), memory::data_type::f32, plain}, engine);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, scale);
  auto* data = static_cast<float*>(source.get_data_handle());
  for (size_t k = 0; k < source.get_desc().get_size() / sizeof(float); ++k) data[k] = normal(random);
  memory to = target;
  dnnl::reorder(source, to).execute(stream, source, to);
  stream.wait();
}

int serve(const Shape& s, dnnl::algorithm algorithm) {
  const auto start = Clock::now();
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto any = memory::format_tag::any;
  const auto f32 = memory::data_type::f32;
  const bool grouped = s.groups > 1;
  const memory::dims weight_dims =
      grouped ? memory::dims{s.groups, s.out / s.groups, s.channels / s.groups, s.kernel, s.kernel}
              : memory::dims{s.out, s.channels, s.kernel, s.kernel};
  const memory::desc source({1, s.channels, s.size, s.size}, f32, any), weights(weight_dims, f32, any),
      bias({s.out}, f32, memory::format_tag::a), target({1, s.out, s.out_size(), s.out_size()}, f32, any);
  const dnnl::convolution_forward::primitive_desc description(
      engine, dnnl::prop_kind::forward_inference, algorithm, source, weights, bias, target, {s.stride, s.stride},
      {s.pad(), s.pad()}, {s.pad(), s.pad()});
  memory x(description.src_desc(), engine), w(description.weights_desc(), engine), b(description.bias_desc(), engine),
      y(description.dst_desc(), engine);
  const float taps = static_cast<float>(s.channels / s.groups * s.kernel * s.kernel);
  fill(x, engine, stream, memory::format_tag::nchw, 1);
  fill(w, engine, stream, grouped ? memory::format_tag::goihw : memory::format_tag::oihw, 1 / std::sqrt(taps));
  fill(b, engine, stream, memory::format_tag::a, 0.1f);
  const dnnl::convolution_forward convolution(description);
  const auto run = [&] {
    convolution.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_BIAS, b}, {DNNL_ARG_DST, y}});
    stream.wait();
  };
  const double load_ms = ms_since(start);
  const auto first = Clock::now();
  run();
  const dnnl_version_t* version = dnnl::version();
  std::printf("{\"ready\": true, \"tool\": \"onednn\", \"version\": \"%d.%d.%d\", \"load_ms\": %.3f, \"first_ms\": %.3f, "
              "\"implementation\": \"%s\"}\n",
              version->major, version->minor, version->patch, load_ms, ms_since(first), description.impl_info_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const int count = line.rfind("run ", 0) == 0 ? std::atoi(line.c_str() + 4) : 0;
    run();
    std::string text;
    for (int k = 0; k < count; ++k) {
      const auto begin = Clock::now();
      run();
      char number[32];
      std::snprintf(number, sizeof number, "%s%.6f", k ? ", " : "", ms_since(begin));
      text += number;
    }
    std::printf("{\"times_ms\": [%s]}\n", text.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fprintf(stderr, "usage: onednn_serve CHANNELS SIZE OUT KERNEL STRIDE GROUPS direct|winograd THREADS\n");
    return 2;
  }
  const auto number = [&](int k) { return static_cast<memory::dim>(std::atoll(argv[k])); };
  omp_set_num_threads(static_cast<int>(number(8)));
  try {
    return serve({number(1), number(2), number(3), number(4), number(5), number(6)},
                 std::strcmp(argv[7], "winograd") == 0 ? dnnl::algorithm::convolution_winograd
                                                       : dnnl::algorithm::convolution_direct);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onednn: %s\n", error.what());
    return 1;
  }
}
