#include "apps/cli/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>
#include <map>
#include <sstream>

#include "apps/cli/compare.h"
#include "apps/cli/repro.h"
#include "apps/driver/pack.h"
#include "runtime/base/config.h"
#include "runtime/npy.h"
#include "schedule/trace.h"
#include "tensor/walk.h"

namespace tensmith::cli {

namespace {

/// A parameter of a kernel call in `main`: an address inside one of main's buffers.
struct Address {
  int buffer = 0;
  int64_t bytes = 0;
};

/// The arguments of every call, from the loop IR of `main` itself.
std::vector<std::vector<Address>> arguments_of(const CompiledProgram& program) {
  std::vector<std::vector<Address>> calls(program.calls.size());
  int64_t current = -1;
  visit(program.main.body, [&](const Stmt& s) {
    const auto* evaluate = s.as<Evaluate>();
    const auto* call = evaluate ? evaluate->value.as<Call>() : nullptr;
    if (!call) return true;
    if (call->symbol == "tensmith_on_kernel") {
      int64_t is_end = 0;
      TS_CHECK(as_const_int(call->args[0], &current) && as_const_int(call->args[1], &is_end));
      if (is_end) current = -1;
      return true;
    }
    if (current < 0) return true;
    for (const Expr& argument : call->args) {
      const auto* address = argument.as<Call>();
      const auto* load = address && address->id == Intrinsic::kAddressOf ? address->args[0].as<Load>() : nullptr;
      int64_t index = 0;
      TS_CHECK(load && load->indices.size() == 1 && as_const_int(load->indices[0], &index)) << call->symbol;
      const auto& buffers = program.main.buffers;
      const auto it = std::find_if(buffers.begin(), buffers.end(),
                                   [&](const Buffer& buffer) { return buffer.same_as(load->buffer); });
      TS_CHECK(it != buffers.end()) << load->buffer->name;
      calls[static_cast<size_t>(current)].push_back(
          {static_cast<int>(it - buffers.begin()), index * load->buffer->dtype.bytes()});
    }
    return true;
  });
  return calls;
}

/// Watches a run and compares at the end of each kernel.
class Watch {
 public:
  Watch(const LoadedModel& model, const Options& options, std::vector<uint8_t*> buffers)
      : program_(*model.program), options_(options), buffers_(std::move(buffers)), calls_(arguments_of(program_)) {}

  static void hook(void* user, int32_t kernel, int32_t is_end) {
    auto& self = *static_cast<Watch*>(user);
    if (self.error_) return;
    try {  // nothing may be thrown through generated code
      if (is_end) self.end(static_cast<size_t>(kernel));
      else self.begin(static_cast<size_t>(kernel));
    } catch (...) {
      self.error_ = std::current_exception();
    }
  }

  KernelCheckReport finish() {
    if (error_) std::rethrow_exception(error_);
    report_.text = text_.str();
    return std::move(report_);
  }

 private:
  HostTensor read(size_t call, size_t parameter, const Layout& layout, const graph::TensorType& type) const {
    const Address& at = calls_[call].at(parameter);
    HostTensor tensor(type.static_shape(), type.dtype);
    unpack(buffers_.at(static_cast<size_t>(at.buffer)) + at.bytes, layout, type.dtype, tensor.shape(),
           static_cast<uint8_t*>(tensor.raw()));
    return tensor;
  }

  /// Keeps the inputs as they are before the kernel runs: its outputs may take their place.
  void begin(size_t call) {
    inputs_.clear();
    const graph::Graph* reference = program_.calls[call].reference.get();
    if (!reference) return;
    const CompiledKernel& kernel = program_.kernels[program_.calls[call].kernel];
    size_t next = 0;
    for (int k = 0; k < kernel.lowered.num_inputs; ++k) {
      // Constants stand in the reference themselves, so that packing them is checked too.
      const int weights = static_cast<int>(program_.inputs.size() + program_.outputs.size());
      if (calls_[call].at(static_cast<size_t>(k)).buffer == weights) continue;
      inputs_.push_back(read(call, static_cast<size_t>(k), kernel.lowered.input_layouts[static_cast<size_t>(k)],
                             reference->type({reference->inputs.at(next++), 0})));
    }
  }

  void end(size_t call) {
    const KernelCall& made = program_.calls[call];
    if (!made.reference || inputs_.size() != made.reference->inputs.size()) {
      ++report_.skipped;
      return;
    }
    const CompiledKernel& kernel = program_.kernels[made.kernel];
    const std::vector<HostTensor> wanted = interpreter_outputs(*made.reference, inputs_);
    ++report_.checked;
    for (size_t k = 0; k < wanted.size(); ++k) {
      const HostTensor got = read(call, static_cast<size_t>(kernel.lowered.num_inputs) + k,
                                  kernel.lowered.output_layouts[k], made.reference->type(made.reference->outputs[k]));
      // Narrow floats are rounded after each operator inside.
      const DType dtype = got.dtype();
      const double step = dtype.is_float() && dtype.bits <= 16 ? (dtype == kFloat16 ? 0x1p-10 : 0x1p-7) : 0;
      const Comparison c = compare(got, wanted[k], std::max(options_.rtol, 4 * step), std::max(options_.atol, 4 * step),
                                   /*scale_atol=*/true);
      if (c.same) continue;
      if (report_.wrong++ == 0) keep(call, wanted, got, k, c.text);
      text_ << "kernel " << kernel.name << " (" << made.label << ") output " << made.reference->output_names[k] << ": "
            << c.text << "\n";
      return;
    }
  }

  /// What repeats the first difference.
  void keep(size_t call, const std::vector<HostTensor>& wanted, const HostTensor& got, size_t output,
            const std::string& text) {
    const KernelCall& made = program_.calls[call];
    const CompiledKernel& kernel = program_.kernels[made.kernel];
    report_.files = {{"error.txt", "kernel " + kernel.name + " (" + made.label + "): output " +
                                       made.reference->output_names[output] + ": " + text + "\n"},
                     {"kernel.graph", reproducer_graph(*made.reference)},
                     {"workload.txt", to_text(kernel.schedule.workload())},
                     {"schedule.json", trace_to_json(trace_of(kernel.schedule))},
                     {"schedule.txt", kernel.schedule.to_string()},
                     {"got_" + std::to_string(output) + ".npy", take(npy_bytes(got))}};
    std::ostringstream command;
    command << "tensmith verify kernel.graph --rtol " << options_.rtol << " --atol " << options_.atol;
    std::string repeat = command.str();
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const std::string file = "input_" + std::to_string(k) + ".npy";
      report_.files[file] = take(npy_bytes(inputs_[k]));
      repeat += " --input '" + made.reference->value_name({made.reference->inputs[k], 0}) + "=@" + file + "'";
    }
    for (size_t k = 0; k < wanted.size(); ++k)
      report_.files["output_" + std::to_string(k) + ".npy"] = take(npy_bytes(wanted[k]));
    report_.files["repeat.txt"] = repeat + "\n";
  }

  const CompiledProgram& program_;
  const Options& options_;
  std::vector<uint8_t*> buffers_;
  std::vector<std::vector<Address>> calls_;
  std::vector<HostTensor> inputs_;
  KernelCheckReport report_;
  std::ostringstream text_;
  std::exception_ptr error_;
};

}  // namespace

KernelCheckReport check_kernels(const LoadedModel& model, Instance& instance, const Options& options,
                                std::vector<HostTensor>& inputs) {
  const CompiledProgram& program = *model.program;
  std::vector<HostTensor> outputs;
  for (const PortSpec& port : program.outputs) outputs.emplace_back(port.shape, port.dtype);
  const HostMemory arena(program.arena_bytes + 128);
  std::vector<uint8_t*> buffers;
  for (std::vector<HostTensor>* list : {&inputs, &outputs})
    for (HostTensor& tensor : *list) buffers.push_back(static_cast<uint8_t*>(tensor.raw()));
  buffers.push_back(const_cast<uint8_t*>(program.weights->bytes().data()));
  buffers.push_back(static_cast<uint8_t*>(arena.data()));
  Watch watch(model, options, std::move(buffers));
  take(instance.set_workspace(arena.data(), arena.size()));
  instance.set_on_kernel(Watch::hook, &watch);
  const Result<void> done = instance.run_into(inputs, outputs);
  instance.set_on_kernel(nullptr, nullptr);
  take(instance.set_workspace(nullptr, 0));
  take(done);
  return watch.finish();
}

void check_if_asked(const LoadedModel& model, Instance& instance, const Options& options,
                    std::vector<HostTensor>& inputs) {
  if (!config()->check) return;
  TS_USER_CHECK(model.program, "check-needs-model")
      << "--check " << options.model << ": expected an ONNX model, got a library, which has no graph to compare with; "
      << "give the model itself";
  KernelCheckReport report = check_kernels(model, instance, options, inputs);
  std::cerr << report.text << report.checked - report.wrong << " of " << report.checked
            << " kernel calls agree with the interpreter";
  if (report.skipped) std::cerr << ", " << report.skipped << " could not be compared";
  std::cerr << "\n";
  if (report.wrong == 0) return;
  const std::string hint = config()->repro.empty() ? "--repro=DIR writes what repeats it"
                                                   : save_reproducer(options, std::move(report.files));
  throw Error(ErrorKind::kMismatch, "kernel-differs",
              "--check: expected every kernel to agree with the interpreter, got " + std::to_string(report.wrong) +
                  " that differ, listed above; " + hint);
}

}  // namespace tensmith::cli
