#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline float ts_max_f32(float a, float b) {
  return a > b || a != a ? a : b;
}

int32_t dense(const float *restrict A, const float *restrict B, const float *restrict bias, float *restrict R);

int32_t dense(const float *restrict A, const float *restrict B, const float *restrict bias, float *restrict R) {
  for (int64_t jo = 0; jo < 2; ++jo) {  // parallel
    if (jo < 1) {
      for (int64_t io = 0; io < 1; ++io) {
        float C[384];
        for (int64_t i0 = 0; i0 < 6; ++i0) {  // unrolled
          for (int64_t i1_v = 0; i1_v < 2; ++i1_v) {  // unrolled
            for (int64_t i1_l = 0; i1_l < 8; ++i1_l) {  // vectorized
              C[i0 * 64 + (i1_v * 8 + i1_l)] = 0.0f;
            }
          }
        }
        for (int64_t r0 = 0; r0 < 23; ++r0) {
          for (int64_t i0_1 = 0; i0_1 < 6; ++i0_1) {  // unrolled
            for (int64_t i1_v_1 = 0; i1_v_1 < 2; ++i1_v_1) {  // unrolled
              for (int64_t i1_l_1 = 0; i1_l_1 < 8; ++i1_l_1) {  // vectorized
                C[i0_1 * 64 + (i1_v_1 * 8 + i1_l_1)] = C[i0_1 * 64 + (i1_v_1 * 8 + i1_l_1)] + A[i0_1 * 23 + r0] * B[r0 * 19 + (i1_v_1 * 8 + i1_l_1)];
              }
            }
          }
        }
        for (int64_t ii = 0; ii < 6; ++ii) {  // unrolled
          for (int64_t ji = 0; ji < 16; ++ji) {  // unrolled
            R[ii * 19 + ji] = ts_max_f32(C[ii * 64 + ji] + bias[ji], 0.0f);
          }
        }
      }
      float C_1[64];
      for (int64_t i1_v_2 = 0; i1_v_2 < 2; ++i1_v_2) {  // unrolled
        for (int64_t i1_l_2 = 0; i1_l_2 < 8; ++i1_l_2) {  // vectorized
          C_1[i1_v_2 * 8 + i1_l_2] = 0.0f;
        }
      }
      for (int64_t r0_1 = 0; r0_1 < 23; ++r0_1) {
        for (int64_t i1_v_3 = 0; i1_v_3 < 2; ++i1_v_3) {  // unrolled
          for (int64_t i1_l_3 = 0; i1_l_3 < 8; ++i1_l_3) {  // vectorized
            C_1[i1_v_3 * 8 + i1_l_3] = C_1[i1_v_3 * 8 + i1_l_3] + A[6 * 23 + r0_1] * B[r0_1 * 19 + (i1_v_3 * 8 + i1_l_3)];
          }
        }
      }
      for (int64_t ji_1 = 0; ji_1 < 16; ++ji_1) {  // unrolled
        R[6 * 19 + ji_1] = ts_max_f32(C_1[ji_1] + bias[ji_1], 0.0f);
      }
    } else {
      for (int64_t io_1 = 0; io_1 < 1; ++io_1) {
        float C_2[384];
        for (int64_t i0_2 = 0; i0_2 < 6; ++i0_2) {  // unrolled
          for (int64_t i1_l_4 = 0; i1_l_4 < 3; ++i1_l_4) {  // vectorized
            C_2[i0_2 * 64 + (i1_l_4 + 16 - 16)] = 0.0f;
          }
        }
        for (int64_t r0_2 = 0; r0_2 < 23; ++r0_2) {
          for (int64_t i0_3 = 0; i0_3 < 6; ++i0_3) {  // unrolled
            for (int64_t i1_l_5 = 0; i1_l_5 < 3; ++i1_l_5) {  // vectorized
              C_2[i0_3 * 64 + (i1_l_5 + 16 - 16)] = C_2[i0_3 * 64 + (i1_l_5 + 16 - 16)] + A[i0_3 * 23 + r0_2] * B[r0_2 * 19 + (i1_l_5 + 16)];
            }
          }
        }
        for (int64_t ii_1 = 0; ii_1 < 6; ++ii_1) {  // unrolled
          for (int64_t ji_2 = 0; ji_2 < 3; ++ji_2) {  // unrolled
            R[ii_1 * 19 + (ji_2 + 16)] = ts_max_f32(C_2[ii_1 * 64 + (ji_2 + 16 - 16)] + bias[ji_2 + 16], 0.0f);
          }
        }
      }
      float C_3[64];
      for (int64_t i1_l_6 = 0; i1_l_6 < 3; ++i1_l_6) {  // vectorized
        C_3[i1_l_6 + 16 - 16] = 0.0f;
      }
      for (int64_t r0_3 = 0; r0_3 < 23; ++r0_3) {
        for (int64_t i1_l_7 = 0; i1_l_7 < 3; ++i1_l_7) {  // vectorized
          C_3[i1_l_7 + 16 - 16] = C_3[i1_l_7 + 16 - 16] + A[6 * 23 + r0_3] * B[r0_3 * 19 + (i1_l_7 + 16)];
        }
      }
      for (int64_t ji_3 = 0; ji_3 < 3; ++ji_3) {  // unrolled
        R[6 * 19 + (ji_3 + 16)] = ts_max_f32(C_3[ji_3 + 16 - 16] + bias[ji_3 + 16], 0.0f);
      }
    }
  }
  return 0;
}
