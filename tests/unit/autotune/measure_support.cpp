#include "tests/unit/autotune/measure_support.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "tensor/parse.h"

namespace tensmith {

SessionOptions test_session_options() {
  SessionOptions options;
  options.worker = {TS_MEASURE_WORKER};
  options.builders = 1;
  options.limits.build_s = 20;
  options.limits.run_s = 5;
  options.timing.max_windows = 8;
  options.timing.max_ms = 50;
  return options;
}

MeasureTask matmul_task(int64_t m, int64_t n, int64_t k, int threads) {
  const Tensor a = placeholder("A", {m, k}, kFloat32), b = placeholder("B", {k, n}, kFloat32, /*is_constant=*/true);
  const Tensor c =
      sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  MeasureTask task;
  task.workload = make_workload("matmul", {a, b}, {c});
  task.request = {Target::host(), threads, {}, {}};
  return task;
}

MeasureTask relu_task(int64_t count) {
  const Tensor x = placeholder("X", {count}, kFloat32);
  MeasureTask task;
  task.workload = make_workload(
      "relu", {x}, {compute("Y", {count}, [&](const Indices& i) { return max(x(i[0]), make_const(kFloat32, 0)); })});
  task.request = {Target::host(), 1, {}, {}};
  return task;
}

MeasureCandidate candidate_from_text(const MeasureTask& task, const std::string& text) {
  Result<LoopFunction> function = parse_function(text);
  EXPECT_TRUE(function.ok()) << (function.ok() ? "" : function.failure().message) << "\n" << text;
  BuiltKernel kernel;
  kernel.object = compile(LoopProgram{{function.value()}}, task.request.target);
  kernel.function = function->name;
  kernel.num_inputs = static_cast<int>(task.workload.inputs.size());
  kernel.num_outputs = static_cast<int>(task.workload.outputs.size());
  for (const Buffer& buffer : function->buffers) {
    int64_t bytes = buffer->dtype.bytes();
    for (const Expr& extent : buffer->shape) {
      int64_t value = 0;
      EXPECT_TRUE(as_const_int(extent, &value));
      bytes *= value;
    }
    kernel.buffer_bytes.push_back(bytes);
  }
  for (const Tensor& input : task.workload.inputs) kernel.input_layouts.push_back(Layout::row_major(input.rank()));
  for (const Tensor& output : task.workload.outputs) kernel.output_layouts.push_back(Layout::row_major(output.rank()));
  MeasureCandidate candidate;
  candidate.built = std::move(kernel);
  return candidate;
}

std::string matmul_text(int64_t m, int64_t n, int64_t k, const std::string& body) {
  const auto text = [](int64_t v) { return std::to_string(v); };
  const std::string at = "C[i * " + text(n) + " + j]";
  return "func measured_kernel(A: f32[" + text(m * k) + "], B: f32[" + text(k * n) + "], C: f32[" + text(m * n) +
         "]) -> C {\n  for i in " + text(m) + " {\n    for j in " + text(n) + " {\n" +
         (body.empty() ? at + " = 0.0\n for k in " + text(k) + " { " + at + " = " + at + " + A[i * " + text(k) +
                             " + k] * B[k * " + text(n) + " + j] }\n"
                       : body) +
         "    }\n  }\n}\n";
}

MeasureCandidate with_code(MeasureCandidate candidate, const std::vector<uint8_t>& code) {
  std::vector<uint8_t>& bytes = candidate.built->object.bytes;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[s].sh_offset);
    const auto* names = reinterpret_cast<const char*>(bytes.data() + sections[sections[s].sh_link].sh_offset);
    for (size_t k = 0; k < sections[s].sh_size / sizeof(Elf64_Sym); ++k) {
      if (candidate.built->function != names + symbols[k].st_name) continue;
      EXPECT_GE(symbols[k].st_size, code.size());
      std::memcpy(bytes.data() + sections[symbols[k].st_shndx].sh_offset + symbols[k].st_value, code.data(),
                  code.size());
      return candidate;
    }
  }
  ADD_FAILURE() << "no function " << candidate.built->function;
  return candidate;
}

std::vector<uint8_t> code_that_raises(int signal) {
  switch (signal) {
    case SIGSEGV: return {0x31, 0xc0, 0xc7, 0x00, 0x01, 0x00, 0x00, 0x00};             // *(int*)0 = 1
    case SIGILL: return {0x0f, 0x0b};                                                  // ud2
    case SIGFPE: return {0x31, 0xc9, 0xb8, 0x01, 0x00, 0x00, 0x00, 0x99, 0xf7, 0xf9};  // 1 / 0
    default:                                                                           // kill(getpid(), signal)
      return {0xb8, 0x27, 0,    0, 0, 0x0f, 0x05, 0x89, 0xc7, 0xbe, static_cast<uint8_t>(signal), 0, 0,
              0,    0xb8, 0x3e, 0, 0, 0,    0x0f, 0x05, 0xeb, 0xfe};
  }
}

std::vector<uint8_t> code_that_hangs() { return {0xeb, 0xfe}; }

MeasureCandidate default_candidate(const MeasureTask& task) {
  MeasureCandidate candidate;
  candidate.steps = default_schedule(task.workload, task.request).steps();
  return candidate;
}

MeasureResult measure_one(MeasureSession& session, int task, MeasureCandidate candidate) {
  const int64_t id = session.submit(task, std::move(candidate));
  while (std::optional<MeasureResult> result = session.wait(120))
    if (result->id == id) return *result;
  ADD_FAILURE() << "no result for candidate " << id;
  return {};
}

}  // namespace tensmith
