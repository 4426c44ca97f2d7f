/// Ways to find the k best elements of each row.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// What is searched: rows along an axis of a tensor, and how many elements of each are wanted.
struct TopKRows {
  const Tensor& x;
  int axis;
  Expr k;
  bool largest;
};

/// Whether value `a` comes before `b`, vectors lane by lane. NaN counts as larger than all numbers, as in numpy's
/// order.
Expr comes_before(const Expr& a, const Expr& b, bool largest);

/// Values and indices of shape `shape`, best first, of equal ones the first; by a heap of the best so far.
/// Cost: one comparison for most elements, some 10 log(k) ns for those that enter, 45 k log(k) ns for the order.
std::vector<Tensor> top_k_by_heap(const TopKRows& rows, const std::vector<Expr>& shape);
/// The same by sorting whole rows, whose length must be a number.
/// Cost: some 3 n log(n) ns.
std::vector<Tensor> top_k_by_sorting(const TopKRows& rows, const std::vector<Expr>& shape);
/// The cheaper of both.
std::vector<Tensor> best_of_rows(const TopKRows& rows, const std::vector<Expr>& shape);

}  // namespace tensmith::graph::ops
