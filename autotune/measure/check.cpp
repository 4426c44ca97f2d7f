#include "autotune/measure/check.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <unordered_set>

#include "runtime/tensor.h"

namespace tensmith {

namespace {

double epsilon(DType dtype) {
  if (dtype.is_bfloat()) return 0x1p-8;
  return dtype.bits == 16 ? 0x1p-11 : dtype.bits == 32 ? 0x1p-24 : 0x1p-53;
}

/// The stages behind an output, itself among them.
std::vector<const StageNode*> cone_of(const Stage& root) {
  std::vector<const StageNode*> cone, open = {root.get()};
  std::unordered_set<const StageNode*> seen = {root.get()};
  while (!open.empty()) {
    const StageNode* stage = open.back();
    open.pop_back();
    cone.push_back(stage);
    for (const Stage& producer : stage->producers)
      if (seen.insert(producer.get()).second) open.push_back(producer.get());
  }
  return cone;
}

struct Differences {
  int64_t count = 0;
  int64_t worst = -1;
  double worst_excess = -1;

  void add(int64_t index, double excess) {
    ++count;
    if (excess <= worst_excess) return;
    worst = index;
    worst_excess = excess;
  }
};

/// `read(data, k)` gives an element as a double.
template <typename Read>
Differences float_differences(int64_t count, const Read& got, const Read& expected, double relative) {
  double squares = 0;
  int64_t finite = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double value = expected(k);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++finite;
  }
  const double scale = finite ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  Differences found;
  for (int64_t k = 0; k < count; ++k) {
    const double a = got(k), b = expected(k);
    const double limit = relative * std::max(std::fabs(b), scale);
    if (std::isfinite(b) && std::fabs(a - b) <= limit) continue;
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double excess = std::fabs(a - b) / std::max(limit, std::numeric_limits<double>::min());
    found.add(k, std::isnan(excess) ? HUGE_VAL : excess);
  }
  return found;
}

}  // namespace

OutputTolerance output_tolerance(const Workload& workload, size_t output) {
  double length = 0, narrow_length = 0, coarsest = 0;
  int float_stages = 0;
  for (const StageNode* stage : cone_of(workload.outputs[output].stage())) {
    double own = stage->reduce_axes.empty() ? 0 : 1;
    for (const Axis& axis : stage->reduce_axes) {
      int64_t extent = 1;
      own *= as_const_int(axis.extent, &extent) ? static_cast<double>(extent) : 1;
    }
    for (const Buffer& buffer : stage->outputs) {
      if (!buffer->dtype.is_float()) continue;
      float_stages += stage->stage_kind != StageKind::kPlaceholder;
      if (stage->stage_kind == StageKind::kImperative) own = std::max(own, 64.0);
      coarsest = std::max(coarsest, epsilon(buffer->dtype));
      length += own;
      if (buffer->dtype.bits <= 16) narrow_length += own;
    }
  }
  OutputTolerance tolerance;
  const DType dtype = workload.outputs[output].dtype();
  if (!dtype.is_float()) {
    tolerance.differing = float_stages > 0 ? 0.005 : 0;
    return tolerance;
  }
  const double fine = std::min(epsilon(kFloat32), coarsest > 0 ? coarsest : epsilon(dtype));
  tolerance.relative = std::min(coarsest, 0x1p-8) * 8 + fine * (32 + 8 * std::sqrt(length));
  if (narrow_length > 0) tolerance.relative += coarsest * 4 * std::sqrt(narrow_length);
  return tolerance;
}

std::string compare_outputs(const uint8_t* got, const uint8_t* expected, DType dtype, int64_t count,
                            const OutputTolerance& tolerance) {
  Differences found;
  int64_t allowed = 0;
  // Views do not write.
  HostTensor a = HostTensor::view(const_cast<uint8_t*>(got), {count}, dtype),
             b = HostTensor::view(const_cast<uint8_t*>(expected), {count}, dtype);
  if (dtype == kFloat32) {
    struct Read {
      const uint8_t* data;
      double operator()(int64_t k) const {
        float value;
        std::memcpy(&value, data + 4 * k, 4);
        return static_cast<double>(value);
      }
    };
    found = float_differences(count, Read{got}, Read{expected}, tolerance.relative);
  } else if (dtype.is_float()) {
    struct Read {
      const HostTensor* tensor;
      double operator()(int64_t k) const { return tensor->get(k); }
    };
    found = float_differences(count, Read{&a}, Read{&b}, tolerance.relative);
  } else if (std::memcmp(got, expected, static_cast<size_t>(count * dtype.bytes())) != 0) {
    allowed = static_cast<int64_t>(tolerance.differing * static_cast<double>(count));
    for (int64_t k = 0; k < count; ++k)
      if (a.get_int(k) != b.get_int(k)) found.add(k, std::fabs(a.get(k) - b.get(k)));
  }
  if (found.count <= allowed) return {};
  std::ostringstream text;
  text.precision(9);
  text << found.count << " of " << count << " elements differ, most of all [" << found.worst << "]: expected ";
  if (dtype.is_float()) text << b.get(found.worst) << ", got " << a.get(found.worst);
  else text << b.get_int(found.worst) << ", got " << a.get_int(found.worst);
  return text.str();
}

double non_finite_share(const uint8_t* data, DType dtype, int64_t count) {
  if (!dtype.is_float() || count == 0) return 0;
  const HostTensor view = HostTensor::view(const_cast<uint8_t*>(data), {count}, dtype);
  int64_t bad = 0;
  for (int64_t k = 0; k < count; ++k) bad += !std::isfinite(view.get(k));
  return static_cast<double>(bad) / static_cast<double>(count);
}

}  // namespace tensmith
