// Serves one convolution of a chain by oneDNN, in the layouts that it chooses itself and without the conversions to
// them, with the protocol of contest.py. Built by apps/bench/onednn with g++ alone.
//
//   onednn_serve CHANNELS SIZE OUT KERNEL STRIDE GROUPS ALGORITHM THREADS LENGTH TIMED
//
// ALGORITHM: direct or winograd. LENGTH convolutions behind each other, of which number TIMED (from 0) has the stride
// and is timed: so what it reads is as warm as in a network. oneDNN falls back to the next implementation it has;
// `implementation` in the first line tells which one runs.
#include <omp.h>

#include <algorithm>
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

void fill(const memory& target, const dnnl::engine& engine, dnnl::stream& stream, memory::format_tag plain,
          float scale) {
  memory source({target.get_desc().get_dims(), memory::data_type::f32, plain}, engine);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, scale);
  auto* data = static_cast<float*>(source.get_data_handle());
  for (size_t k = 0; k < source.get_desc().get_size() / sizeof(float); ++k) data[k] = normal(random);
  memory to = target;
  dnnl::reorder(source, to).execute(stream, source, to);
  stream.wait();
}

/// Convolutions behind each other with one set of weights, one of them timed: what it reads has just been written, what
/// it writes lies in memory that the others use too, as in a network.
class Chain {
 public:
  Chain(Shape shape, int length, int timed, dnnl::algorithm algorithm)
      : timed_(timed), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const memory::dim stride = shape.stride;
    for (int k = 0; k < length; ++k) {
      shape.stride = k == timed ? stride : 1;
      describe(shape, algorithm);
      shape.channels = shape.out;
      shape.size = shape.out_size();
    }
    size_t bytes = 0;
    for (const auto& d : descriptions_) bytes = std::max({bytes, d.src_desc().get_size(), d.dst_desc().get_size()});
    for (memory& space : spaces_)
      space = memory({{static_cast<memory::dim>(bytes)}, memory::data_type::u8, memory::format_tag::a}, engine_);
    // What one writes the next one reads, unless their layouts differ.
    size_t space = 0;
    for (const auto& d : descriptions_) {
      if (outputs_.empty() || outputs_.back().get_desc() != d.src_desc()) {
        inputs_.push_back(place(d.src_desc(), outputs_.empty() ? space : space ^= 1));
      } else {
        inputs_.push_back(outputs_.back());
      }
      outputs_.push_back(place(d.dst_desc(), space ^= 1));
    }
    fill(inputs_[0], engine_, stream_, memory::format_tag::nchw, 1);
  }

  /// Units: milliseconds of the timed one.
  double run() {
    double ms = 0;
    for (size_t k = 0; k < convolutions_.size(); ++k) {
      if (k > 0 && inputs_[k] != outputs_[k - 1])
        dnnl::reorder(outputs_[k - 1], inputs_[k]).execute(stream_, outputs_[k - 1], inputs_[k]);
      stream_.wait();
      const auto begin = Clock::now();
      convolutions_[k].execute(stream_, {{DNNL_ARG_SRC, inputs_[k]},
                                         {DNNL_ARG_WEIGHTS, weights_[k]},
                                         {DNNL_ARG_BIAS, biases_[k]},
                                         {DNNL_ARG_DST, outputs_[k]}});
      stream_.wait();
      if (static_cast<int>(k) == timed_) ms = ms_since(begin);
    }
    return ms;
  }
  std::string implementation() const { return descriptions_[static_cast<size_t>(timed_)].impl_info_str(); }

 private:
  void describe(const Shape& s, dnnl::algorithm algorithm) {
    const auto any = memory::format_tag::any;
    const auto f32 = memory::data_type::f32;
    const bool grouped = s.groups > 1;
    const memory::dims weight_dims =
        grouped ? memory::dims{s.groups, s.out / s.groups, s.channels / s.groups, s.kernel, s.kernel}
                : memory::dims{s.out, s.channels, s.kernel, s.kernel};
    const memory::desc source({1, s.channels, s.size, s.size}, f32, any), weights(weight_dims, f32, any),
        bias({s.out}, f32, memory::format_tag::a), target({1, s.out, s.out_size(), s.out_size()}, f32, any);
    descriptions_.emplace_back(engine_, dnnl::prop_kind::forward_inference, algorithm, source, weights, bias, target,
                               memory::dims{s.stride, s.stride}, memory::dims{s.pad(), s.pad()},
                               memory::dims{s.pad(), s.pad()});
    const auto& made = descriptions_.back();
    convolutions_.emplace_back(made);
    for (const memory& w : weights_)
      if (w.get_desc() == made.weights_desc()) {
        weights_.push_back(memory(w));
        biases_.push_back(memory(biases_.back()));
        return;
      }
    weights_.emplace_back(made.weights_desc(), engine_);
    biases_.emplace_back(made.bias_desc(), engine_);
    const float taps = static_cast<float>(s.channels / s.groups * s.kernel * s.kernel);
    fill(weights_.back(), engine_, stream_, grouped ? memory::format_tag::goihw : memory::format_tag::oihw,
         1 / std::sqrt(taps));
    fill(biases_.back(), engine_, stream_, memory::format_tag::a, 0.1f);
  }
  memory place(const memory::desc& desc, size_t space) {
    return memory(desc, engine_, spaces_[space].get_data_handle());
  }

  const int timed_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<dnnl::convolution_forward::primitive_desc> descriptions_;
  std::vector<dnnl::convolution_forward> convolutions_;
  std::vector<memory> weights_, biases_, inputs_, outputs_;
  memory spaces_[2];
};

int serve(const Shape& s, dnnl::algorithm algorithm, int length, int timed) {
  const auto start = Clock::now();
  Chain chain(s, length, timed, algorithm);
  const double load_ms = ms_since(start);
  const auto first = Clock::now();
  chain.run();
  const dnnl_version_t* version = dnnl::version();
  std::printf(
      "{\"ready\": true, \"tool\": \"onednn\", \"version\": \"%d.%d.%d\", \"load_ms\": %.3f, \"first_ms\": %.3f, "
      "\"implementation\": \"%s\"}\n",
      version->major, version->minor, version->patch, load_ms, ms_since(first), chain.implementation().c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const int count = line.rfind("run ", 0) == 0 ? std::atoi(line.c_str() + 4) : 0;
    chain.run();
    std::string text;
    for (int k = 0; k < count; ++k) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.6f", k ? ", " : "", chain.run());
      text += number;
    }
    std::printf("{\"times_ms\": [%s]}\n", text.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 11) {
    std::fprintf(stderr,
                 "usage: onednn_serve CHANNELS SIZE OUT KERNEL STRIDE GROUPS direct|winograd THREADS LENGTH TIMED\n");
    return 2;
  }
  const auto number = [&](int k) { return static_cast<memory::dim>(std::atoll(argv[k])); };
  omp_set_num_threads(static_cast<int>(number(8)));
  try {
    return serve({number(1), number(2), number(3), number(4), number(5), number(6)},
                 std::strcmp(argv[7], "winograd") == 0 ? dnnl::algorithm::convolution_winograd
                                                       : dnnl::algorithm::convolution_direct,
                 static_cast<int>(number(9)), static_cast<int>(number(10)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onednn: %s\n", error.what());
    return 1;
  }
}
