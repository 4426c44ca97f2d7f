#include "autotune/cost_model/footprint.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tensmith {

namespace {

struct Dimension {
  double stride, count;
};

/// How many units of that size the pieces lie in. A piece starts anywhere, so it touches a part of a unit more.
double units_of(double span, const Dimension* pieces, int count, double unit) {
  double units = std::max(1.0, span / unit);
  double reach = span;
  for (int k = 0; k < count; ++k) {
    const double all = pieces[k].stride * (pieces[k].count - 1) + reach;
    units = pieces[k].stride < unit ? std::max(units, std::max(1.0, all / unit)) : units * pieces[k].count;
    reach = all;
  }
  return units;
}

}  // namespace

Footprint footprint_of(const LoopTree& tree, const TreeAccess& access, const std::vector<int>& path, size_t first,
                       const Target& target) {
  const TreeBuffer& buffer = tree.buffers[static_cast<size_t>(access.buffer)];
  const auto element = static_cast<double>(buffer.element_bytes), line = static_cast<double>(target.line_bytes),
             page = static_cast<double>(target.page_bytes);
  std::array<Dimension, 64> dims{};
  int rank = 0;
  double accesses = 1;
  Footprint out;
  out.low = out.high = access.offset * element;
  for (size_t d = first; d < path.size() && d < access.strides.size(); ++d) {
    const double count = tree.loops[path[d]].run, stride = access.strides[d] * element;
    accesses *= std::max(1.0, count);
    if (stride == 0 || count <= 1) continue;
    (stride < 0 ? out.low : out.high) += stride * (count - 1);
    dims[rank++] = {std::abs(stride), count};
  }
  out.high += element;
  if (access.is_opaque) {
    out.bytes = std::min(buffer.bytes, accesses * element);
    out.lines = std::min(std::max(1.0, buffer.bytes / line), accesses);
    out.pages = std::min(std::max(1.0, buffer.bytes / page), accesses);
    out.low = 0;
    out.high = buffer.bytes;
    return out;
  }
  std::sort(dims.begin(), dims.begin() + rank,
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::array<Dimension, 64> pieces{};
  int count = 0;
  double span = element;
  for (int k = 0; k < rank; ++k) {
    const Dimension& d = dims[k];
    if (count == 0 && d.stride <= span) {
      span += d.stride * (d.count - 1);
    } else if (count > 0 && d.stride < pieces[count - 1].stride * pieces[count - 1].count) {
      // Windows that overlap: rows of an image under a filter that moves on by rows.
      pieces[count - 1].count += std::floor(d.stride / pieces[count - 1].stride * (d.count - 1));
    } else {
      pieces[count++] = d;
    }
  }
  out.bytes = span;
  for (int k = 0; k < count; ++k) {
    out.bytes *= pieces[k].count;
    out.pieces *= pieces[k].count;
  }
  if (count > 0) out.piece_stride = pieces[count - 1].stride;
  out.bytes = std::min(out.bytes, buffer.bytes);
  out.lines = std::min(units_of(span, pieces.data(), count, line), std::max(1.0, buffer.bytes / line));
  out.pages = std::min(units_of(span, pieces.data(), count, page), std::max(1.0, buffer.bytes / page));
  return out;
}

std::vector<double> working_sets(const LoopTree& tree, const Target& target) {
  struct Part {
    int loop, buffer;
    double low, high, bytes;
  };
  std::vector<Part> parts;
  const auto line = static_cast<double>(target.line_bytes);
  for (const TreeStore& store : tree.stores) {
    const std::vector<int> path = tree.path(store.loop);
    for (const TreeAccess& access : store.accesses) {
      const TreeBuffer& buffer = tree.buffers[static_cast<size_t>(access.buffer)];
      if (buffer.scope == Scope::kRegister || access.is_prefetch) continue;
      for (size_t d = 0; d < path.size(); ++d) {
        const Footprint f = footprint_of(tree, access, path, d + 1, target);
        parts.push_back({path[d], access.buffer, f.low, f.high, std::max(f.bytes, f.lines * line)});
      }
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.loop, a.buffer, a.low, a.high, a.bytes) < std::tie(b.loop, b.buffer, b.low, b.high, b.bytes);
  });
  std::vector<double> sets(tree.loops.size(), 0);
  for (size_t k = 0; k < parts.size();) {
    // Accesses whose stretches overlap by half and more are taken to touch the same bytes.
    const int loop = parts[k].loop, buffer = parts[k].buffer;
    double total = 0;
    while (k < parts.size() && parts[k].loop == loop && parts[k].buffer == buffer) {
      double high = parts[k].high, bytes = parts[k].bytes;
      size_t next = k + 1;
      for (; next < parts.size() && parts[next].loop == loop && parts[next].buffer == buffer; ++next) {
        const Part& other = parts[next];
        if (std::min(high, other.high) - other.low < 0.5 * (other.high - other.low)) break;
        high = std::max(high, other.high);
        bytes = std::max(bytes, other.bytes);
      }
      total += bytes;
      k = next;
    }
    const double all = std::max(tree.buffers[static_cast<size_t>(buffer)].bytes, line);
    sets[static_cast<size_t>(loop)] += std::min(total, all);
  }
  return sets;
}

}  // namespace tensmith
