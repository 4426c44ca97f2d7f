/// The sequential part of recurrent operators, which their definitions are decomposed into, and what both share.
#pragma once

#include "graph/op_def.h"
#include "graph/ops/recurrent_activation.h"

namespace tensmith::graph::ops {

enum class CellKind : uint8_t { kRnn, kGru, kLstm };

/// A recurrent layer with its attributes resolved.
struct RecurrentLayer {
  CellKind kind;
  int64_t hidden;
  int directions;
  bool reverse;  ///< the only direction runs backwards (of two directions the second one does)
  std::vector<RecurrentActivation> activations;  ///< those of all directions
  double clip;                                   ///< 0: none
  bool input_forget, linear_before_reset;

  int gates() const { return kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4; }
  bool is_backward(int direction) const { return directions == 2 ? direction == 1 : reverse; }
  /// The n-th function of a direction.
  const RecurrentActivation& activation(int direction, int n) const {
    return activations[static_cast<size_t>(direction) * (activations.size() / static_cast<size_t>(directions)) +
                       static_cast<size_t>(n)];
  }
};

/// Attributes of recurrent operators. Errors: `bad-attribute`.
Result<RecurrentLayer> recurrent_layer(CellKind kind, const AttrMap& attrs);
std::vector<AttrSpec> recurrent_attrs(CellKind kind);

/// The internal operator `Recurrence`.
struct Recurrence {
  enum Input { kInputs, kRecurrent, kHiddenBias, kLengths, kInitialH, kInitialC, kPeepholes };
};
/// The statements of all its steps. Sequences of the batch are independent, so blocks of them run in parallel.
Stmt recurrence_steps(const ComputeContext& ctx, const RecurrentLayer& layer, const std::vector<Buffer>& outputs);

/// What one step of the reference needs; all in double, [direction] outermost.
struct RecurrentWeights {
  const RefTensor* recurrent;  ///< [D, G H, H] or, when `transposed`, [D, H, G H]
  bool transposed;
  const RefTensor* hidden_bias;  ///< [D, H]: of GRU's hidden gate with linear_before_reset; null: none
  const RefTensor* lengths;      ///< [B]; null: whole sequences
  const RefTensor* initial_h;    ///< [D, B, H]; null: zeros
  const RefTensor* initial_c;
  const RefTensor* peepholes;  ///< [D, 3 H]; null: none
};
/// Runs the steps. Shapes: `inputs` [T, B, D G H] (input products with biases); results Y [T, D, B, H], Y_h and Y_c [D,
/// B, H].
void run_recurrence(const RecurrentLayer& layer, const std::vector<double>& inputs, int64_t steps, int64_t batch,
                    const RecurrentWeights& weights, RefTensor& y, RefTensor& y_h, RefTensor* y_c);

}  // namespace tensmith::graph::ops
