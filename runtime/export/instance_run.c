/* Running an instance: checks of what the caller passes, then one call of the generated code. Nothing is allocated
 * unless dimensions have grown. */
#include <string.h>

#include "runtime/export/instance.h"
#include "runtime/export/instance_state.h"

static int32_t ts_dim(const tensmith_instance* instance, int64_t entry, int64_t* value) {
  *value = entry >= 0 ? entry : instance->dims[-1 - entry];
  return entry >= 0 || -1 - entry < instance->model->num_symbols;
}

/* Starts a message: "<model>: input x: ". */
static tensmith_text* ts_io_message(tensmith_instance* instance, int32_t index) {
  const tensmith_model* model = instance->model;
  tensmith_text* text = tensmith_instance_message(instance);
  const int output = index >= model->num_inputs;
  tensmith_text_add(text, output ? "output " : "input ");
  tensmith_text_add(text, output ? model->outputs[index - model->num_inputs].name : model->inputs[index].name);
  tensmith_text_add(text, ": ");
  return text;
}

static const tensmith_io* ts_io(const tensmith_instance* instance, int32_t index) {
  const tensmith_model* model = instance->model;
  return index < model->num_inputs ? &model->inputs[index] : &model->outputs[index - model->num_inputs];
}

/* The described shape with what is known of the dims: "[batch,3,224]". */
static void ts_add_expected_shape(tensmith_text* text, const tensmith_instance* instance, const tensmith_io* io,
                                  int with_values) {
  int32_t i;
  tensmith_text_add(text, "[");
  for (i = 0; i < io->ndim; ++i) {
    int64_t entry = io->shape[i];
    if (i) tensmith_text_add(text, ",");
    if (entry >= 0) tensmith_text_add_int(text, entry);
    else if (with_values) tensmith_text_add_int(text, instance->dims[-1 - entry]);
    else if (-1 - entry < instance->model->num_symbols)
      tensmith_text_add(text, instance->model->symbols[-1 - entry].name);
    else tensmith_text_add(text, "?");
  }
  tensmith_text_add(text, "]");
}

TS_C_API int32_t tensmith_instance_derive(tensmith_instance* instance) {
  const tensmith_model* model = instance->model;
  int32_t i, j;
  for (i = 0; i < model->num_symbols; ++i) {
    const tensmith_symbol* s = &model->symbols[i];
    if (instance->dims[i] < s->min || instance->dims[i] > s->max) {
      tensmith_text* text = tensmith_instance_message(instance);
      tensmith_text_add(text, "dimension ");
      tensmith_text_add(text, s->name);
      tensmith_text_add(text, ": expected ");
      tensmith_text_add_int(text, s->min);
      tensmith_text_add(text, " to ");
      tensmith_text_add_int(text, s->max);
      tensmith_text_add(text, ", got ");
      tensmith_text_add_int(text, instance->dims[i]);
      return TENSMITH_BAD_TENSOR;
    }
  }
  if (model->derive && model->derive(instance->dims, instance->dims + model->num_symbols) != 0) {
    tensmith_text_add(tensmith_instance_message(instance), "the input dimensions do not fit together");
    return TENSMITH_BAD_TENSOR;
  }
  for (i = 0; i < model->num_inputs + model->num_outputs; ++i) {
    const tensmith_io* io = ts_io(instance, i);
    int64_t bytes = (io->dtype_bits + 7) / 8 * (int64_t)io->dtype_lanes;
    for (j = 0; j < io->ndim; ++j) {
      int64_t dim;
      ts_dim(instance, io->shape[j], &dim);
      if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) {
        tensmith_text* text = ts_io_message(instance, i);
        tensmith_text_add(text, "the shape is negative or too large: ");
        ts_add_expected_shape(text, instance, io, 1);
        return TENSMITH_BAD_TENSOR;
      }
    }
    instance->io_bytes[i] = bytes;
  }
  return 0;
}

/* Pointers: there where there is data, aligned, outputs apart from everything else. */
static int32_t ts_check_pointers(tensmith_instance* instance) {
  const int32_t inputs = instance->model->num_inputs, all = inputs + instance->model->num_outputs;
  int32_t i, j;
  for (i = 0; i < all; ++i) {
    const int64_t bytes = instance->io_bytes[i];
    const uintptr_t begin = (uintptr_t)instance->buffers[i];
    const int32_t alignment = ts_io(instance, i)->alignment;
    if (bytes == 0) continue;
    if (begin == 0) {
      tensmith_text_add(ts_io_message(instance, i), "expected data, got a null pointer");
      return TENSMITH_BAD_ARGUMENT;
    }
    if (alignment > 1 && begin % (uintptr_t)alignment != 0) {
      tensmith_text* text = ts_io_message(instance, i);
      tensmith_text_add(text, "expected data aligned to ");
      tensmith_text_add_int(text, alignment);
      tensmith_text_add(text, " bytes");
      return TENSMITH_BAD_TENSOR;
    }
    for (j = 0; i >= inputs && j < i; ++j) {
      const uintptr_t other = (uintptr_t)instance->buffers[j];
      if (begin < other + (uintptr_t)instance->io_bytes[j] && other < begin + (uintptr_t)bytes) {
        tensmith_text* text = ts_io_message(instance, i);
        tensmith_text_add(text, "its memory overlaps that of ");
        tensmith_text_add(text, j < inputs ? "input " : "output ");
        tensmith_text_add(text, ts_io(instance, j)->name);
        return TENSMITH_BAD_TENSOR;
      }
    }
  }
  return 0;
}

/* With dims and buffers set: the run itself. */
static int32_t ts_run_checked(tensmith_instance* instance) {
  const tensmith_model* model = instance->model;
  const int32_t io = model->num_inputs + model->num_outputs;
  int32_t code = ts_check_pointers(instance);
  if (!code) code = tensmith_instance_reserve(instance);
  if (code) return code;
  instance->buffers[io] = (void*)(uintptr_t)instance->weights; /* generated code only reads them */
  instance->buffers[io + 1] = instance->arena;
  code = instance->variant->run(&instance->context, instance->buffers, instance->dims);
  if (code) {
    tensmith_text* text = tensmith_instance_message(instance);
    if (code > 0 && code <= model->num_messages) {
      tensmith_text_add(text, model->messages[code - 1]);
    } else {
      tensmith_text_add(text,
                        code == TENSMITH_OUT_OF_MEMORY ? "out of memory, code " : "a check on the data failed, code ");
      tensmith_text_add_int(text, code);
    }
  }
  return code;
}

static int32_t ts_set_symbols(tensmith_instance* instance, const int64_t* symbols) {
  const int32_t n = instance->model->num_symbols;
  if (n == 0) return 0; /* derived at creation */
  if (!symbols) {
    tensmith_text_add(tensmith_instance_message(instance),
                      "expected values of the symbolic dimensions, got a null pointer");
    return TENSMITH_BAD_ARGUMENT;
  }
  memcpy(instance->dims, symbols, (size_t)n * sizeof *symbols);
  return tensmith_instance_derive(instance);
}

TS_C_API int32_t tensmith_instance_run_buffers(tensmith_instance* instance, const void* const* inputs,
                                               void* const* outputs, const int64_t* symbols) {
  const tensmith_model* model;
  int32_t code;
  if (!instance || (!inputs && instance->model->num_inputs) || (!outputs && instance->model->num_outputs))
    return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  model = instance->model;
  tensmith_text_clear(&instance->error);
  code = ts_set_symbols(instance, symbols);
  if (!code) {
    if (model->num_inputs) memcpy(instance->buffers, inputs, (size_t)model->num_inputs * sizeof(void*));
    if (model->num_outputs)
      memcpy(instance->buffers + model->num_inputs, outputs, (size_t)model->num_outputs * sizeof(void*));
    code = ts_run_checked(instance);
  }
  tensmith_instance_leave(instance);
  return code;
}

static int32_t ts_bad_shape(tensmith_instance* instance, int32_t index, const tensmith_tensor* t, int with_values) {
  tensmith_text* text = ts_io_message(instance, index);
  tensmith_text_add(text, "expected shape ");
  ts_add_expected_shape(text, instance, ts_io(instance, index), with_values);
  tensmith_text_add(text, ", got ");
  if (t->ndim < 0 || (t->ndim > 0 && !t->shape)) {
    tensmith_text_add(text, "no shape");
  } else if (t->ndim > 64) { /* more likely a wrong structure than a tensor: its shape is not looked at */
    tensmith_text_add_int(text, t->ndim);
    tensmith_text_add(text, " dimensions");
  } else {
    tensmith_text_add_shape(text, t->shape, t->ndim);
  }
  return TENSMITH_BAD_TENSOR;
}

/* All of a tensor but its dimensions' values and data pointer. */
static int32_t ts_check_form(tensmith_instance* instance, int32_t index, const tensmith_tensor* t) {
  const tensmith_io* io = ts_io(instance, index);
  if (t->device_type != TENSMITH_DEVICE_CPU) {
    tensmith_text* text = ts_io_message(instance, index);
    tensmith_text_add(text, "expected memory of the CPU (device type 1), got device type ");
    tensmith_text_add_int(text, t->device_type);
    return TENSMITH_BAD_TENSOR;
  }
  if (t->dtype_code != io->dtype_code || t->dtype_bits != io->dtype_bits || t->dtype_lanes != io->dtype_lanes) {
    tensmith_text* text = ts_io_message(instance, index);
    tensmith_text_add(text, "expected dtype ");
    tensmith_text_add_dtype(text, io->dtype_code, io->dtype_bits, io->dtype_lanes);
    tensmith_text_add(text, ", got ");
    tensmith_text_add_dtype(text, t->dtype_code, t->dtype_bits, t->dtype_lanes);
    return TENSMITH_BAD_TENSOR;
  }
  if (t->ndim != io->ndim || (t->ndim > 0 && !t->shape)) return ts_bad_shape(instance, index, t, 0);
  return 0;
}

/* Dense and row-major; strides of dimensions of 1 do not matter. */
static int32_t ts_check_strides(tensmith_instance* instance, int32_t index, const tensmith_tensor* t) {
  int64_t expected = 1;
  int32_t i;
  if (!t->strides || instance->io_bytes[index] == 0) return 0;
  for (i = t->ndim - 1; i >= 0; --i) {
    if (t->shape[i] != 1 && t->strides[i] != expected) {
      tensmith_text_add(ts_io_message(instance, index),
                        "expected dense row-major data, got other strides; copy the tensor first");
      return TENSMITH_BAD_TENSOR;
    }
    expected *= t->shape[i]; /* their product is known not to overflow */
  }
  return 0;
}

/* Binds the symbols to what the inputs' shapes say, derives, and checks all inputs' shapes. */
static int32_t ts_bind(tensmith_instance* instance, const tensmith_tensor* inputs) {
  const tensmith_model* model = instance->model;
  int32_t i, j, code;
  for (i = 0; i < model->num_symbols; ++i) instance->dims[i] = -1;
  for (i = 0; i < model->num_inputs; ++i) {
    code = ts_check_form(instance, i, &inputs[i]);
    if (code) return code;
    for (j = 0; j < inputs[i].ndim; ++j) {
      int64_t known, entry = model->inputs[i].shape[j];
      if (!ts_dim(instance, entry, &known)) continue; /* derived: checked below */
      if (inputs[i].shape[j] < 0) return ts_bad_shape(instance, i, &inputs[i], 0);
      if (entry < 0 && known < 0) instance->dims[-1 - entry] = inputs[i].shape[j];
      else if (inputs[i].shape[j] != known) return ts_bad_shape(instance, i, &inputs[i], 0);
    }
  }
  if (model->num_symbols) code = tensmith_instance_derive(instance);
  else code = 0;
  for (i = 0; !code && i < model->num_inputs; ++i)
    for (j = 0; !code && j < inputs[i].ndim; ++j) {
      int64_t known;
      ts_dim(instance, model->inputs[i].shape[j], &known);
      if (inputs[i].shape[j] != known) code = ts_bad_shape(instance, i, &inputs[i], 1);
    }
  return code;
}

static int32_t ts_run_tensors(tensmith_instance* instance, const tensmith_tensor* inputs,
                              const tensmith_tensor* outputs) {
  const tensmith_model* model = instance->model;
  int32_t i, j, code = ts_bind(instance, inputs);
  for (i = 0; !code && i < model->num_outputs; ++i) {
    const int32_t index = model->num_inputs + i;
    code = ts_check_form(instance, index, &outputs[i]);
    for (j = 0; !code && j < outputs[i].ndim; ++j) {
      int64_t dim;
      ts_dim(instance, model->outputs[i].shape[j], &dim);
      if (outputs[i].shape[j] != dim) code = ts_bad_shape(instance, index, &outputs[i], 1);
    }
  }
  for (i = 0; !code && i < model->num_inputs + model->num_outputs; ++i) {
    const tensmith_tensor* t = i < model->num_inputs ? &inputs[i] : &outputs[i - model->num_inputs];
    code = ts_check_strides(instance, i, t);
    instance->buffers[i] = t->data ? (char*)t->data + t->byte_offset : 0;
  }
  return code ? code : ts_run_checked(instance);
}

TS_C_API int32_t tensmith_instance_run_tensors(tensmith_instance* instance, const tensmith_tensor* inputs,
                                               const tensmith_tensor* outputs) {
  int32_t code;
  if (!instance || (!inputs && instance->model->num_inputs) || (!outputs && instance->model->num_outputs))
    return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  tensmith_text_clear(&instance->error);
  code = ts_run_tensors(instance, inputs, outputs);
  tensmith_instance_leave(instance);
  return code;
}

TS_C_API int32_t tensmith_instance_output_shape(tensmith_instance* instance, const tensmith_tensor* inputs,
                                                int32_t output, int64_t* shape) {
  int32_t code, i;
  if (!instance || (!inputs && instance->model->num_inputs) || !shape || output < 0 ||
      output >= instance->model->num_outputs)
    return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  tensmith_text_clear(&instance->error);
  code = ts_bind(instance, inputs);
  for (i = 0; !code && i < instance->model->outputs[output].ndim; ++i)
    ts_dim(instance, instance->model->outputs[output].shape[i], &shape[i]);
  tensmith_instance_leave(instance);
  return code;
}

TS_C_API int64_t tensmith_instance_workspace_size(tensmith_instance* instance, const int64_t* symbols) {
  int64_t result;
  if (!instance) return TENSMITH_BAD_ARGUMENT;
  if (!tensmith_instance_enter(instance)) return TENSMITH_BUSY;
  tensmith_text_clear(&instance->error);
  result = ts_set_symbols(instance, symbols);
  if (!result) result = tensmith_instance_arena_size(instance);
  tensmith_instance_leave(instance);
  return result;
}
