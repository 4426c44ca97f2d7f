/// How the elements of a logical tensor lie in memory: blocks, permutations, halos. Layouts never change what is
/// computed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "tensor/expr.h"

namespace tensmith {

/// One physical dimension: `((index[dim] + pad_before[dim]) / div) % mod`; mod 0 means no remainder is taken.
struct LayoutDim {
  int dim = 0;
  int64_t div = 1;
  int64_t mod = 0;
  friend bool operator==(const LayoutDim&, const LayoutDim&) = default;
};

/// A mapping from logical indices to the indices of a dense row-major physical buffer. The default is the logical order
/// itself. Where a block size does not divide an extent, the physical buffer is padded; what the padding holds is
/// undefined unless the writer says otherwise.
class Layout {
 public:
  Layout() = default;
  /// Text form: physical dims separated by commas, each `d`, `d/f`, `d%f` or `d/f%m` over logical dim numbers, then
  /// optionally
  /// `;halo d:before+after` per padded dim: `0,1/16,2,3,1%16;halo 2:1+1`.
  static Result<Layout> parse(std::string_view text, int rank);
  static Layout row_major(int rank);
  /// A permutation: physical dim k is logical dim order[k].
  static Layout permuted(const std::vector<int>& order);
  /// A permutation whose dim `dim` is split: `dim / block` stands at its place in `order`, `dim % block` becomes the
  /// last dim.
  static Layout blocked(const std::vector<int>& order, int dim, int64_t block);

  Layout(std::vector<LayoutDim> dims, std::vector<int64_t> before, std::vector<int64_t> after);

  int rank() const { return static_cast<int>(before_.size()); }
  const std::vector<LayoutDim>& dims() const { return dims_; }
  const std::vector<int64_t>& pad_before() const { return before_; }
  const std::vector<int64_t>& pad_after() const { return after_; }
  bool is_row_major() const;
  std::string text() const;

  /// Shapes: logical extents in, physical extents out.
  std::vector<Expr> physical_shape(const std::vector<Expr>& shape) const;
  std::vector<Expr> physical_index(const std::vector<Expr>& index) const;
  /// The same with numbers; for packing constants.
  std::vector<int64_t> physical_shape(const std::vector<int64_t>& shape) const;
  std::vector<int64_t> physical_index(const std::vector<int64_t>& index) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<LayoutDim> dims_;
  std::vector<int64_t> before_, after_;
};

}  // namespace tensmith
