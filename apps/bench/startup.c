/* One start of an exported library: creates an instance, runs it once, tells when. Built by apps/bench/startup with gcc
 * alone, -DHEADER, -DGET_API. Arguments: files with the raw inputs, in the model's order. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include HEADER

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static size_t bytes_of(const tensmith_io* io) {
  size_t bytes = (size_t)((io->dtype_bits + 7) / 8);
  int32_t d;
  for (d = 0; d < io->ndim; ++d) bytes *= (size_t)io->shape[d];
  return bytes;
}

int main(int argc, char** argv) {
  const double begin = now_ms();
  const tensmith_api* api = GET_API(TENSMITH_ABI_VERSION);
  const tensmith_model* model = api->model;
  const void* inputs[64];
  void* outputs[64];
  tensmith_options options = {0};
  tensmith_instance* instance;
  char error[512];
  double read, created, first, again;
  int32_t k;
  if (model->num_inputs > 64 || model->num_outputs > 64 || argc < model->num_inputs + 2) return 2;
  for (k = 0; k < model->num_inputs; ++k) {
    const size_t bytes = bytes_of(&model->inputs[k]);
    void* data = malloc(bytes ? bytes : 1);
    FILE* file = fopen(argv[k + 2], "rb");
    if (!data || !file || fread(data, 1, bytes, file) != bytes) return 3;
    fclose(file);
    inputs[k] = data;
  }
  for (k = 0; k < model->num_outputs; ++k) outputs[k] = malloc(bytes_of(&model->outputs[k]) + 1);
  read = now_ms();
  options.size = sizeof options;
  options.num_threads = atoi(argv[1]);
  options.error = error;
  options.error_bytes = sizeof error;
  if (api->create(&options, &instance)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  created = now_ms();
  if (api->run_buffers(instance, inputs, outputs, NULL)) {
    fprintf(stderr, "%s\n", api->last_error(instance));
    return 1;
  }
  first = now_ms();
  api->run_buffers(instance, inputs, outputs, NULL);
  again = now_ms();
  api->destroy(instance);
  printf("{\"main\": %.4f, \"read\": %.4f, \"created\": %.4f, \"first\": %.4f, \"again\": %.4f}\n", begin, read, created,
         first, again);
  return 0;
}
