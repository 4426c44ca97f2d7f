/* A tensor as functions of a C interface exchange it. The layout is DLPack's DLTensor (version 0.x and 1.x), field by
 * field, so a pointer to a DLTensor may be passed as it is; the definition is our own so that nothing has to be
 * installed. C89 but for stdint.h. */
#ifndef TENSMITH_RUNTIME_DL_TENSOR_H
#define TENSMITH_RUNTIME_DL_TENSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element type codes of DLPack. */
#define TENSMITH_CODE_INT 0
#define TENSMITH_CODE_UINT 1
#define TENSMITH_CODE_FLOAT 2
#define TENSMITH_CODE_HANDLE 3
#define TENSMITH_CODE_BFLOAT 4
#define TENSMITH_CODE_BOOL 6

/* Device types of DLPack that we know. */
#define TENSMITH_DEVICE_CPU 1
#define TENSMITH_DEVICE_CUDA 2

typedef struct tensmith_tensor {
  void* data;          /* null only if there are no elements */
  int32_t device_type; /* TENSMITH_DEVICE_... */
  int32_t device_id;
  int32_t ndim;
  uint8_t dtype_code; /* TENSMITH_CODE_... */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  int64_t* shape;   /* ndim values; may be null if ndim is 0 */
  int64_t* strides; /* in elements; null: dense, row-major */
  uint64_t byte_offset;
} tensmith_tensor;

#ifdef __cplusplus
}
#endif

#endif /* TENSMITH_RUNTIME_DL_TENSOR_H */
