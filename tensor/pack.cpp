#include "tensor/pack.h"

#include <cstring>

namespace tensmith {

namespace {

/// One physical dimension while walking: how far it moves in the source.
struct Step {
  int64_t extent = 1;
  int dim = 0;
  int64_t factor = 1;  ///< of the logical index
};

struct Walk {
  const uint8_t* source;
  uint8_t* out;
  int64_t element;
  std::vector<Step> steps;
  std::vector<int64_t> shape, strides, before;

  void run(size_t level, std::vector<int64_t>& index) {
    if (level == steps.size()) {
      write(index);
      return;
    }
    const Step& step = steps[level];
    if (level + 1 == steps.size()) {
      row(step, index);
      return;
    }
    const int64_t start = index[step.dim];
    for (int64_t k = 0; k < step.extent; ++k) {
      index[step.dim] = start + k * step.factor;
      run(level + 1, index);
    }
    index[step.dim] = start;
  }

  int64_t offset(const std::vector<int64_t>& index) const {
    int64_t flat = 0;
    for (size_t d = 0; d < index.size(); ++d) flat += (index[d] - before[d]) * strides[d];
    return flat * element;
  }

  bool inside(const std::vector<int64_t>& index, int except) const {
    for (size_t d = 0; d < index.size(); ++d)
      if (static_cast<int>(d) != except && (index[d] < before[d] || index[d] >= before[d] + shape[d])) return false;
    return true;
  }

  void write(const std::vector<int64_t>& index) {
    if (inside(index, -1)) std::memcpy(out, source + offset(index), element);
    out += element;
  }

  /// The innermost dimension: a strided copy of the part that is inside.
  void row(const Step& step, std::vector<int64_t>& index) {
    const int d = step.dim;
    if (inside(index, d)) {
      int64_t first = 0, last = step.extent;
      while (first < last && index[d] + first * step.factor < before[d]) ++first;
      while (last > first && index[d] + (last - 1) * step.factor >= before[d] + shape[d]) --last;
      const int64_t start = offset(index) + first * step.factor * strides[d] * element;
      const int64_t stride = step.factor * strides[d] * element;
      uint8_t* to = out + first * element;
      if (stride == element) {
        std::memcpy(to, source + start, (last - first) * element);
      } else if (element == 4) {
        for (int64_t k = first; k < last; ++k, to += 4) std::memcpy(to, source + start + (k - first) * stride, 4);
      } else {
        for (int64_t k = first; k < last; ++k, to += element)
          std::memcpy(to, source + start + (k - first) * stride, element);
      }
    }
    out += step.extent * element;
  }
};

}  // namespace

int64_t packed_bytes(const std::vector<int64_t>& shape, DType dtype, const Layout& layout) {
  int64_t bytes = dtype.bytes();
  for (int64_t extent : layout.dims().empty() ? shape : layout.physical_shape(shape)) bytes *= extent;
  return bytes;
}

void pack(const uint8_t* data, const std::vector<int64_t>& shape, DType dtype, const Layout& layout, uint8_t* out) {
  if (layout.dims().empty() || layout.is_row_major()) {
    std::memcpy(out, data, static_cast<size_t>(packed_bytes(shape, dtype, Layout())));
    return;
  }
  Walk walk{data, out, dtype.bytes(), {}, shape, {}, layout.pad_before()};
  walk.strides.resize(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    walk.strides[d] = stride;
    stride *= shape[d];
  }
  const std::vector<int64_t> physical = layout.physical_shape(shape);
  for (size_t k = 0; k < physical.size(); ++k)
    walk.steps.push_back({physical[k], layout.dims()[k].dim, layout.dims()[k].div});
  std::memset(out, 0, static_cast<size_t>(packed_bytes(shape, dtype, layout)));
  std::vector<int64_t> index(shape.size());
  walk.run(0, index);
}

void unpack(const uint8_t* data, const Layout& layout, DType dtype, const std::vector<int64_t>& shape, uint8_t* out) {
  const int64_t element = dtype.bytes();
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  if (layout.dims().empty() || layout.is_row_major()) {
    std::memcpy(out, data, static_cast<size_t>(count * element));
    return;
  }
  // Every physical dimension depends on one logical index, so offsets add up from a table for each.
  const std::vector<int64_t> physical = layout.physical_shape(shape);
  std::vector<std::vector<int64_t>> offsets(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) offsets[d].assign(static_cast<size_t>(shape[d]), 0);
  int64_t stride = element;
  for (size_t k = physical.size(); k-- > 0;) {
    const LayoutDim& dim = layout.dims()[k];
    std::vector<int64_t>& table = offsets[static_cast<size_t>(dim.dim)];
    for (size_t index = 0; index < table.size(); ++index) {
      const int64_t part = (static_cast<int64_t>(index) + layout.pad_before()[static_cast<size_t>(dim.dim)]) / dim.div;
      table[index] += stride * (dim.mod ? part % dim.mod : part);
    }
    stride *= physical[k];
  }
  std::vector<size_t> index(shape.size(), 0);
  for (int64_t n = 0; n < count; ++n, out += element) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += offsets[d][index[d]];
    std::memcpy(out, data + at, static_cast<size_t>(element));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < offsets[d].size()) break;
      index[d] = 0;
    }
  }
}

}  // namespace tensmith
