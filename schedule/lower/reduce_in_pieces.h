/// Sums of sums: a long reduction goes into a fresh accumulator for each piece of its steps.
#pragma once

#include "tensor/workload.h"

namespace tensmith {

/// The key of a reduction loop's attribute: iterations of a piece.
inline constexpr const char* kPieceKey = "piece";

/// Cuts the loop `main`, which reduces into `target`, into pieces of `piece` iterations. Each starts from the neutral
/// element and is combined with the results of those before it: the rounding error of a sum of n numbers grows with
/// sqrt(n / piece) + sqrt(piece) in place of sqrt(n). `start` is the nest that stores the start values; copies of it
/// with other values do the rest. The totals lie beside the accumulators, in the same scope.
/// Gives: start and loop in one; null where `main` is no serial loop of a constant extent that pieces divide.
Stmt reduce_in_pieces(const Stmt& start, const Stmt& main, const Buffer& target, const Reducer& reducer, int64_t piece);

}  // namespace tensmith
