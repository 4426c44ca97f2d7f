/// The index expression of a reshape.
#pragma once

#include "graph/op_def.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// The index into a tensor of shape `from` that holds the same flat element as index `i` of a tensor of shape `to`.
/// Both shapes are taken apart into the smallest groups of adjacent dims with equal products: a group of one dim on
/// each side is passed on as it is, a merge needs multiplications only, a split divisions by its inner dims only.
Indices reshape_index(const Shape& from, const Shape& to, const Indices& i);
/// The tensor with another shape of as many elements.
Tensor reshaped(const std::string& name, const Tensor& tensor, const Shape& to);

}  // namespace tensmith::graph::ops
