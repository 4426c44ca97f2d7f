#include <algorithm>

#include "graph/import/node_form.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kAll = 1'000'000;

/// Until opset 12 these took all dims from `axis` (default 1) on as one; since 13 they work along one axis (default
/// -1).
void flattening_softmax(Adapting& c) {
  const int rank = c.type(c.input(0)).rank();
  int64_t axis = c.form.attrs.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    throw Refused{"axis-out-of-range",
                  "attribute axis: expected -" + std::to_string(rank) + " to " + std::to_string(rank),
                  "correct the model"};
  AttrMap last;
  last.set("axis", int64_t{-1});
  if (axis == rank - 1) {
    c.form.attrs = last;
    c.form.opset = 13;
    return;
  }
  AttrMap at;
  at.set("axis", axis);
  const Value rows = c.node("Flatten", {c.input(0)}, at);
  c.outputs = {c.reshape_like(c.node(c.form.op, {rows}, last), c.input(0))};
}

/// Upsample is Resize with the oldest coordinates.
void upsample(Adapting& c) {
  Value scales = c.input(1);
  if (c.form.attrs.has("scales")) scales = c.floats(c.form.attrs.get_floats("scales"));
  const std::string mode = c.form.attrs.get_string("mode", "nearest");
  c.form.attrs = {};
  c.form.attrs.set("mode", mode == "bilinear" ? "linear" : mode);
  c.form.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
  c.form.attrs.set("nearest_mode", std::string("floor"));
  c.form.inputs = {c.input(0), Value{}, scales};
  c.form.op = "Resize";
  c.form.opset = 11;
}

/// Resize of opset 10 has no roi, asymmetric coordinates, and rounds down when it enlarges, up when it shrinks.
void first_resize(Adapting& c) {
  const std::string mode = c.form.attrs.get_string("mode", "nearest");
  std::string nearest = "floor";
  if (mode == "nearest") {
    bool larger = false, smaller = false;
    const Constant* scales = c.constant(1);
    for (int64_t k = 0; scales && k < scales->num_elements(); ++k) {
      larger |= scales->float_at(k) > 1;
      smaller |= scales->float_at(k) < 1;
    }
    if (!scales || (larger && smaller))
      throw Refused{"unsupported-resize",
                    "nearest Resize of opset 10 rounds by whether it shrinks, which needs constant scales of one kind",
                    "convert the model to opset 11 or later"};
    if (smaller) nearest = "ceil";
  }
  c.form.attrs = {};
  c.form.attrs.set("mode", mode);
  c.form.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
  c.form.attrs.set("nearest_mode", nearest);
  c.form.inputs = {c.input(0), Value{}, c.input(1)};
  c.form.opset = 11;
}

/// Inputs of Resize that are not meant are often given as empty tensors.
void resize_without_empty_inputs(Adapting& c) {
  for (int i = 1; i <= 3; ++i)
    if (c.input_is_empty_constant(i)) c.set_input(i, {});
}

void batch_norm(Adapting& c) {
  for (size_t k = 1; k < c.form.output_used.size(); ++k)
    if (c.form.output_used[k])
      throw Refused{"unsupported-training", "it gives running statistics, as in training",
                    "export the model for inference"};
  if (c.form.attrs.get_int("spatial", 1) == 0 && c.type(c.input(0)).rank() > 2)
    throw Refused{"unsupported-attribute", "spatial = 0 (statistics for each position) is not supported",
                  "export with opset 9 or later"};
  c.form.attrs.erase("spatial");
  c.form.num_outputs = 1;
}

/// Without sizes the number of pieces comes from the number of outputs; since opset 18 it is stated.
void split_by_outputs(Adapting& c) {
  if (c.has(1) || c.form.attrs.has("split")) return;
  const int64_t axis = c.form.attrs.get_int("axis", 0);
  c.form.attrs = {};
  c.form.attrs.set("axis", axis);
  c.form.attrs.set("num_outputs", int64_t{c.form.num_outputs});
  c.form.opset = 18;
}

void scatter(Adapting& c) {
  c.form.op = "ScatterElements";
  c.form.opset = 11;
}

/// k was an attribute, and now is a tensor of one element.
void top_k(Adapting& c) {
  if (!c.form.attrs.has("k"))
    throw Refused{"missing-attribute", "attribute k: expected an int, got none", "correct the model"};
  c.set_input(1, c.ints({c.form.attrs.get_int("k", 0)}));
  c.form.attrs.erase("k");
  c.form.opset = 11;
}

/// Scale and bias were given for each group; since opset 21 for each channel.
void group_norm(Adapting& c) {
  const TensorType& x = c.type(c.input(0));
  const int64_t groups = c.form.attrs.get_int("num_groups", 0);
  const auto* channels = x.rank() > 1 ? x.shape[1].as<IntImm>() : nullptr;
  if (!channels || groups <= 0 || channels->value % groups != 0)
    throw Refused{"shape-mismatch", "expected a fixed number of channels that num_groups divides, got " + to_string(x),
                  "correct the model"};
  for (int i = 1; i <= 2; ++i) {
    const Value column = c.node("Reshape", {c.input(i), c.ints({groups, 1})});
    const Value spread = c.node("Expand", {column, c.ints({groups, channels->value / groups})});
    c.set_input(i, c.node("Reshape", {spread, c.ints({channels->value})}));
  }
  c.form.opset = 21;
}

void grid_sample(Adapting& c) {
  const std::string mode = c.form.attrs.get_string("mode", "bilinear");
  c.form.attrs.set("mode", mode == "bilinear"  ? std::string("linear")
                           : mode == "bicubic" ? std::string("cubic")
                                               : mode);
  c.form.opset = 20;
}

/// The first RoiAlign had no choice of coordinates.
void roi_align(Adapting& c) {
  c.form.attrs.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  c.form.opset = 16;
}

/// The axis was an attribute (default 1), and now is a scalar input (default -2).
void dft(Adapting& c) {
  const int64_t axis = c.form.attrs.get_int("axis", 1);
  c.form.attrs.erase("axis");
  c.set_input(2, c.editor.add_constant(Constant::from_ints(kInt64, {}, std::span(&axis, 1))));
  c.form.opset = 20;
}

void first_scan(Adapting&) {
  throw Refused{"unsupported-op", "Scan of opset 8 (with a batch axis) is not supported",
                "convert the model to opset 9 or later"};
}

/// A tensor is an optional value that is there.
void has_element(Adapting& c) {
  const int64_t given = c.has(0);
  c.outputs = {c.editor.add_constant(Constant::from_ints(kBool, {}, std::span(&given, 1)), c.form.name)};
}
void get_element(Adapting& c) {
  if (c.has(0)) c.outputs = {c.node("Identity", {c.input(0)})};
}

/// ONNX Runtime writes this name into the default domain.
void simplified_layer_norm(Adapting& c) {
  c.form.op = "RMSNormalization";
  c.form.opset = 23;
  c.form.num_outputs = 1;
  for (size_t k = 1; k < c.form.output_used.size(); ++k)
    if (c.form.output_used[k])
      throw Refused{"unsupported-output", "its second output is not supported",
                    "export without ONNX Runtime's optimiser"};
}

/// Until opset 6 operands had equal shapes, or the second one stood at the dims from `axis` on (default: the last
/// ones).
void place_operand(Adapting& c) {
  const bool broadcast = c.form.attrs.get_int("broadcast", 0) != 0;
  const TensorType &a = c.type(c.input(0)), &b = c.type(c.input(1));
  const int64_t axis = c.form.attrs.get_int("axis", a.rank() - b.rank());
  c.form.attrs.erase("broadcast");
  c.form.attrs.erase("axis");
  if (!broadcast || b.rank() == 0) return;
  if (axis < 0 || axis > a.rank() - b.rank())
    throw Refused{"axis-out-of-range",
                  "attribute axis: expected a place for " + to_string(b) + " in " + to_string(a) + ", got " +
                      std::to_string(axis),
                  "correct the model"};
  const int64_t behind = a.rank() - b.rank() - axis;
  if (behind == 0) return;
  std::vector<int64_t> ones;
  for (int64_t k = 0; k < behind; ++k) ones.push_back(b.rank() + k);
  c.set_input(1, c.node("Unsqueeze", {c.input(1), c.ints(ones)}));
}

/// Until opset 6 a slope for each channel was a vector; since then it is broadcast like any operand.
void slope_by_channel(Adapting& c) {
  const TensorType &x = c.type(c.input(0)), &slope = c.type(c.input(1));
  if (slope.rank() != 1 || is_const_int(slope.shape[0], 1) || x.rank() <= 2) return;
  std::vector<int64_t> ones;
  for (int k = 1; k < x.rank() - 1; ++k) ones.push_back(k);
  c.set_input(1, c.node("Unsqueeze", {c.input(1), c.ints(ones)}));
}

/// Until opset 4 the shape was an attribute.
void shape_attribute(Adapting& c) {
  if (!c.form.attrs.has("shape"))
    throw Refused{"missing-attribute", "attribute shape: expected a list of ints, got none", "correct the model"};
  c.set_input(1, c.ints(c.form.attrs.get_ints("shape")));
  c.form.attrs.erase("shape");
  c.form.opset = 5;
}

void concat_axis(Adapting& c) {
  if (!c.form.attrs.has("axis")) c.form.attrs.set("axis", int64_t{1});
}

void first_pad(Adapting& c) {
  if (c.form.attrs.has("paddings")) c.form.attrs.set("pads", c.form.attrs.get_ints("paddings"));
  c.form.attrs.erase("paddings");
}

/// Attributes that only matter in training or as hints.
template <const char* kName>
void without_attribute(Adapting& c) {
  c.form.attrs.erase(kName);
}
constexpr char kMomentum[] = "momentum", kConsumedInputs[] = "consumed_inputs", kIsTest[] = "is_test",
               kBroadcast[] = "broadcast";

}  // namespace

std::vector<Adapter> onnx_adapters() {
  std::vector<Adapter> adapters{
      {"BatchNormalization", "", 1, 6, without_attribute<kIsTest>},
      {"BatchNormalization", "", 1, 13, batch_norm},
      {"BatchNormalization", "", 1, 13, without_attribute<kMomentum>},
      {"Concat", "", 1, 3, concat_axis},
      {"DFT", "", 17, 19, dft},
      {"Dropout", "", 1, 6, without_attribute<kIsTest>},
      {"Gemm", "", 1, 6, without_attribute<kBroadcast>},
      {"GridSample", "", 16, 19, grid_sample},
      {"GroupNormalization", "", 18, 20, group_norm},
      {"Hardmax", "", 1, 12, flattening_softmax},
      {"LogSoftmax", "", 1, 12, flattening_softmax},
      {"OptionalGetElement", "", 18, kAll, get_element},
      {"OptionalHasElement", "", 15, kAll, has_element},
      {"PRelu", "", 1, 6, slope_by_channel},
      {"Pad", "", 1, 1, first_pad},
      {"Reshape", "", 1, 4, shape_attribute},
      {"Resize", "", 10, 10, first_resize},
      {"Resize", "", 11, kAll, resize_without_empty_inputs},
      {"RoiAlign", "", 10, 15, roi_align},
      {"Scan", "", 8, 8, first_scan},
      {"Scatter", "", 9, 10, scatter},
      {"SimplifiedLayerNormalization", "", 1, kAll, simplified_layer_norm},
      {"Softmax", "", 1, 12, flattening_softmax},
      {"Split", "", 1, 17, split_by_outputs},
      {"TopK", "", 1, 9, top_k},
      {"Upsample", "", 7, 9, upsample},
  };
  for (const char* op : {"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"})
    adapters.push_back({op, "", 1, 6, place_operand});
  // A hint of the oldest opset: which inputs may be overwritten.
  for (const char* op : {"Abs",       "Add",         "BatchNormalization",
                         "Ceil",      "Clip",        "Div",
                         "Dropout",   "Elu",         "Exp",
                         "Floor",     "HardSigmoid", "InstanceNormalization",
                         "LeakyRelu", "Log",         "Max",
                         "Mean",      "Min",         "Mul",
                         "Neg",       "PRelu",       "Reciprocal",
                         "Relu",      "Reshape",     "Selu",
                         "Sigmoid",   "Sqrt",        "Sub",
                         "Sum",       "Tanh"})
    adapters.push_back({op, "", 1, 5, without_attribute<kConsumedInputs>});
  return adapters;
}

}  // namespace tensmith::graph
