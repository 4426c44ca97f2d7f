#include <array>
#include <cstdint>

#include "graph/graph.h"

namespace tensmith::graph {

namespace {

__extension__ typedef unsigned __int128 Wide;  // not ISO C++, but on every compiler that we support

/// The 128-bit product folded to 64 bits: spreads every input bit over the result.
uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr std::array<uint64_t, 4> kSeeds = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
                                            0xd6e8feb86659fd93};

/// Two hashes over 32 bytes a round; weights of several hundred MB are read at memory speed.
struct Hash {
  std::array<uint64_t, 4> state = kSeeds;

  void round(const char* block) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), block, 32);
    for (int k = 0; k < 4; ++k)
      state[k] = mix(state[k] ^ words[k], kSeeds[(k + 1) & 3] ^ words[(k + 1) & 3]) + state[k];
  }

  void add(const void* data, size_t bytes) {
    const char* in = static_cast<const char*>(data);
    size_t left = bytes;
    for (; left >= 32; left -= 32, in += 32) round(in);
    char last[32] = {};
    std::memcpy(last, in, left);
    round(last);
    state[0] ^= bytes;
  }
};

}  // namespace

std::string digest(const Constant& value) {
  Hash hash;
  const std::string type = to_string(static_type(value.dtype(), value.shape()));
  hash.add(type.data(), type.size());
  hash.add(value.data(), static_cast<size_t>(value.num_bytes()));
  const uint64_t words[2] = {mix(hash.state[0] ^ kSeeds[2], hash.state[1] ^ kSeeds[3]),
                             mix(hash.state[2] ^ kSeeds[0], hash.state[3] ^ kSeeds[1])};
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (uint64_t word : words)
    for (int shift = 60; shift >= 0; shift -= 4) text += kHex[word >> shift & 15];
  return text;
}

}  // namespace tensmith::graph
