#include "autotune/measure/worker_task.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autotune/measure/point_reference.h"
#include "runtime/base/error.h"
#include "runtime/base/rng.h"
#include "tensor/pack.h"

namespace tensmith {

namespace {

/// Elements of an output that are compared with the interpreter, and how long one may take it.
constexpr int kPoints = 6;
constexpr int64_t kPointSteps = 5'000'000;
/// What copies of cold constants may take at most.
constexpr int64_t kColdLimit = int64_t{512} << 20;
/// The same for a kernel with other constants than floats, whose copies are made for it alone.
constexpr int64_t kOwnColdLimit = int64_t{128} << 20;
/// Bytes that stand where no value was written: NaN in every float format.
constexpr int kPoison = 0xFF;

InterpValue to_interp(const std::vector<uint8_t>& bytes, const MeasureParameter& p) {
  InterpValue value = make_interp_value(p.dtype, p.count());
  const HostTensor view = HostTensor::view(const_cast<uint8_t*>(bytes.data()), {p.count()}, p.dtype);
  for (int64_t k = 0; k < p.count(); ++k) {
    if (p.dtype.is_float()) value.f[static_cast<size_t>(k)] = view.get(k);
    else value.i[static_cast<size_t>(k)] = view.get_int(k);
  }
  return value;
}

/// The layout with its padding poisoned: nobody promises what is there.
void pack_poisoned(const std::vector<uint8_t>& values, const MeasureParameter& p, uint8_t* out) {
  const int64_t bytes = packed_bytes(p.shape, p.dtype, p.layout);
  if (bytes == p.bytes()) {
    pack(values.data(), p.shape, p.dtype, p.layout, out);
    return;
  }
  // Where a tensor of ones has zeros is padding.
  std::vector<uint8_t> ones(static_cast<size_t>(p.bytes()), 1), mask(static_cast<size_t>(bytes));
  pack(ones.data(), p.shape, p.dtype, p.layout, mask.data());
  pack(values.data(), p.shape, p.dtype, p.layout, out);
  for (int64_t k = 0; k < bytes; ++k)
    if (!mask[static_cast<size_t>(k)]) out[k] = kPoison;
}

void expect_code(int32_t code) {
  if (code == 0) return;
  if (code == kOutOfMemoryCode) throw MeasureFault(MeasureFailure::kOutOfMemory, "the kernel got no memory");
  throw MeasureFault(MeasureFailure::kKernelError, "the kernel returned " + std::to_string(code));
}

}  // namespace

RunnerTask::RunnerTask(MeasureTask task)
    : task_(std::move(task)), inputs_(input_parameters(task_)), outputs_(output_parameters(task_)) {
  for (size_t k = 0; k < outputs_.size(); ++k) tolerances_.push_back(output_tolerance(task_.workload, k));
  for (int k = 0; k < kNumInputSets; ++k) {
    sets_[static_cast<size_t>(k)].kind = static_cast<InputSet>(k);
    sets_[static_cast<size_t>(k)].draw = {task_.seed, false, defined_for_non_finite(task_.workload)};
  }
  pool_ = std::make_unique<ThreadPool>(task_.request.threads);
  context_ = pool_->context();
}

RunnerTask::Kernel& RunnerTask::find(const std::string& name) {
  const auto it = kernels_.find(name);
  TS_USER_CHECK(it != kernels_.end(), "unknown-kernel") << "kernel: expected one that is loaded, got '" << name << "'";
  return *it->second;
}

void RunnerTask::load(const std::string& name, const BuiltKernel& kernel) {
  const auto expect = [&](const MeasureParameter& p, const Layout& layout, int64_t bytes) {
    const int64_t wanted = packed_bytes(p.shape, p.dtype, layout);
    if (bytes != wanted)
      throw MeasureFault(MeasureFailure::kBuildFailed, p.name + ": expected " + std::to_string(wanted) +
                                                           " bytes in its layout, got " + std::to_string(bytes));
  };
  if (kernel.num_inputs != static_cast<int>(inputs_.size()) || kernel.num_outputs != static_cast<int>(outputs_.size()))
    throw MeasureFault(MeasureFailure::kBuildFailed,
                       "kernel: expected the task's numbers of inputs and outputs, got others");
  for (size_t k = 0; k < inputs_.size(); ++k)
    expect(inputs_[k], inputs_[k].is_constant ? kernel.input_layouts[k] : inputs_[k].layout, kernel.buffer_bytes[k]);
  for (size_t k = 0; k < outputs_.size(); ++k)
    expect(outputs_[k], outputs_[k].layout, kernel.buffer_bytes[inputs_.size() + k]);
  try {
    kernels_[name] = std::make_unique<Kernel>(kernel);
  } catch (const Error& e) {
    kernels_.erase(name);
    throw MeasureFault(MeasureFailure::kBuildFailed, e.what());
  }
}

RunnerTask::Set& RunnerTask::inputs_of(int index) {
  TS_USER_CHECK(index >= 0 && index < kNumInputSets, "bad-input-set")
      << "input set: expected 0 to " << kNumInputSets - 1 << ", got " << index;
  Set& set = sets_[static_cast<size_t>(index)];
  if (set.is_ready) return set;
  set.inputs.clear();
  set.guarded.clear();
  set.guarded_index.clear();
  for (const MeasureParameter& p : inputs_) {
    set.inputs.push_back(make_input(p, set.kind, set.draw));
    if (p.is_constant) {
      set.guarded_index.push_back(-1);
      continue;
    }
    GuardedBuffer buffer(packed_bytes(p.shape, p.dtype, p.layout), "input " + p.name);
    pack_poisoned(set.inputs.back(), p, buffer.data());
    buffer.make_read_only();
    set.guarded_index.push_back(static_cast<int>(set.guarded.size()));
    set.guarded.push_back(std::move(buffer));
  }
  set.is_ready = true;
  return set;
}

RunnerTask::Values RunnerTask::run_guarded(const Kernel& kernel, Set& set) {
  const BuiltKernel& description = kernel.loaded.description();
  std::vector<GuardedBuffer> own;
  own.reserve(description.buffer_bytes.size());
  std::vector<void*> arguments;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (set.guarded_index[k] >= 0) {
      arguments.push_back(set.guarded[static_cast<size_t>(set.guarded_index[k])].data());
      continue;
    }
    own.emplace_back(description.buffer_bytes[k], "constant " + inputs_[k].name);
    pack(set.inputs[k].data(), inputs_[k].shape, inputs_[k].dtype, description.input_layouts[k], own.back().data());
    own.back().make_read_only();
    arguments.push_back(own.back().data());
  }
  const size_t first_output = own.size();
  for (size_t k = inputs_.size(); k < description.buffer_bytes.size(); ++k) {
    const size_t output = k - inputs_.size();
    own.emplace_back(description.buffer_bytes[k], output < outputs_.size()
                                                      ? "output " + outputs_[output].name
                                                      : "workspace " + std::to_string(output - outputs_.size()));
    std::memset(own.back().data(), kPoison, static_cast<size_t>(own.back().bytes()));
    arguments.push_back(own.back().data());
  }
  expect_code(kernel.loaded.call(&context_, arguments));
  for (const auto* list : {&own, &set.guarded})
    for (const GuardedBuffer& buffer : *list)
      if (!buffer.intact()) throw MeasureFault(MeasureFailure::kOutOfBoundsWrite, "wrote beside " + buffer.name());
  Values outputs;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const MeasureParameter& p = outputs_[k];
    outputs.emplace_back(static_cast<size_t>(p.bytes()));
    unpack(own[first_output + k].data(), p.layout, p.dtype, p.shape, outputs.back().data());
  }
  return outputs;
}

std::string RunnerTask::compare_points(const Set& set, int* unchecked) const {
  std::vector<InterpValue> values;
  for (size_t k = 0; k < inputs_.size(); ++k) values.push_back(to_interp(set.inputs[k], inputs_[k]));
  PointReference reference(task_.workload, std::move(values), kPointSteps);
  Rng rng(task_.seed, "points");
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const MeasureParameter& p = outputs_[k];
    if (p.count() == 0) continue;
    const HostTensor view = HostTensor::view(const_cast<uint8_t*>(set.outputs[k].data()), {p.count()}, p.dtype);
    // The scale of the whole output stands beside each point, as in compare_outputs.
    double scale = 0;
    if (p.dtype.is_float()) {
      int64_t finite = 0;
      for (int64_t e = 0; e < p.count(); ++e)
        if (const double v = view.get(e); std::isfinite(v)) scale += v * v, ++finite;
      scale = finite ? std::sqrt(scale / static_cast<double>(finite)) : 0;
    }
    int wrong_ints = 0;
    for (int point = 0; point < kPoints; ++point) {
      const auto element = static_cast<int64_t>(rng.below(static_cast<uint64_t>(p.count())));
      const Result<InterpValue> exact = reference.element(k, element);
      if (!exact) {
        ++*unchecked;
        if (exact.failure().id == "interp-limit") break;  // the next one takes as long
        continue;
      }
      const auto text = [&](double wanted, double got) {
        return p.name + "[" + std::to_string(element) + "]: the interpreter gives " + std::to_string(wanted) +
               ", the plain schedule " + std::to_string(got);
      };
      if (!p.dtype.is_float()) {
        wrong_ints += exact->i[0] != view.get_int(element);
        if (wrong_ints > (tolerances_[k].differing > 0 ? 1 : 0))
          return text(static_cast<double>(exact->i[0]), static_cast<double>(view.get_int(element)));
        continue;
      }
      const double wanted = exact->f[0], got = view.get(element);
      const double limit = 2 * tolerances_[k].relative * std::max(std::fabs(wanted), scale);
      // Doubles reach further than the kernel's floats.
      const bool overflows = std::isinf(got) && std::fabs(wanted) > 3e4 && (wanted > 0) == (got > 0);
      if (std::fabs(wanted - got) <= limit || (std::isnan(wanted) && std::isnan(got)) || wanted == got || overflows)
        continue;
      return text(wanted, got);
    }
  }
  return {};
}

std::string RunnerTask::make_reference(const std::string& name) {
  Kernel& kernel = find(name);
  std::string note;
  int unchecked = 0;
  for (const bool positive : {false, true}) {
    for (Set& set : sets_) {
      set.draw.positive = positive;
      set.is_ready = set.has_outputs = false;
    }
    sets_[0].outputs = run_guarded(kernel, inputs_of(0));
    double worst = 0;
    for (size_t k = 0; k < outputs_.size(); ++k)
      worst = std::max(worst, non_finite_share(sets_[0].outputs[k].data(), outputs_[k].dtype, outputs_[k].count()));
    if (worst < 0.125) break;
    if (!positive) note = "inputs are positive, since others give NaN; ";
  }
  sets_[0].has_outputs = true;
  if (const std::string wrong = compare_points(sets_[0], &unchecked); !wrong.empty())
    throw MeasureFault(MeasureFailure::kTaskFailed, wrong);
  sets_[1].outputs = run_guarded(kernel, inputs_of(1));
  if (const std::string wrong = compare_points(sets_[1], &unchecked); !wrong.empty()) {
    // Ill-conditioned there rather than wrong: ordinary numbers stand in.
    note += "edge values are replaced by random ones (" + wrong + "); ";
    sets_[1].kind = InputSet::kRandom;
    sets_[1].draw.seed += 1'000'003;
    sets_[1].is_ready = false;
    sets_[1].outputs = run_guarded(kernel, inputs_of(1));
  }
  sets_[1].has_outputs = true;
  if (unchecked > 0) note += "unchecked against the interpreter: " + std::to_string(unchecked) + " points; ";
  reference_ = name;
  kernel.is_checked = true;
  return note.empty() ? note : note.substr(0, note.size() - 2);
}

RunnerTask::Set& RunnerTask::ready_set(int index) {
  TS_USER_CHECK(!reference_.empty(), "no-reference") << "task: expected a reference before a check, got none";
  Set& set = inputs_of(index);
  if (!set.has_outputs) {
    set.outputs = run_guarded(find(reference_), set);
    set.has_outputs = true;
  }
  return set;
}

void RunnerTask::check(const std::string& name, const std::vector<int>& sets) {
  Kernel& kernel = find(name);
  static constexpr const char* kNames[] = {"random", "edge", "winner"};
  for (const int index : sets) {
    Set& set = ready_set(index);
    const Values outputs = run_guarded(kernel, set);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const std::string difference = compare_outputs(outputs[k].data(), set.outputs[k].data(), outputs_[k].dtype,
                                                     outputs_[k].count(), tolerances_[k]);
      if (!difference.empty())
        throw MeasureFault(MeasureFailure::kWrongResult,
                           "output " + outputs_[k].name + " on " + kNames[index] + " inputs: " + difference);
    }
  }
  kernel.is_checked = true;
}

void RunnerTask::prepare_timing(Kernel& kernel) {
  if (kernel.timed) return;
  const BuiltKernel& description = kernel.loaded.description();
  const Set& set = ready_set(0);
  if (timing_inputs_.empty() && timing_outputs_.empty()) {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const MeasureParameter& p = inputs_[k];
      timing_inputs_.emplace_back(p.is_constant ? 0 : std::max<int64_t>(1, packed_bytes(p.shape, p.dtype, p.layout)));
      if (!p.is_constant) pack_poisoned(set.inputs[k], p, static_cast<uint8_t*>(timing_inputs_.back().data()));
    }
    for (const MeasureParameter& p : outputs_) {
      timing_outputs_.emplace_back(std::max<int64_t>(1, packed_bytes(p.shape, p.dtype, p.layout)));
      std::memset(timing_outputs_.back().data(), 0, static_cast<size_t>(timing_outputs_.back().size()));
    }
  }
  // Cold constants are met in copies that take turns. Those of float32 lie in an arena that all kernels of the task
  // share: where the values come from matters, not what they are. Of other types they do matter, to indices above all,
  // so each kernel has copies of its own, in its layout.
  int64_t cold_step = 0, own_step = 0;
  std::vector<int64_t> offsets(inputs_.size(), -1), own_offsets(inputs_.size(), -1);
  for (size_t k = 0; k < inputs_.size() && task_.cold_bytes > 0; ++k) {
    if (!inputs_[k].is_constant) continue;
    const bool shared = inputs_[k].dtype == kFloat32;
    (shared ? offsets : own_offsets)[k] = shared ? cold_step : own_step;
    (shared ? cold_step : own_step) += (description.buffer_bytes[k] + 63) / 64 * 64;
  }
  int64_t copies = 1;
  if (cold_step + own_step > 0) {
    copies = std::max<int64_t>(1, std::min(task_.cold_bytes, kColdLimit) / (cold_step + own_step));
    if (own_step > 0) copies = std::min(copies, std::max<int64_t>(1, kOwnColdLimit / own_step));
    if (cold_.size() < copies * cold_step) {
      // Other kernels' argument lists point into the old arena; they are made again when needed.
      for (auto& [name, other] : kernels_)
        if (other.get() != &kernel) {
          other->timed.reset();
          other->memory.clear();
        }
      cold_ = HostMemory(copies * cold_step);
      auto* values = static_cast<float*>(cold_.data());
      Rng rng(task_.seed, "cold");
      float block[1024];
      for (float& value : block) value = static_cast<float>(rng.uniform(-1, 1));
      for (int64_t at = 0; at < cold_.size() / 4; ++at) values[at] = block[at % 1024];
    }
  }
  uint8_t* own = nullptr;
  if (own_step > 0) {
    kernel.memory.emplace_back(copies * own_step);
    own = static_cast<uint8_t*>(kernel.memory.back().data());
    for (size_t k = 0; k < inputs_.size(); ++k)
      if (own_offsets[k] >= 0)
        pack(set.inputs[k].data(), inputs_[k].shape, inputs_[k].dtype, description.input_layouts[k],
             own + own_offsets[k]);
    for (int64_t copy = 1; copy < copies; ++copy)
      std::memcpy(own + copy * own_step, own, static_cast<size_t>(own_step));
  }
  std::vector<void*> arguments;
  for (size_t k = 0; k < description.buffer_bytes.size(); ++k) {
    if (k < inputs_.size() && !inputs_[k].is_constant) {
      arguments.push_back(timing_inputs_[k].data());
    } else if (k >= inputs_.size() && k < inputs_.size() + outputs_.size()) {
      arguments.push_back(timing_outputs_[k - inputs_.size()].data());
    } else if (k < inputs_.size() && (offsets[k] >= 0 || own_offsets[k] >= 0)) {
      arguments.push_back(nullptr);  // set below
    } else {
      kernel.memory.emplace_back(std::max<int64_t>(1, description.buffer_bytes[k]));
      auto* data = static_cast<uint8_t*>(kernel.memory.back().data());
      if (k < inputs_.size())
        pack(set.inputs[k].data(), inputs_[k].shape, inputs_[k].dtype, description.input_layouts[k], data);
      else std::memset(data, 0, static_cast<size_t>(kernel.memory.back().size()));
      arguments.push_back(data);
    }
  }
  std::vector<std::vector<void*>> argument_sets;
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (offsets[k] >= 0) arguments[k] = static_cast<uint8_t*>(cold_.data()) + copy * cold_step + offsets[k];
      if (own_offsets[k] >= 0) arguments[k] = own + copy * own_step + own_offsets[k];
    }
    argument_sets.push_back(arguments);
  }
  kernel.timed = std::make_unique<TimedKernel>(kernel.loaded, std::move(argument_sets));
}

TimingReport RunnerTask::measure(const std::string& name, const std::string& incumbent, const TimingOptions& options,
                                 bool to_the_cap) {
  Kernel& kernel = find(name);
  TS_USER_CHECK(kernel.is_checked, "unchecked-kernel")
      << "measure " << name << ": expected a kernel whose outputs were checked, got one that was not";
  Kernel* other = incumbent.empty() || incumbent == name ? nullptr : &find(incumbent);
  // The one with larger constants makes the arena that both share, which unmakes the other's lists: so both once more.
  for (int pass = 0; pass < 2; ++pass) {
    if (other) prepare_timing(*other);
    prepare_timing(kernel);
  }
  TS_CHECK(kernel.timed && (!other || other->timed)) << "a kernel without argument lists";
  if (!yardstick_) yardstick_ = std::make_unique<MeasureYardstick>(task_.request.target, *pool_);
  try {
    return time_candidate(*kernel.timed, other ? other->timed.get() : nullptr, context_, *yardstick_, options,
                          to_the_cap);
  } catch (const DeviceError& e) {
    throw MeasureFault(MeasureFailure::kKernelError, e.message());
  }
}

}  // namespace tensmith
