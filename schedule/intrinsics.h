/// Intrinsics that stages can be tensorized with: each with its meaning as a small compute definition.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "tensor/workload.h"

namespace tensmith {

/// `acc[j] = reducer over k of body(operands[..][j, k])`, for j in any number of lanes up to a maximum and a fixed
/// number of k.
struct TensorIntrinsic {
  std::string name, doc;
  Intrinsic id;  ///< takes the accumulators, then one vector an operand: lanes times `reduced` elements, k first
  int64_t max_lanes = 1;
  int64_t reduced = 1;
  Stage definition;              ///< a reduction over placeholders indexed [j, k], with max_lanes lanes
  std::vector<Buffer> operands;  ///< the placeholders' buffers, in the order of the intrinsic's arguments
};

/// All that there are, alphabetical.
std::span<const TensorIntrinsic> tensor_intrinsics();
/// Null when unknown.
const TensorIntrinsic* find_tensor_intrinsic(const std::string& name);

/// What stands for the intrinsic's operands in a stage: a load each, as the stage's body writes it.
struct IntrinsicMatch {
  std::vector<Expr> operands;
};
/// Whether each point of the stage computes what each point of the intrinsic does: the same reducer, no condition, and
/// a body of the same form with some load of the same type in place of each operand. Which loops make up the lanes
/// and the reduction is not looked at. Errors: tensorize-mismatch, saying what differs.
Result<IntrinsicMatch> match_intrinsic(const TensorIntrinsic& intrinsic, const StageNode& stage);

}  // namespace tensmith
