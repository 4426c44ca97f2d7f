#include "tests/unit/schedule/random_schedules.h"

#include <algorithm>

#include "schedule/intrinsics.h"
#include "schedule/prefetches.h"
#include "schedule/primitive_def.h"

namespace tensmith {

namespace {

// Points that all stages of one workload may compute: keeps a run within milliseconds.
constexpr int64_t kMaxPoints = 12000;
constexpr int64_t kSizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127};

Expr f32(double value) { return make_const(kFloat32, value); }
Expr inside(const Expr& i, const Expr& size) { return i >= 0 && i < size; }

/// A tensor whose sizes are known here, symbolic or not.
struct Value {
  Tensor tensor;
  std::vector<int64_t> sizes;
};

class WorkloadMaker {
 public:
  explicit WorkloadMaker(Rng& rng) : rng_(rng) {}

  SizedWorkload make() {
    if (rng_.chance(0.08)) return product_of_bytes();
    const int rank = static_cast<int>(rng_.between(1, 3));
    std::vector<int64_t> sizes;
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) {
      int64_t size = pick(kSizes, rng_);
      while (count * size > 1500) size = pick(kSizes, rng_);
      count *= size;
      sizes.push_back(size);
    }
    symbolic_ = rng_.chance(0.25);
    std::vector<Expr> shape;
    for (int64_t size : sizes) shape.push_back(extent(size));
    values_.push_back(input(shape, sizes));
    const int stages = static_cast<int>(rng_.between(1, 5));
    for (int k = 0; k < stages && points_ < kMaxPoints; ++k) add_stage();
    std::vector<Tensor> outputs = outputs_of(values_.back());
    // Another stage as an output beside the last one; it may be read by others.
    if (rng_.chance(0.25)) {
      const Value& other = pick(values_, rng_);
      const bool taken = std::any_of(outputs.begin(), outputs.end(),
                                     [&](const Tensor& t) { return t.stage().same_as(other.tensor.stage()); });
      if (!taken && other.tensor.stage()->stage_kind == StageKind::kCompute) outputs.push_back(other.tensor);
    }
    Workload workload = make_workload("random", inputs_, outputs);
    std::vector<int64_t> dims;
    for (const Var& dim : workload.dims) {
      const auto known =
          std::find_if(dims_.begin(), dims_.end(), [&](const auto& pair) { return pair.first.get() == dim.get(); });
      TS_CHECK(known != dims_.end());
      dims.push_back(known->second);
    }
    return {std::move(workload), std::move(dims)};
  }

 private:
  /// What tensorize takes: sums of four products of bytes, and what follows from them.
  SizedWorkload product_of_bytes() {
    const int64_t rows = rng_.between(1, 5), columns = pick(kSizes, rng_);
    const Tensor a = placeholder("A", {rows, 4}, rng_.chance(0.5) ? kInt8 : kUInt8);
    const Tensor b = placeholder("B", {columns, 4}, kInt8, rng_.chance(0.5));
    const Tensor dots = sum("C", {rows, columns}, {4}, [&](const Indices& i, const Indices& k) {
      return cast(kInt32, a(i[0], k[0])) * cast(kInt32, b(i[1], k[0]));
    });
    const Tensor out = compute("D", dots.shape(), [&](const Indices& i) { return dots(i) * 3 + cast(kInt32, i[1]); });
    return {make_workload("bytes", {a, b}, {rng_.chance(0.5) ? out : dots}), {}};
  }

  std::string name(const char* base) { return base + std::to_string(next_++); }

  Expr extent(int64_t size) {
    if (!symbolic_) return size;
    for (const auto& [var, value] : dims_)
      if (value == size) return var;
    if (!dims_.empty() || rng_.chance(0.5)) return size;
    dims_.emplace_back(Var("N"), size);
    return dims_.back().first;
  }

  Value input(const std::vector<Expr>& shape, const std::vector<int64_t>& sizes) {
    inputs_.push_back(placeholder(name("in"), shape, kFloat32, rng_.chance(0.3)));
    return {inputs_.back(), sizes};
  }

  static std::vector<Tensor> outputs_of(const Value& value) {
    std::vector<Tensor> all;
    for (size_t o = 0; o < value.tensor.stage()->outputs.size(); ++o)
      all.emplace_back(value.tensor.stage(), static_cast<int>(o));
    return all;
  }

  void add(Tensor tensor, std::vector<int64_t> sizes, int64_t reduced = 1) {
    int64_t count = reduced;
    for (int64_t size : sizes) count *= size;
    points_ += count;
    values_.push_back({std::move(tensor), std::move(sizes)});
  }

  /// Mostly the newest value, so that stages form chains.
  Value source() { return rng_.chance(0.65) ? values_.back() : pick(values_, rng_); }

  void add_stage() {
    const Value in = source();
    switch (rng_.below(10)) {
      case 0: return elementwise(in);
      case 1: return combine(in);
      case 2: return stencil(in);
      case 3: return moved_read(in);
      case 4: return reduction(in);
      case 5: return product(in);
      case 6: return convolution(in);
      case 7: return two_outputs(in);
      case 8: return pair_reduction(in);
      default: return broadcast(in);
    }
  }

  void elementwise(const Value& in) {
    const Tensor t = in.tensor;
    const uint64_t kind = rng_.below(4);
    add(compute(name("e"), t.shape(),
                [&](const Indices& i) {
                  const Expr x = t(i);
                  switch (kind) {
                    case 0: return max(x, f32(0.25)) * f32(0.5);
                    case 1: return select(floor_mod(i[0], Expr(3)) == 1, x + f32(1), f32(0.5) - x);
                    case 2: return call(Intrinsic::kAbs, {x}) + cast(kFloat32, i.back()) * f32(0.0625);
                    default: return x * f32(0.75) + f32(0.125);
                  }
                }),
        in.sizes);
  }

  void combine(const Value& in) {
    std::vector<Value> same;
    for (const Value& v : values_)
      if (v.sizes == in.sizes) same.push_back(v);
    const Tensor a = in.tensor, b = pick(same, rng_).tensor;
    if (b.dtype() != kFloat32) return;
    add(compute(name("c"), a.shape(), [&](const Indices& i) { return a(i) * f32(0.5) - b(i); }), in.sizes);
  }

  void stencil(const Value& in) {
    const auto dim = static_cast<size_t>(rng_.below(in.sizes.size()));
    const int64_t taps = rng_.between(2, 3);
    if (in.sizes[dim] < taps + 1) return elementwise(in);
    const Tensor t = in.tensor;
    std::vector<Expr> shape = t.shape();
    std::vector<int64_t> sizes = in.sizes;
    sizes[dim] -= taps - 1;
    shape[dim] = shape[dim] - (taps - 1);
    // A symbolic extent must stay positive for every value of the dim, which an extent minus a constant does not.
    int64_t known;
    if (!as_const_int(shape[dim], &known)) return elementwise(in);
    add(compute(name("s"), shape,
                [&](const Indices& i) {
                  Expr sum = t(i);
                  for (int64_t k = 1; k < taps; ++k) {
                    Indices at = i;
                    at[dim] = at[dim] + k;
                    sum = sum + t(at) * f32(0.5);
                  }
                  return sum;
                }),
        sizes);
  }

  void moved_read(const Value& in) {
    const Tensor t = in.tensor;
    const auto dim = static_cast<size_t>(rng_.below(in.sizes.size()));
    std::vector<Expr> shape = t.shape();
    std::vector<int64_t> sizes = in.sizes;
    switch (rng_.below(4)) {
      case 0:  // padded
        shape[dim] = shape[dim] + 3;
        sizes[dim] += 3;
        add(compute(name("pad"), shape,
                    [&](const Indices& i) {
                      Indices at = i;
                      at[dim] = i[dim] - 1;
                      return select(inside(at[dim], t.shape()[dim]), t(at), f32(0));
                    }),
            sizes);
        return;
      case 1:  // reversed
        add(compute(name("rev"), shape,
                    [&](const Indices& i) {
                      Indices at = i;
                      at[dim] = t.shape()[dim] - 1 - i[dim];
                      return t(at);
                    }),
            sizes);
        return;
      case 2:  // repeated
        if (points_ > kMaxPoints / 4) return;
        shape[dim] = shape[dim] * 2;
        sizes[dim] *= 2;
        add(compute(name("up"), shape,
                    [&](const Indices& i) {
                      Indices at = i;
                      at[dim] = floor_div(i[dim], Expr(2));
                      return t(at) + f32(0.5);
                    }),
            sizes);
        return;
      default:  // transposed
        std::reverse(shape.begin(), shape.end());
        std::reverse(sizes.begin(), sizes.end());
        add(compute(name("tr"), shape, [&](const Indices& i) { return t(Indices(i.rbegin(), i.rend())); }), sizes);
    }
  }

  void reduction(const Value& in) {
    const Tensor t = in.tensor;
    const bool all = in.sizes.size() == 1;
    const auto dim = static_cast<size_t>(rng_.below(in.sizes.size()));
    // A vector is reduced to one element, which is a tensor of rank 1 here.
    std::vector<Expr> shape = t.shape(), extents = {t.shape()[dim]};
    std::vector<int64_t> sizes = in.sizes;
    if (all) shape[0] = Expr(1), sizes[0] = 1;
    else shape.erase(shape.begin() + static_cast<int>(dim)), sizes.erase(sizes.begin() + static_cast<int>(dim));
    const auto at = [&](const Indices& i, const Indices& r) {
      if (all) return Indices{r[0]};
      Indices index = i;
      index.insert(index.begin() + static_cast<int>(dim), r[0]);
      return index;
    };
    const uint64_t kind = rng_.below(4);
    Reduction reduction{extents,
                        [&](const Indices& i, const Indices& r) {
                          return std::vector<Expr>{kind == 3 ? t(at(i, r)) * f32(0.5) + f32(0.75) : t(at(i, r))};
                        },
                        kind == 0   ? max_reducer(kFloat32)
                        : kind == 1 ? min_reducer(kFloat32)
                                    : sum_reducer(kFloat32)};
    switch (rng_.below(4)) {
      case 0: reduction.where = [](const Indices& i, const Indices& r) { return r[0] <= i[0]; }; break;
      case 1:
        reduction.where = [](const Indices& i, const Indices& r) { return floor_mod(r[0] + i[0], Expr(2)) == 0; };
        break;
      default: break;
    }
    if (rng_.chance(0.4)) {
      const Value start = rng_.chance(0.5) ? input(shape, sizes) : Value{};
      reduction.initial = [start](const Indices& i) {
        return std::vector<Expr>{start.tensor ? start.tensor(i) : cast(kFloat32, i[0]) * f32(0.125)};
      };
    }
    add(reduce_multi(name("r"), shape, reduction)[0], sizes, in.sizes[dim]);
    if (!rng_.chance(0.4)) return;
    // What a sum or maximum may begin with instead.
    const Value result = values_.back();
    add(compute(name("b"), result.tensor.shape(),
                [&](const Indices& i) {
                  const Expr x = result.tensor(i), term = cast(kFloat32, i.back()) * f32(0.0625);
                  return kind == 0 ? max(x, term) : kind == 1 ? min(x, term) : x + term;
                }),
        result.sizes);
  }

  void product(const Value& in) {
    const Tensor t = in.tensor;
    const int64_t n = pick(kSizes, rng_);
    int64_t count = n;
    for (int64_t size : in.sizes) count *= size;
    if (count > kMaxPoints) return reduction(in);
    const Value weights = input({t.shape().back(), n}, {in.sizes.back(), n});
    std::vector<Expr> shape = t.shape();
    shape.back() = weights.tensor.shape()[1];
    std::vector<int64_t> sizes = in.sizes;
    sizes.back() = n;
    add(sum(name("mm"), shape, {t.shape().back()},
            [&](const Indices& i, const Indices& r) {
              Indices at = i;
              at.back() = r[0];
              return t(at) * weights.tensor(r[0], i.back());
            }),
        sizes, in.sizes.back());
  }

  void convolution(const Value& in) {
    const Tensor t = in.tensor;
    const auto dim = static_cast<size_t>(rng_.below(in.sizes.size()));
    const int64_t stride = rng_.between(1, 2), kernel = 3;
    const Value filter = input({kernel}, {kernel});
    std::vector<Expr> shape = t.shape();
    std::vector<int64_t> sizes = in.sizes;
    sizes[dim] = (sizes[dim] - 1) / stride + 1;
    shape[dim] = stride == 1 ? shape[dim] : ceil_div(shape[dim], Expr(stride));
    const auto row = [&](const Indices& i, const Indices& r) { return i[dim] * stride + r[0] - 1; };
    add(reduce(
            name("cv"), shape, {Expr(kernel)}, sum_reducer(kFloat32),
            [&](const Indices& i, const Indices& r) {
              Indices at = i;
              at[dim] = row(i, r);
              return t(at) * filter.tensor(r[0]);
            },
            [&](const Indices& i, const Indices& r) { return inside(row(i, r), t.shape()[dim]); }),
        sizes, kernel);
  }

  void two_outputs(const Value& in) {
    const Tensor t = in.tensor;
    const std::vector<Tensor> both = compute_multi(name("two"), t.shape(), [&](const Indices& i) {
      return std::vector<Expr>{t(i) + f32(1), t(i) * f32(2)};
    });
    add(pick(both, rng_), in.sizes);
  }

  void pair_reduction(const Value& in) {
    const Tensor t = in.tensor;
    if (in.sizes.size() == 1) return reduction(in);
    std::vector<Expr> shape(t.shape().begin(), t.shape().end() - 1);
    std::vector<int64_t> sizes(in.sizes.begin(), in.sizes.end() - 1);
    const auto at = [](Indices i, const Indices& r) {
      i.push_back(r[0]);
      return i;
    };
    if (rng_.chance(0.5)) {
      const auto body = [&](const Indices& i, const Indices& r) { return std::vector<Expr>{t(at(i, r)), r[0]}; };
      const std::vector<Tensor> best = reduce_multi(
          name("best"), shape, {{t.shape().back()}, body, arg_max_reducer(kFloat32, kInt64, rng_.chance(0.5))});
      return add(best[0], sizes, in.sizes.back());
    }
    const Var a("a", kFloat32), b("b", kFloat32), c("c", kFloat32), d("d", kFloat32);
    const Reducer pair{"pair_sum", {a, b}, {c, d}, {Expr(a) + Expr(c), Expr(b) + Expr(d)}, {f32(0), f32(0)}};
    const auto body = [&](const Indices& i, const Indices& r) {
      return std::vector<Expr>{t(at(i, r)), t(at(i, r)) * t(at(i, r))};
    };
    const std::vector<Tensor> sums = reduce_multi(name("pair"), shape, {{t.shape().back()}, body, pair});
    add(pick(sums, rng_), sizes, in.sizes.back());
  }

  void broadcast(const Value& in) {
    // With another value of smaller rank along the first dims: what a normalisation does with its row statistics.
    std::vector<Value> fits;
    for (const Value& v : values_)
      if (v.sizes.size() <= in.sizes.size() && std::equal(v.sizes.begin(), v.sizes.end(), in.sizes.begin()) &&
          v.tensor.dtype() == kFloat32)
        fits.push_back(v);
    if (fits.empty()) return elementwise(in);
    const Value& row = pick(fits, rng_);
    const Tensor t = in.tensor, s = row.tensor;
    add(compute(name("b"), t.shape(),
                [&](const Indices& i) { return t(i) - s(Indices(i.begin(), i.begin() + s.rank())) * f32(0.5); }),
        in.sizes);
  }

  Rng& rng_;
  bool symbolic_ = false;
  int next_ = 0;
  int64_t points_ = 0;
  std::vector<Tensor> inputs_;
  std::vector<Value> values_;
  std::vector<std::pair<Var, int64_t>> dims_;
};

}  // namespace

SizedWorkload random_workload(Rng& rng) { return WorkloadMaker(rng).make(); }

}  // namespace tensmith
