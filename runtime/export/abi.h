/* What an exported library offers: the application binary interface, version 1.
 *
 * Every symbol of a library begins with its prefix, written P_ here. P_get_api is the query symbol; the functions of
 * the table also exist as symbols of their own (P_create, P_run_tensors, ...), and P_run is a typed entry with one
 * parameter a tensor. A model is described by tables of constants; an instance holds memory and threads. Several
 * instances may run at the same time, one instance only once at a time. No function prints, exits or throws; nothing
 * runs when a library is loaded. Structures and the table are only ever extended at their ends; `size` says how much of
 * them exists. */
#ifndef TENSMITH_RUNTIME_EXPORT_ABI_H
#define TENSMITH_RUNTIME_EXPORT_ABI_H

#include "runtime/base/cpu_requirement.h"
#include "runtime/context.h"
#include "runtime/dl_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TENSMITH_ABI_VERSION 1

/* Codes that functions return. Positive ones come from the model itself: a check on its data failed (an index out of
 * range). */
#define TENSMITH_OK 0
#define TENSMITH_BAD_ARGUMENT (-1)        /* a null pointer, an option out of range */
#define TENSMITH_BAD_TENSOR (-2)          /* shape, dtype, layout, alignment, overlap */
#define TENSMITH_MISSING_CPU_FEATURE (-3) /* this CPU cannot run the code; the message names the feature */
#define TENSMITH_BAD_WEIGHTS (-4) /* the file of weights is missing or not the one that belongs to the library */
#define TENSMITH_BUSY (-5)        /* the instance is running in another thread */
#define TENSMITH_OUT_OF_MEMORY (-12)

/* ---- The description of a model: constants in the library ---- */

/* A dimension that the caller chooses, within bounds. */
typedef struct tensmith_symbol {
  const char* name;
  int64_t min;
  int64_t max;
} tensmith_symbol;

/* An input or output. A dimension below 0 stands for dims[-1 - value]: first the symbols, behind them the derived
 * dimensions. */
typedef struct tensmith_io {
  const char* name;
  const int64_t* shape;
  int32_t ndim;
  int32_t alignment;  /* bytes that data pointers must be aligned to */
  uint8_t dtype_code; /* as in tensmith_tensor */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  uint32_t reserved;
} tensmith_io;

typedef struct tensmith_kernel {
  const char* name;
  double flops; /* operations of one call, 0 if unknown */
  double bytes; /* bytes read and written by one call at least, 0 if unknown */
} tensmith_kernel;

/* The code of a model for one instruction set. */
typedef struct tensmith_variant {
  const char* target; /* such as "x86-64-v3,vector=256" */
  const tensmith_cpu_requirement* requirements;
  /* buffers: inputs, outputs, weights, arena; dims: symbols, derived dimensions. Returns 0 or a positive code. */
  int32_t (*run)(const tensmith_context* context, void* const* buffers, const int64_t* dims);
  /* Bytes of arena for these dims and that many threads; null: arena_bytes + threads * arena_bytes_per_thread. */
  int64_t (*arena_size)(const int64_t* dims, int64_t threads);
  const void* weights;           /* embedded, aligned to 64 bytes; null: in a file, or there are none */
  const char* weights_file;      /* name of the file that lies beside the library; null: embedded, or there are none */
  const uint8_t* weights_sha256; /* the digest at the end of the file, 32 bytes; null if there is no file */
  const tensmith_kernel* kernels;
  int64_t weights_bytes;
  int64_t arena_bytes;
  int64_t arena_bytes_per_thread;
  int32_t num_requirements;
  int32_t num_kernels;
} tensmith_variant;

typedef struct tensmith_model {
  uint32_t size; /* of this structure */
  uint32_t abi_version;
  const char* name;
  const char* compiler; /* "tensmith 0.1.0" */
  const char* digest;   /* SHA-256 of the model file in hexadecimal */
  const char* manifest; /* JSON */
  const tensmith_io* inputs;
  const tensmith_io* outputs;
  const tensmith_symbol* symbols;
  const tensmith_variant* variants; /* best first */
  const char* const* messages;      /* what the positive code k means: messages[k - 1] */
  /* Computes the derived dimensions from the symbols; null if there are none. Returns 0, or a code if they do not fit
   * together. */
  int32_t (*derive)(const int64_t* symbols, int64_t* derived);
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t num_symbols;
  int32_t num_derived;
  int32_t num_variants;
  int32_t num_messages;
  int32_t default_threads; /* 0: usable cores */
  int32_t reserved;
} tensmith_model;

/* ---- Instances ---- */

typedef struct tensmith_instance tensmith_instance;

/* A host's parallel loop, in the place of the built-in threads: see tensmith_context. */
typedef int32_t (*tensmith_parallel_for)(void* pool, tensmith_loop_body body, void* closure, int64_t extent);

#define TENSMITH_VERIFY_WEIGHTS 1u /* compute the SHA-256 of the mapped weights and compare */
#define TENSMITH_COPY_WEIGHTS 2u   /* copy weights into huge pages: more memory, faster where they come from DRAM */
#define TENSMITH_NO_HUGE_PAGES 4u

/* How an instance is made. Set everything to zero, then `size`, then what you need. */
typedef struct tensmith_options {
  uint32_t size;
  uint32_t flags;           /* TENSMITH_... */
  int32_t num_threads;      /* the caller included; 0: as compiled; 1: no threads are started */
  int32_t spin_us;          /* microseconds that idle threads spin before they sleep; 0: 1000; -1: never spin */
  const char* target;       /* take the variant whose target begins so; null: the best that this CPU can run */
  const char* weights_path; /* file of weights; null: beside the library */
  const void* weights; /* weights that the host has in memory (the file's data without header), aligned to 64 bytes */
  int64_t weights_bytes;
  /* Memory for instance and workspace; null: from the operating system. */
  void* (*allocate)(void* user, int64_t bytes, int64_t alignment);
  void (*release)(void* user, void* memory, int64_t bytes);
  void* allocator_user;
  tensmith_parallel_for parallel_for; /* the host's threads, num_threads of them; null: built-in threads */
  void* pool;                         /* first argument of parallel_for */
  char* error;                        /* receives the message if creation fails; may be null */
  int64_t error_bytes;
} tensmith_options;

typedef struct tensmith_api {
  uint32_t size;
  uint32_t version;
  const tensmith_model* model;
  /* Makes an instance; `options` may be null. On failure *instance is null and options->error holds a message. */
  int32_t (*create)(const tensmith_options* options, tensmith_instance** instance);
  void (*destroy)(tensmith_instance* instance);
  /* Runs on plain pointers: dense row-major data of the described shapes. `symbols` has a value for each symbol, null
   * if there are none. Outputs overlap nothing. */
  int32_t (*run_buffers)(tensmith_instance* instance, const void* const* inputs, void* const* outputs,
                         const int64_t* symbols);
  /* Runs on DLPack tensors, arrays of num_inputs and num_outputs of them, fully checked. Strides must be null or dense.
   */
  int32_t (*run_tensors)(tensmith_instance* instance, const tensmith_tensor* inputs, const tensmith_tensor* outputs);
  /* The shape of an output for these inputs (their data are not read). `shape` receives model->outputs[output].ndim
   * values. */
  int32_t (*output_shape)(tensmith_instance* instance, const tensmith_tensor* inputs, int32_t output, int64_t* shape);
  /* Message of the last failure of this instance, "" if there is none. */
  const char* (*last_error)(const tensmith_instance* instance);
  /* Bytes of workspace that a run with these symbols needs, or a negative code. */
  int64_t (*workspace_size)(tensmith_instance* instance, const int64_t* symbols);
  /* Runs use this memory, aligned to 64 bytes, from now on; null: the instance allocates again. */
  int32_t (*set_workspace)(tensmith_instance* instance, void* memory, int64_t bytes);
  /* Uses the host's threads from now on; null: one thread. Built-in threads end. */
  int32_t (*set_parallel_for)(tensmith_instance* instance, tensmith_parallel_for parallel_for, void* pool,
                              int32_t num_threads);
  /* Observes each kernel: see tensmith_context. Null: no more. */
  int32_t (*set_on_kernel)(tensmith_instance* instance, void (*on_kernel)(void* user, int32_t kernel, int32_t is_end),
                           void* user);
  /* The variant that runs, an index into model->variants; threads in use. */
  int32_t (*variant)(const tensmith_instance* instance);
  int32_t (*threads)(const tensmith_instance* instance);
} tensmith_api;

/* P_get_api: the table, or null if this library is newer than `max_version`. */
typedef const tensmith_api* (*tensmith_get_api)(uint32_t max_version);

#ifdef __cplusplus
}
#endif

#endif /* TENSMITH_RUNTIME_EXPORT_ABI_H */
