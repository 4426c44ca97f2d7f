#include <cmath>

#include "graph/import/node_form.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kAll = 1'000'000;
constexpr const char* kDomain = "com.microsoft";

Value scaled(Adapting& c, Value v, double factor) {
  return factor == 1 ? v : c.node("Mul", {v, c.scalar(factor, c.type(v).dtype)});
}

AttrMap one_attr(const char* name, AttrValue value) {
  AttrMap attrs;
  attrs.set(name, std::move(value));
  return attrs;
}

void refuse_used_outputs(const Adapting& c, size_t from) {
  for (size_t k = from; k < c.form.output_used.size(); ++k)
    if (c.form.output_used[k])
      throw Refused{"unsupported-output", "output " + std::to_string(k) + " is not supported",
                    "export the model without ONNX Runtime's optimiser"};
}

void gelu(Adapting& c) { c.outputs = {c.node("Gelu", {c.input(0)})}; }

void bias_gelu(Adapting& c) { c.outputs = {c.node("Gelu", {c.node("Add", {c.input(0), c.input(1)})})}; }

void fast_gelu(Adapting& c) {
  const Value x = c.has(1) ? c.node("Add", {c.input(0), c.input(1)}) : c.input(0);
  c.outputs = {c.node("Gelu", {x}, one_attr("approximate", std::string("tanh")))};
}

/// x * sigmoid(alpha * x)
void quick_gelu(Adapting& c) {
  const Value x = c.input(0);
  c.outputs = {c.node("Mul", {x, c.node("Sigmoid", {scaled(c, x, c.form.attrs.get_float("alpha", 1.702))})})};
}

/// Swaps the last two axes; `batch` moves axis 0 to in front of the last one first, as the operator's transBatch
/// attributes ask.
Value transposed(Adapting& c, Value v, bool matrix, bool batch) {
  if (!matrix && !batch) return v;
  const int rank = c.type(v).rank();
  if (rank < 2) return v;
  std::vector<int64_t> perm;
  for (int k = 0; k < rank; ++k) perm.push_back(k);
  if (batch) {
    perm.erase(perm.begin());
    perm.insert(perm.end() - 1, 0);
  }
  if (matrix) std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  return c.node("Transpose", {v}, one_attr("perm", perm));
}

void fused_matmul(Adapting& c) {
  const auto flag = [&](const char* name) { return c.form.attrs.get_int(name, 0) != 0; };
  const Value a = transposed(c, c.input(0), flag("transA"), flag("transBatchA"));
  const Value b = transposed(c, c.input(1), flag("transB"), flag("transBatchB"));
  c.outputs = {scaled(c, c.node("MatMul", {a, b}), c.form.attrs.get_float("alpha", 1))};
}

/// The activation that a fused operator applies at its end.
Value activated(Adapting& c, Value v, const std::string& name, const std::vector<double>& parameters) {
  const auto parameter = [&](size_t k, double fallback) { return k < parameters.size() ? parameters[k] : fallback; };
  if (name.empty()) return v;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") return c.node(name, {v});
  if (name == "LeakyRelu") return c.node("LeakyRelu", {v}, one_attr("alpha", parameter(0, 0.01)));
  if (name == "Clip")
    return c.node("Clip", {v, c.scalar(parameter(0, -INFINITY), c.type(v).dtype),
                           c.scalar(parameter(1, INFINITY), c.type(v).dtype)});
  if (name == "HardSigmoid") {
    AttrMap attrs = one_attr("alpha", parameter(0, 0.2));
    attrs.set("beta", parameter(1, 0.5));
    return c.node("HardSigmoid", {v}, attrs);
  }
  throw Refused{"unsupported-attribute", "activation '" + name + "' is not known",
                "export the model without ONNX Runtime's optimiser"};
}

void fused_conv(Adapting& c) {
  AttrMap attrs = c.form.attrs;
  const std::string activation = attrs.get_string("activation", "");
  const std::vector<double> parameters = attrs.get_floats("activation_params");
  attrs.erase("activation");
  attrs.erase("activation_params");
  Value y = c.node("Conv", {c.input(0), c.input(1), c.input(2)}, attrs);
  if (c.has(3)) y = c.node("Add", {y, c.input(3)});
  c.outputs = {activated(c, y, activation, parameters)};
}

void fused_gemm(Adapting& c) {
  AttrMap attrs = c.form.attrs;
  const std::string activation = attrs.get_string("activation", "");
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (attrs.has(name)) parameters.push_back(attrs.get_float(name, 0));
    attrs.erase(name);
  }
  attrs.erase("activation");
  c.outputs = {activated(c, c.node("Gemm", c.form.inputs, attrs), activation, parameters)};
}

/// layer_norm(input + skip + bias); output 3 is the sum.
void skip_layer_norm(Adapting& c) {
  const bool simple = c.form.op == "SkipSimplifiedLayerNormalization";
  const int bias = simple ? 3 : 4;
  Value sum = c.node("Add", {c.input(0), c.input(1)});
  if (c.has(bias)) sum = c.node("Add", {sum, c.input(bias)});
  AttrMap attrs = one_attr("axis", int64_t{-1});
  attrs.set("epsilon", c.form.attrs.get_float("epsilon", 1e-12));
  const Value y = simple ? c.node("RMSNormalization", {sum, c.input(2)}, attrs)
                         : c.node("LayerNormalization", {sum, c.input(2), c.input(3)}, attrs);
  for (size_t k = 1; k < 3 && k < c.form.output_used.size(); ++k)
    if (c.form.output_used[k])
      throw Refused{"unsupported-output", "mean and deviation as outputs are not supported", "export for inference"};
  c.outputs = {y, y, y, sum};
  c.outputs.resize(static_cast<size_t>(c.form.num_outputs));
}

void layer_norm_in_foreign_domain(Adapting& c) {
  refuse_used_outputs(c, 1);
  c.form.domain.clear();
  c.form.op = c.form.op == "SimplifiedLayerNormalization" ? "RMSNormalization" : "LayerNormalization";
  c.form.opset = 23;
  c.form.num_outputs = 1;
}

/// An operator on dequantised values: scale and zero point stand right behind the quantised input.
Value dequantized(Adapting& c, int first) {
  return c.node("DequantizeLinear", {c.input(first), c.input(first + 1), c.input(first + 2)});
}
Value quantized(Adapting& c, Value v, int first) {
  return c.node("QuantizeLinear", {v, c.input(first), c.input(first + 1)});
}

void qlinear_binary(Adapting& c) {
  const std::string op = c.form.op == "QLinearAdd" ? "Add" : "Mul";
  c.outputs = {quantized(c, c.node(op, {dequantized(c, 0), dequantized(c, 3)}), 6)};
}

void qlinear_unary(Adapting& c) {
  if (c.form.op == "QLinearSigmoid") c.outputs = {quantized(c, c.node("Sigmoid", {dequantized(c, 0)}), 3)};
  else
    c.outputs = {quantized(
        c, c.node("LeakyRelu", {dequantized(c, 0)}, one_attr("alpha", c.form.attrs.get_float("alpha", 0.01))), 3)};
}

void qlinear_softmax(Adapting& c) {
  // The attribute `opset` says whose Softmax it is; before 13 all dims from the axis on were one.
  const int rank = c.type(c.input(0)).rank();
  int64_t axis = c.form.attrs.get_int("axis", -1);
  if (axis < 0) axis += rank;
  if (c.form.attrs.get_int("opset", 13) < 13 && axis != rank - 1)
    throw Refused{"unsupported-attribute", "Softmax over several axes in quantised form is not supported",
                  "quantise the model at opset 13 or later"};
  c.outputs = {quantized(c, c.node("Softmax", {dequantized(c, 0)}, one_attr("axis", axis)), 3)};
}

void qlinear_global_average_pool(Adapting& c) {
  if (c.form.attrs.get_int("channels_last", 0) != 0)
    throw Refused{"unsupported-attribute", "channels_last = 1 is not supported",
                  "quantise the model without layout changes"};
  c.outputs = {quantized(c, c.node("GlobalAveragePool", {dequantized(c, 0)}), 3)};
}

void qlinear_concat(Adapting& c) {
  std::vector<Value> parts;
  for (int k = 2; c.has(k + 1); k += 3) parts.push_back(dequantized(c, k));
  c.outputs = {quantized(c, c.node("Concat", parts, one_attr("axis", c.form.attrs.get_int("axis", 0))), 0)};
}

/// alpha * (a - za) * (b - zb) * scales + bias (i32, in units of the product's scale), then quantised if a scale is
/// given.
void qgemm(Adapting& c) {
  AttrMap attrs = c.form.attrs;
  const double alpha = attrs.get_float("alpha", 1);
  if (alpha != 1)
    throw Refused{"unsupported-attribute", "alpha other than 1 is not supported", "fold alpha into the scales"};
  const Constant* b_scale = c.constant(4);
  AttrMap b_attrs;
  if (!b_scale || b_scale->num_elements() > 1) b_attrs.set("axis", int64_t{attrs.get_int("transB", 0) != 0 ? 0 : 1});
  const Value a = dequantized(c, 0);
  const Value b = c.node("DequantizeLinear", {c.input(3), c.input(4), c.input(5)}, b_attrs);
  Value y = c.node("Gemm", {a, b}, attrs);
  if (c.has(6)) {
    const Value scale = c.node("Mul", {c.input(1), c.input(4)});
    const Value bias = c.node("Mul", {c.node("Cast", {c.input(6)}, one_attr("to", c.type(scale).dtype)), scale});
    y = c.node("Add", {y, bias});
  }
  c.outputs = {c.has(7) ? quantized(c, y, 7) : y};
}

void matmul_integer_to_float(Adapting& c) {
  const Value product = c.node("MatMulInteger", {c.input(0), c.input(1), c.input(4), c.input(5)});
  const Value real = c.node("Cast", {product}, one_attr("to", c.type(c.input(2)).dtype));
  Value y = c.node("Mul", {real, c.node("Mul", {c.input(2), c.input(3)})});
  if (c.has(6)) y = c.node("Add", {y, c.input(6)});
  c.outputs = {y};
}

/// Quantises the first input as it comes, then multiplies in integers.
void dynamic_quantize_matmul(Adapting& c) {
  const OpDef* quantize = find_op("DynamicQuantizeLinear");
  if (!quantize)
    throw Refused{"unsupported-op", "it needs DynamicQuantizeLinear, which is not implemented",
                  "use the model in float32"};
  const NodeId id = c.editor.add(*quantize, {c.input(0)}, {}, c.form.name + ".quantize", 3);
  const Value product = c.node("MatMulInteger", {Value{id, 0}, c.input(1), Value{id, 2}, c.input(3)});
  const Value real = c.node("Cast", {product}, one_attr("to", kFloat32));
  Value y = c.node("Mul", {real, c.node("Mul", {Value{id, 1}, c.input(2)})});
  if (c.has(4)) y = c.node("Add", {y, c.input(4)});
  c.outputs = {y};
}

/// LSTM with weights in 8 bits, [directions, input, 4 hidden]. ONNX Runtime also rounds input and state to 8 bits, by
/// the range that each call happens to see; here they keep their precision.
void dynamic_quantize_lstm(Adapting& c) {
  const auto weights = [&](int input, int scale) {
    const TensorType& type = c.type(c.input(scale));
    if (!c.has(scale + 1) || type.rank() > 2)
      throw Refused{"unsupported-input", "expected a scale and a zero point for each direction or column",
                    "use the model in float32"};
    // [directions] or [directions, columns] against [directions, input, columns].
    const auto spread = [&](Value v) {
      return c.node("Unsqueeze", {v, c.ints(type.rank() == 1 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1})});
    };
    const auto real = [&](Value v) { return c.node("Cast", {v}, one_attr("to", kFloat32)); };
    const Value moved = c.node("Sub", {real(c.input(input)), spread(real(c.input(scale + 1)))});
    const Value scaled_weights = c.node("Mul", {moved, spread(c.input(scale))});
    return c.node("Transpose", {scaled_weights}, one_attr("perm", std::vector<int64_t>{0, 2, 1}));
  };
  const Value w = weights(1, 8), r = weights(2, 10);
  c.form.inputs.resize(8);
  c.set_input(1, w);
  c.set_input(2, r);
  c.form.op = "LSTM";
  c.form.domain.clear();
  c.form.opset = 14;
}

/// The same operators as in the default domain, with 16-bit types added.
void default_domain(Adapting& c) {
  c.form.domain.clear();
  c.form.opset = 21;
}

}  // namespace

std::vector<Adapter> microsoft_adapters() {
  return {
      {"BiasGelu", kDomain, 1, kAll, bias_gelu},
      {"DequantizeLinear", kDomain, 1, kAll, default_domain},
      {"DynamicQuantizeLSTM", kDomain, 1, kAll, dynamic_quantize_lstm},
      {"DynamicQuantizeMatMul", kDomain, 1, kAll, dynamic_quantize_matmul},
      {"FastGelu", kDomain, 1, kAll, fast_gelu},
      {"FusedConv", kDomain, 1, kAll, fused_conv},
      {"FusedGemm", kDomain, 1, kAll, fused_gemm},
      {"FusedMatMul", kDomain, 1, kAll, fused_matmul},
      {"Gelu", kDomain, 1, kAll, gelu},
      {"LayerNormalization", kDomain, 1, kAll, layer_norm_in_foreign_domain},
      {"MatMulIntegerToFloat", kDomain, 1, kAll, matmul_integer_to_float},
      {"QGemm", kDomain, 1, kAll, qgemm},
      {"QLinearAdd", kDomain, 1, kAll, qlinear_binary},
      {"QLinearConcat", kDomain, 1, kAll, qlinear_concat},
      {"QLinearGlobalAveragePool", kDomain, 1, kAll, qlinear_global_average_pool},
      {"QLinearLeakyRelu", kDomain, 1, kAll, qlinear_unary},
      {"QLinearMul", kDomain, 1, kAll, qlinear_binary},
      {"QLinearSigmoid", kDomain, 1, kAll, qlinear_unary},
      {"QLinearSoftmax", kDomain, 1, kAll, qlinear_softmax},
      {"QuantizeLinear", kDomain, 1, kAll, default_domain},
      {"QuickGelu", kDomain, 1, kAll, quick_gelu},
      {"SimplifiedLayerNormalization", kDomain, 1, kAll, layer_norm_in_foreign_domain},
      {"SkipLayerNormalization", kDomain, 1, kAll, skip_layer_norm},
      {"SkipSimplifiedLayerNormalization", kDomain, 1, kAll, skip_layer_norm},
  };
}

}  // namespace tensmith::graph
