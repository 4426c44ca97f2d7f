#include "autotune/measure/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/rng.h"
#include "runtime/tensor.h"

namespace tensmith {

namespace {

MeasureParameter parameter_of(const Tensor& tensor, const std::vector<Layout>& layouts, size_t index) {
  MeasureParameter p;
  p.name = tensor.buffer()->name;
  p.dtype = tensor.dtype();
  for (const Expr& extent : tensor.shape()) {
    int64_t value = 0;
    TS_USER_CHECK(as_const_int(extent, &value), "task-open-dims")
        << "task: " << p.name << ": expected fixed sizes, got an open dim; give it a size";
    p.shape.push_back(value);
  }
  p.layout =
      index < layouts.size() && !layouts[index].dims().empty() ? layouts[index] : Layout::row_major(tensor.rank());
  p.is_constant = tensor.stage()->stage_kind == StageKind::kPlaceholder && tensor.stage()->is_constant;
  return p;
}

double draw_float(Rng& rng, InputSet set, const InputDraw& draw) {
  double value = 0;
  switch (set) {
    case InputSet::kRandom: value = rng.uniform(-1, 1); break;
    case InputSet::kWinner: value = 1.5 * rng.normal(); break;
    case InputSet::kEdges: {
      static constexpr double kEdges[] = {0, -0.0, 1, -1, 0.5, -0.5, 0x1p-12, -0x1p-12, 4, -4};
      value = rng.chance(0.5) ? kEdges[rng.below(std::size(kEdges))] : rng.uniform(-1, 1);
      break;
    }
  }
  if (draw.positive) value = std::fabs(value) + 0.1;
  if (draw.non_finite && set == InputSet::kWinner && rng.chance(0.02)) {
    static constexpr double kOdd[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity()};
    value = kOdd[rng.below(std::size(kOdd))];
  }
  return value;
}

int64_t draw_int(Rng& rng, InputSet set, DType dtype) {
  // Masks, indices and token types: 0 and 1 are always valid.
  if (dtype.is_bool() || dtype.bits >= 32) return static_cast<int64_t>(rng.below(2));
  const int64_t high = dtype.is_int() ? (int64_t{1} << (dtype.bits - 1)) - 1 : (int64_t{1} << dtype.bits) - 1;
  const int64_t low = dtype.is_int() ? -high - 1 : 0;
  if (set == InputSet::kEdges && rng.chance(0.5)) {
    const int64_t edges[] = {low, low + 1, 0, 1, high - 1, high};
    return edges[rng.below(std::size(edges))];
  }
  return rng.between(low, high);
}

}  // namespace

int64_t MeasureParameter::count() const {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

std::vector<MeasureParameter> input_parameters(const MeasureTask& task) {
  std::vector<MeasureParameter> list;
  for (size_t k = 0; k < task.workload.inputs.size(); ++k)
    list.push_back(parameter_of(task.workload.inputs[k], task.request.input_layouts, k));
  return list;
}

std::vector<MeasureParameter> output_parameters(const MeasureTask& task) {
  std::vector<MeasureParameter> list;
  for (size_t k = 0; k < task.workload.outputs.size(); ++k)
    list.push_back(parameter_of(task.workload.outputs[k], task.request.output_layouts, k));
  return list;
}

std::vector<uint8_t> make_input(const MeasureParameter& p, InputSet set, const InputDraw& draw) {
  Rng rng(draw.seed * 8 + static_cast<uint64_t>(set), p.name);
  std::vector<uint8_t> bytes(static_cast<size_t>(p.bytes()));
  const int64_t count = p.count();
  if (p.dtype == kFloat32) {
    for (int64_t k = 0; k < count; ++k) {
      const auto value = static_cast<float>(draw_float(rng, set, draw));
      std::memcpy(bytes.data() + 4 * k, &value, 4);
    }
    return bytes;
  }
  HostTensor view = HostTensor::view(bytes.data(), {count}, p.dtype);
  for (int64_t k = 0; k < count; ++k) {
    if (p.dtype.is_float()) view.set(k, draw_float(rng, set, draw));
    else view.set_int(k, draw_int(rng, set, p.dtype));
  }
  return bytes;
}

bool defined_for_non_finite(const Workload& workload) {
  return std::all_of(workload.stages.begin(), workload.stages.end(), [](const Stage& s) {
    return s->stage_kind == StageKind::kPlaceholder || (s->stage_kind == StageKind::kCompute && !s->reducer);
  });
}

}  // namespace tensmith
