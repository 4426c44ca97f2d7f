#include <algorithm>
#include <map>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

/// An equation taken apart. Labels are letters; the dims of an ellipsis are labels below 'A' (numbered from the back).
struct Equation {
  std::vector<std::string> operands;  ///< one label a dim
  std::string output;
};

constexpr char kEllipsisBase = 1;  // labels 1, 2, ... stand for ellipsis dims, the last dim being 1
constexpr size_t kMaxEllipsis = 40;

/// The labels of a term, with "..." as `count` ellipsis labels.
Result<std::string> expand(const std::string& term, size_t count) {
  std::string labels;
  for (size_t k = 0; k < term.size(); ++k) {
    if (term.compare(k, 3, "...") == 0) {
      for (size_t d = count; d-- > 0;) labels += static_cast<char>(kEllipsisBase + static_cast<char>(d));
      k += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[k]))) {
      labels += term[k];
    } else {
      return refuse("bad-attribute") << "attribute equation: expected letters, commas, '...' and '->', got '" << term[k]
                                     << "'";
    }
  }
  return labels;
}

Result<Equation> parse(const Node& node, const std::vector<size_t>& ranks) {
  std::string text = node.attrs.get_string("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  if (terms.size() != ranks.size())
    return refuse("bad-attribute") << "attribute equation: expected " << ranks.size() << " terms, one an input, got "
                                   << terms.size() << " in '" << text << "'";
  Equation equation;
  size_t widest = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    const size_t dots = terms[k].find("...") == std::string::npos ? 0 : 3, letters = terms[k].size() - dots;
    if (letters > ranks[k] || (dots == 0 && letters != ranks[k]) || ranks[k] - letters > kMaxEllipsis)
      return refuse("rank-mismatch") << "input " << k << ": expected rank " << letters << (dots ? " or more" : "")
                                     << " for term '" << terms[k] << "', got " << ranks[k];
    const Result<std::string> labels = expand(terms[k], ranks[k] - letters);
    if (!labels) return labels.failure();
    equation.operands.push_back(*labels);
    widest = std::max(widest, ranks[k] - letters);
  }
  if (arrow != std::string::npos) {
    const Result<std::string> labels = expand(text.substr(arrow + 2), widest);
    if (!labels) return labels.failure();
    equation.output = *labels;
  } else {  // the ellipsis, then the letters that occur once, sorted
    std::string all;
    for (const std::string& operand : equation.operands) all += operand;
    for (size_t d = widest; d-- > 0;) equation.output += static_cast<char>(kEllipsisBase + static_cast<char>(d));
    std::string once;
    for (char label : all)
      if (std::isalpha(static_cast<unsigned char>(label)) && std::count(all.begin(), all.end(), label) == 1)
        once += label;
    std::sort(once.begin(), once.end());
    equation.output += once;
  }
  for (char label : equation.output) {
    const bool found = std::any_of(equation.operands.begin(), equation.operands.end(),
                                   [&](const std::string& o) { return o.find(label) != std::string::npos; });
    if (!found || std::count(equation.output.begin(), equation.output.end(), label) != 1)
      return refuse("bad-attribute")
             << "attribute equation: expected output labels that occur once there and in an input, got '" << text
             << "'";
  }
  return equation;
}

/// The extent of each label; ellipsis dims broadcast.
Result<std::map<char, Expr>> extents_of(const Equation& equation, const std::vector<const Shape*>& shapes) {
  std::map<char, Expr> extents;
  for (size_t k = 0; k < shapes.size(); ++k)
    for (size_t d = 0; d < shapes[k]->size(); ++d) {
      const char label = equation.operands[k][d];
      const Expr& dim = (*shapes[k])[d];
      const auto [it, fresh] = extents.try_emplace(label, dim);
      if (fresh || same_dim(it->second, dim) || is_const_int(dim, 1)) continue;
      if (is_const_int(it->second, 1)) {
        it->second = dim;
        continue;
      }
      return refuse(different_dim(it->second, dim) ? "shape-mismatch" : "dynamic-broadcast")
             << "input " << k << ": expected dim " << d << " to be " << dim_to_string(it->second)
             << " as elsewhere under the same label, got " << dim_to_string(dim);
    }
  return extents;
}

Result<Equation> equation_of(const Node& node, const std::vector<const Shape*>& shapes) {
  std::vector<size_t> ranks;
  for (const Shape* shape : shapes) ranks.push_back(shape->size());
  return parse(node, ranks);
}

/// The element of an operand for given label values; stretched dims read index 0.
Expr element(const Tensor& tensor, const std::string& labels, const std::map<char, Expr>& at) {
  Indices index;
  for (size_t d = 0; d < labels.size(); ++d)
    index.push_back(is_const_int(tensor.shape()[d], 1) ? Expr(0) : at.at(labels[d]));
  return widen(tensor(index));
}

/// Contracts operands from left to right: each step sums the labels that neither the output nor a later operand needs.
std::vector<Tensor> compute_einsum(const ComputeContext& ctx) {
  std::vector<const Shape*> shapes;
  for (const Tensor& input : ctx.inputs) shapes.push_back(&input.shape());
  const Equation equation = equation_of(ctx.node, shapes).value();
  const std::map<char, Expr> extents = extents_of(equation, shapes).value();
  const DType type = ctx.output_type().dtype;
  Tensor left = ctx.inputs[0];
  std::string left_labels = equation.operands[0];
  const size_t steps = std::max<size_t>(ctx.inputs.size(), 2);
  for (size_t k = 1; k < steps; ++k) {
    const bool last = k + 1 >= ctx.inputs.size(), pair = k < ctx.inputs.size();
    const std::string right_labels = pair ? equation.operands[k] : "";
    std::string kept = equation.output, summed;
    if (!last) {
      std::string needed = equation.output;
      for (size_t later = k + 1; later < ctx.inputs.size(); ++later) needed += equation.operands[later];
      kept.clear();
      for (char label : left_labels + right_labels)
        if (needed.find(label) != std::string::npos && kept.find(label) == std::string::npos) kept += label;
    }
    for (char label : left_labels + right_labels)
      if (kept.find(label) == std::string::npos && summed.find(label) == std::string::npos) summed += label;
    const auto dims = [&](const std::string& labels) {
      Shape shape;
      for (char label : labels) shape.push_back(extents.at(label));
      return shape;
    };
    const auto product = [&](const Indices& i, const Indices& r) {
      std::map<char, Expr> at;
      for (size_t d = 0; d < kept.size(); ++d) at[kept[d]] = i[d];
      for (size_t d = 0; d < summed.size(); ++d) at[summed[d]] = r[d];
      const Expr value = element(left, left_labels, at);
      return pair ? value * element(ctx.inputs[k], right_labels, at) : value;
    };
    left = summed.empty() ? compute("einsum", dims(kept), [&](const Indices& i) { return product(i, {}); })
                          : reduce("einsum", dims(kept), dims(summed), sum_reducer(compute_type(type)), product);
    left_labels = kept;
  }
  return {narrow(left, type)};
}

/// One loop over all labels at once.
Result<void> reference(ReferenceContext& ctx) {
  std::vector<Shape> shapes;
  std::vector<const Shape*> pointers;
  for (const RefTensor* input : ctx.inputs) shapes.push_back(to_shape(input->shape));
  for (const Shape& shape : shapes) pointers.push_back(&shape);
  const Result<Equation> equation = equation_of(ctx.node, pointers);
  if (!equation) return equation.failure();
  const Result<std::map<char, Expr>> extents = extents_of(*equation, pointers);
  if (!extents) return extents.failure();
  std::string labels = equation->output;  // output labels run slowest
  for (const auto& [label, extent] : *extents)
    if (labels.find(label) == std::string::npos) labels += label;
  Dims dims;
  for (char label : labels) dims.push_back(known(extents->at(label)).value());
  RefTensor& y = ctx.output();
  // Strides of every operand and of the output along every label.
  const auto strides = [&](const std::string& of, const Dims& shape) {
    const Dims dense = broadcast_strides(shape, shape.size());
    Dims result(labels.size(), 0);
    for (size_t d = 0; d < of.size(); ++d) result[labels.find(of[d])] += dense[d];
    return result;
  };
  std::vector<Dims> steps;
  for (size_t k = 0; k < ctx.inputs.size(); ++k) steps.push_back(strides(equation->operands[k], ctx.inputs[k]->shape));
  const Dims out_step = strides(equation->output, y.shape);
  std::vector<int64_t> index(labels.size(), 0);
  for (int64_t total = count_of(dims); total > 0; --total) {
    int64_t to = 0;
    for (size_t d = 0; d < labels.size(); ++d) to += index[d] * out_step[d];
    double product = 1;
    uint64_t exact = 1;
    for (size_t k = 0; k < ctx.inputs.size(); ++k) {
      int64_t from = 0;
      for (size_t d = 0; d < labels.size(); ++d) from += index[d] * steps[k][d];
      if (y.is_float()) product *= ctx.inputs[k]->f[from];
      else exact *= static_cast<uint64_t>(ctx.inputs[k]->i[from]);
    }
    if (y.is_float()) y.f[to] += product;
    else y.i[to] = wrap_int(y.dtype, static_cast<int64_t>(static_cast<uint64_t>(y.i[to]) + exact));
    for (size_t d = labels.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return {};
}

OpSample sample(const char* name, const char* equation, std::vector<OpSample::Input> inputs, const char* error = "") {
  return {.name = name, .inputs = std::move(inputs), .attrs = attrs({{"equation", equation}}), .error_id = error};
}

}  // namespace

OpDef einsum() {
  return OpDef{
      .name = "Einsum",
      .since = 12,
      .doc = "Sum of products by Einstein's convention, operands contracted from left to right.",
      .inputs = {{.name = "Inputs", .types = TypeSet::kNumeric, .variadic = true, .same_type_as = "Inputs"}},
      .attrs = {{.name = "equation", .kind = AttrKind::kString, .required = true}},
      .fusion = FusionKind::kContraction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        std::vector<const Shape*> shapes;
        for (const TensorType* input : ctx.inputs) shapes.push_back(&input->shape);
        const Result<Equation> equation = equation_of(ctx.node, shapes);
        if (!equation) return equation.failure();
        const Result<std::map<char, Expr>> extents = extents_of(*equation, shapes);
        if (!extents) return extents.failure();
        TensorType type{ctx.input(0).dtype, {}, {}};
        for (char label : equation->output) type.shape.push_back(extents->at(label));
        return std::vector<TensorType>{std::move(type)};
      },
      .compute = compute_einsum,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            std::vector<const Shape*> shapes;
            for (const TensorType* input : ctx.inputs) shapes.push_back(&input->shape);
            const Result<Equation> equation = equation_of(ctx.node, shapes);
            const auto extents = equation ? extents_of(*equation, shapes) : Result<std::map<char, Expr>>(Failure{});
            double total = extents ? static_cast<double>(ctx.inputs.size()) : 0;
            if (extents)
              for (const auto& [label, extent] : *extents) total *= static_cast<double>(known(extent).value_or(1));
            return total;
          },
      .samples = {sample("matmul", "ij,jk->ik", {f32({3, 4}), f32({4, 5})}),
                  sample("implicit", "ij,jk", {f32({3, 4}), f32({4, 5})}),
                  sample("batch", "...ij,...jk->...ik", {f32({2, 3, 4}), f32({2, 4, 5})}),
                  sample("batch_broadcast", "...ij,...jk->...ik", {f32({2, 1, 3, 4}), f32({3, 4, 5})}),
                  sample("transpose", "ij->ji", {f32({3, 5})}),
                  sample("sum", "ij->i", {f32({3, 5})}),
                  sample("all", "ij->", {f32({3, 5})}),
                  sample("diagonal", "ii->i", {f32({3, 3})}),
                  sample("trace", "...ii ->...i", {f32({2, 3, 3})}),
                  sample("inner", "i,i", {f32({5}), f32({5})}),
                  sample("outer", "i,j->ij", {f32({3}), f32({4})}),
                  sample("attention", "bthd,bshd->bhts", {f32({2, 3, 2, 4}), f32({2, 5, 2, 4})}),
                  sample("three", "ij,jk,kl->il", {f32({2, 3}), f32({3, 4}), f32({4, 2})}),
                  sample("three_shared", "bi,bij,bj->b", {f32({2, 3}), f32({2, 3, 4}), f32({2, 4})}),
                  sample("int", "ij,j->i", {in(kInt32, {3, 4}, -9, 9), in(kInt32, {4}, -9, 9)}),
                  sample("upper_case", "Ab,bA->A", {f32({2, 3}), f32({3, 2})}),
                  sample("scalar", ",->", {f32({}), f32({})}),
                  sample("dims_differ", "ij,jk->ik", {f32({3, 4}), f32({5, 5})}, "shape-mismatch"),
                  sample("too_few_terms", "ij->i", {f32({3, 4}), f32({4})}, "bad-attribute"),
                  sample("rank", "ijk->i", {f32({3, 4})}, "rank-mismatch"),
                  sample("unknown_output", "ij->k", {f32({3, 4})}, "bad-attribute"),
                  sample("symbol", "i+j->i", {f32({3, 4})}, "rank-mismatch")},
  };
}

}  // namespace tensmith::graph::ops
