/// Shapes and loops of reductions along axes.
#pragma once

#include "graph/op_def.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// Which axes of a tensor are reduced, and what remains.
struct ReducedShape {
  std::vector<bool> reduced;  ///< one per axis of the input
  bool keep_dims = true;      ///< reduced axes stay with extent 1
  Shape out;
  Shape extents;  ///< of the reduced axes, in order

  ReducedShape(const Shape& in, const std::vector<int>& axes, bool keep_dims);
  /// The index into the input for an output index and one index per reduced axis.
  Indices input_index(const Indices& i, const Indices& r) const;
  /// The index into the output that an input index falls on.
  Indices output_index(const Indices& in) const;
  /// How many elements fall on one output element.
  Expr count() const { return product(extents); }
};

/// Strides of the output as the input is walked in row-major order: 0 along reduced axes.
Dims reduced_strides(const Dims& in, const std::vector<bool>& reduced);

/// A reduction of `x` along `shape.extents`, of values in their compute type.
Tensor reduce_axes(const std::string& name, const ReducedShape& shape, const Reducer& reducer,
                   const std::function<Expr(const Indices& in)>& body);
/// The sum of `body` over the reduced axes.
Tensor sum_axes(const std::string& name, const ReducedShape& shape, const std::function<Expr(const Indices& in)>& body);
/// The mean of `body` over the reduced axes: a sum, then a stage that divides.
Tensor mean_axes(const std::string& name, const ReducedShape& shape,
                 const std::function<Expr(const Indices& in)>& body);

/// All axes from `first` to the last one.
std::vector<int> axes_from(int first, int rank);

}  // namespace tensmith::graph::ops
