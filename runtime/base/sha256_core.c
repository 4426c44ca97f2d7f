#include "runtime/base/sha256_core.h"

#include <string.h>

static const uint32_t ts_sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t ts_rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void ts_sha_blocks(uint32_t* state, const uint8_t* p, size_t blocks) {
  for (; blocks > 0; --blocks, p += 64) {
    uint32_t w[64], s[8];
    int i;
    for (i = 0; i < 16; ++i)
      w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (i = 16; i < 64; ++i) {
      uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (ts_rotr(a, 7) ^ ts_rotr(a, 18) ^ a >> 3) + w[i - 7] +
             (ts_rotr(b, 17) ^ ts_rotr(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (i = 0; i < 64; ++i) {
      uint32_t t1 = s[7] + (ts_rotr(s[4], 6) ^ ts_rotr(s[4], 11) ^ ts_rotr(s[4], 25)) +
                    ((s[4] & s[5]) ^ (~s[4] & s[6])) + ts_sha_k[i] + w[i];
      uint32_t t2 =
          (ts_rotr(s[0], 2) ^ ts_rotr(s[0], 13) ^ ts_rotr(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      memmove(s + 1, s, 7 * sizeof s[0]);
      s[4] += t1;
      s[0] = t1 + t2;
    }
    for (i = 0; i < 8; ++i) state[i] += s[i];
  }
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* With the CPU's own instructions: six to eight times faster, so that large libraries can be checked at every load. */
__attribute__((target("sha,sse4.1"))) static void ts_sha_blocks_ni(uint32_t* state, const uint8_t* p, size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  __m128i t = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i*)state), 0xb1);
  __m128i v = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i*)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(t, v, 8), cdgh = _mm_blend_epi16(v, t, 0xf0);
  for (; blocks > 0; --blocks, p += 64) {
    const __m128i abef0 = abef, cdgh0 = cdgh;
    __m128i m[4];
    int i;
    for (i = 0; i < 16; ++i) {
      __m128i x, sum;
      if (i < 4) {
        x = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i*)(p + 16 * i)), swap);
      } else {
        x = _mm_sha256msg1_epu32(m[i & 3], m[(i + 1) & 3]);
        x = _mm_add_epi32(x, _mm_alignr_epi8(m[(i + 3) & 3], m[(i + 2) & 3], 4));
        x = _mm_sha256msg2_epu32(x, m[(i + 3) & 3]);
      }
      m[i & 3] = x;
      sum = _mm_add_epi32(x, _mm_loadu_si128((const __m128i*)(ts_sha_k + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef0);
    cdgh = _mm_add_epi32(cdgh, cdgh0);
  }
  t = _mm_shuffle_epi32(abef, 0x1b);
  v = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i*)state, _mm_blend_epi16(t, v, 0xf0));
  _mm_storeu_si128((__m128i*)(state + 4), _mm_alignr_epi8(v, t, 8));
}

static int ts_has_sha(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 19)) return 0; /* SSE4.1 */
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29);
}
#endif

static void ts_sha_any(uint32_t* state, const uint8_t* p, size_t blocks) {
#if defined(__x86_64__)
  static int has_sha = -1; /* racing threads write the same value */
  int has = __atomic_load_n(&has_sha, __ATOMIC_RELAXED);
  if (has < 0) {
    has = ts_has_sha();
    __atomic_store_n(&has_sha, has, __ATOMIC_RELAXED);
  }
  if (has) {
    ts_sha_blocks_ni(state, p, blocks);
    return;
  }
#endif
  ts_sha_blocks(state, p, blocks);
}

TS_C_API void tensmith_sha256_init(tensmith_sha256* hash) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, initial, sizeof initial);
  hash->total = 0;
}

TS_C_API void tensmith_sha256_update(tensmith_sha256* hash, const void* data, size_t size) {
  const uint8_t* p = (const uint8_t*)data;
  size_t used = (size_t)(hash->total % 64);
  if (size == 0) return;
  hash->total += size;
  if (used) {
    size_t take = 64 - used < size ? 64 - used : size;
    memcpy(hash->buffer + used, p, take);
    p += take;
    size -= take;
    if (used + take < 64) return;
    ts_sha_any(hash->state, hash->buffer, 1);
  }
  ts_sha_any(hash->state, p, size / 64);
  if (size % 64) memcpy(hash->buffer, p + size / 64 * 64, size % 64);
}

TS_C_API void tensmith_sha256_final(tensmith_sha256* hash, uint8_t* digest) {
  uint8_t tail[72] = {0x80};
  const uint64_t bits = hash->total * 8;
  const size_t zeros = (size_t)((119 - hash->total % 64) % 64); /* so that the length ends a block */
  int i;
  for (i = 0; i < 8; ++i) tail[1 + zeros + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
  tensmith_sha256_update(hash, tail, 1 + zeros + 8);
  for (i = 0; i < 32; ++i) digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
