/// Compute definitions: what is computed, with nothing about how. A workload is a DAG of stages over tensors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensor/stmt.h"

namespace tensmith {

/// An axis of a stage: a variable that runs over [0, extent).
struct Axis {
  Var var;
  Expr extent;
};

/// How partial results of a reduction are combined: an associative, commutative operation on tuples of values.
/// `combined[i]` is an expression over `lhs` (accumulated so far) and `rhs` (next value); `identity` is neutral on both
/// sides.
struct Reducer {
  std::string name;
  std::vector<Var> lhs, rhs;
  std::vector<Expr> combined;
  std::vector<Expr> identity;
};

Reducer sum_reducer(DType dtype);
Reducer prod_reducer(DType dtype);
/// Propagates NaN; identity is the lowest (highest) value of the type.
Reducer max_reducer(DType dtype);
Reducer min_reducer(DType dtype);
/// (value, index) pairs; of equal values the first index wins, or the last one.
Reducer arg_max_reducer(DType value, DType index, bool last_index);
Reducer arg_min_reducer(DType value, DType index, bool last_index);
Reducer any_reducer();
Reducer all_reducer();

enum class StageKind : uint8_t {
  kPlaceholder,  ///< input of the workload
  kCompute,      ///< outputs[i][axes] = bodies[i], or a reduction of it over reduce_axes
  kImperative,   ///< a statement that fills the outputs (sorting, scans, scatters); not scheduled inside
};

class StageNode;
/// A stage as an object: identity counts.
using Stage = Ref<StageNode>;

/// One step of a workload. All outputs of a stage have the same axes.
class StageNode : public Shared {
 public:
  StageNode() = default;
  ~StageNode() override;
  StageKind stage_kind = StageKind::kPlaceholder;
  std::string name;
  std::vector<Buffer> outputs;     ///< logical buffers: shape in elements, indexed by the axes' logical indices
  std::vector<Axis> axes;          ///< one per dimension of the outputs
  std::vector<Axis> reduce_axes;   ///< empty: not a reduction
  std::vector<Expr> bodies;        ///< one per output; of a reduction: the value that goes into the reducer
  std::optional<Reducer> reducer;  ///< set exactly when this is a reduction (it may have no reduce axis)
  Expr where;  ///< reductions: only the points where this holds take part (null: all); e.g. padding of a convolution
  std::vector<Expr> initial;     ///< reductions: start value over the axes in place of the reducer's identity (empty:
                                 ///< identity); e.g. bias
  Stmt imperative;               ///< kImperative: reads and writes logical buffers
  std::vector<Buffer> reads;     ///< kImperative: what it reads
  std::vector<Stage> producers;  ///< the stages of all buffers that this one reads; keeps them alive
  bool is_constant = false;      ///< placeholders: content known at compile time (weights), so it may be packed
};

/// One output of a stage, as compute definitions use it: `a(i, j)` is the element as an expression.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Stage stage, int output = 0) : stage_(std::move(stage)), output_(output) {}

  const Stage& stage() const { return stage_; }
  int output() const { return output_; }
  const Buffer& buffer() const { return stage_->outputs[output_]; }
  const std::vector<Expr>& shape() const { return buffer()->shape; }
  int rank() const { return static_cast<int>(shape().size()); }
  DType dtype() const { return buffer()->dtype; }
  explicit operator bool() const { return static_cast<bool>(stage_); }

  Expr operator()(std::vector<Expr> indices) const { return load(buffer(), std::move(indices)); }
  template <typename... Index>
  Expr operator()(Index... indices) const {
    return load(buffer(), std::vector<Expr>{Expr(indices)...});
  }

 private:
  Stage stage_;
  int output_ = 0;
};

using Indices = std::vector<Expr>;  ///< in fact variables; passed as expressions for convenience

/// An input. Shapes: `shape` in elements.
Tensor placeholder(std::string name, std::vector<Expr> shape, DType dtype, bool is_constant = false);

/// `out[i...] = body(i...)` for all indices inside `shape`.
Tensor compute(std::string name, std::vector<Expr> shape, const std::function<Expr(const Indices&)>& body);
/// The same with several outputs.
std::vector<Tensor> compute_multi(std::string name, std::vector<Expr> shape,
                                  const std::function<std::vector<Expr>(const Indices&)>& body);

/// Everything that describes a reduction apart from its shape.
struct Reduction {
  std::vector<Expr> extents;                                                  ///< of the reduce axes
  std::function<std::vector<Expr>(const Indices& i, const Indices& r)> body;  ///< one value per output
  Reducer reducer;
  std::function<Expr(const Indices& i, const Indices& r)> where = nullptr;  ///< optional, see StageNode::where
  std::function<std::vector<Expr>(const Indices& i)> initial = nullptr;     ///< optional, see StageNode::initial
};
/// `out[i...] = reducer over r of body(i..., r...)`; several outputs when the reducer has several values.
std::vector<Tensor> reduce_multi(std::string name, std::vector<Expr> shape, const Reduction& reduction);
/// The common case of one output.
Tensor reduce(std::string name, std::vector<Expr> shape, std::vector<Expr> extents, const Reducer& reducer,
              const std::function<Expr(const Indices& i, const Indices& r)>& body,
              const std::function<Expr(const Indices& i, const Indices& r)>& where = nullptr);
Tensor sum(std::string name, std::vector<Expr> shape, std::vector<Expr> extents,
           const std::function<Expr(const Indices& i, const Indices& r)>& body);

/// A stage whose loops are written out: `body(outputs)` gives a statement that stores every element of the outputs and
/// loads from `inputs` (and may allocate buffers of its own).
std::vector<Tensor> imperative(std::string name, const std::vector<Tensor>& inputs,
                               const std::vector<std::vector<Expr>>& shapes, const std::vector<DType>& dtypes,
                               const std::function<Stmt(const std::vector<Buffer>& outputs)>& body);

/// A DAG of stages in topological order (inputs first), with its symbolic dims.
struct Workload {
  std::string name;
  std::vector<Stage> stages;    ///< every stage that the outputs need, producers first; placeholders included
  std::vector<Tensor> inputs;   ///< placeholders in the caller's order
  std::vector<Tensor> outputs;  ///< in the caller's order; a tensor may be an output and also be read by other stages
  std::vector<Var> dims;        ///< free variables of shapes and bodies, in order of appearance
};

/// Collects the stages behind `outputs`. Errors: InternalError when a stage reads a placeholder that is not among
/// `inputs`.
Workload make_workload(std::string name, std::vector<Tensor> inputs, std::vector<Tensor> outputs);

/// The stages that read an output of `stage`.
std::vector<Stage> consumers(const Workload& workload, const Stage& stage);
/// The stage that owns a logical buffer; null when none does.
Stage producer(const Workload& workload, const Buffer& buffer);
/// The buffers a stage reads, in order of first appearance.
std::vector<Buffer> read_buffers(const StageNode& stage);

/// The workload as plain serial loops over its logical buffers, one nest per stage, intermediate buffers allocated: the
/// meaning of the workload, which every schedule must reproduce. Buffers of the function: inputs, then outputs.
LoopFunction reference_loops(const Workload& workload);

/// Stable text of a whole workload (axes, bodies, reducers); equal texts mean equal workloads, so records are keyed by
/// it.
std::string to_text(const Workload& workload);

}  // namespace tensmith
