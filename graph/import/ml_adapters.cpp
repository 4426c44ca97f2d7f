// Operators of ai.onnx.ml that are arithmetic on tensors.
#include "graph/import/node_form.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kAll = 1'000'000;
constexpr const char* kDomain = "ai.onnx.ml";

AttrMap one_attr(const char* name, AttrValue value) {
  AttrMap attrs;
  attrs.set(name, std::move(value));
  return attrs;
}

Value as_float(Adapting& c, Value v) {
  return c.type(v).dtype == kFloat32 ? v : c.node("Cast", {v}, one_attr("to", kFloat32));
}

/// (x - offset) * scale, by column.
void scaler(Adapting& c) {
  Value x = as_float(c, c.input(0));
  if (c.form.attrs.has("offset")) x = c.node("Sub", {x, c.floats(c.form.attrs.get_floats("offset"))});
  if (c.form.attrs.has("scale")) x = c.node("Mul", {x, c.floats(c.form.attrs.get_floats("scale"))});
  c.outputs = {x};
}

/// 1 where x > threshold, else 0.
void binarizer(Adapting& c) {
  const DType dtype = c.type(c.input(0)).dtype;
  const Value above = c.node("Greater", {c.input(0), c.scalar(c.form.attrs.get_float("threshold", 0), dtype)});
  c.outputs = {c.node("Cast", {above}, one_attr("to", dtype))};
}

/// Columns of the last axis by their numbers, which are one list.
void array_feature_extractor(Adapting& c) {
  const Value columns = c.node("Reshape", {c.input(1), c.ints({-1})});
  const Value picked = c.node("Gather", {c.input(0), columns}, one_attr("axis", int64_t{-1}));
  // Of a vector the result has a row.
  c.outputs = {c.type(c.input(0)).rank() == 1 ? c.node("Unsqueeze", {picked, c.ints({0})}) : picked};
}

/// Rows divided by their largest element, their sum of magnitudes or their length; rows whose divisor is 0 stay. The
/// largest element is taken with its sign, as ONNX Runtime does: a row of negative numbers becomes positive.
void normalizer(Adapting& c) {
  const std::string norm = c.form.attrs.get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    throw Refused{"unsupported-attribute", "attribute norm: expected MAX, L1 or L2, got '" + norm + "'",
                  "correct the model"};
  const Value x = as_float(c, c.input(0)), last = c.ints({-1});
  const Value size = norm == "L1"   ? c.node("ReduceL1", {x, last})
                     : norm == "L2" ? c.node("ReduceL2", {x, last})
                                    : c.node("ReduceMax", {x, last});
  const Value zero = c.scalar(0, kFloat32), one = c.scalar(1, kFloat32);
  c.outputs = {c.node("Div", {x, c.node("Where", {c.node("Equal", {size, zero}), one, size})})};
}

}  // namespace

std::vector<Adapter> ml_adapters() {
  return {
      {"ArrayFeatureExtractor", kDomain, 1, kAll, array_feature_extractor},
      {"Binarizer", kDomain, 1, kAll, binarizer},
      {"Normalizer", kDomain, 1, kAll, normalizer},
      {"Scaler", kDomain, 1, kAll, scaler},
  };
}

}  // namespace tensmith::graph
