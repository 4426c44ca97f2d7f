#include "graph/ops/op_list.h"

#include <algorithm>
#include <map>

namespace tensmith::graph {

namespace {

/// All definitions, by domain and name. Built once; the addresses stay.
const std::vector<OpDef>& definitions() {
  static const std::vector<OpDef> all = [] {
    std::vector<OpDef> list;
    const auto add = [&](OpDef op) { list.push_back(std::move(op)); };
    const auto add_table = [&](std::vector<OpDef> table) {
      for (OpDef& op : table) list.push_back(std::move(op));
    };
    // One line per operator file, alphabetical: add(ops::softmax()); or add_table(ops::unary());
    add_table(ops::activations());
    add(ops::affine_grid());
    add_table(ops::arg_reduce());
    add(ops::attention());
    add(ops::average_pool());
    add(ops::batch_normalization());
    add_table(ops::bias_gelu());
    add_table(ops::binary_math());
    add(ops::bit_cast());
    add(ops::cast_like());
    add(ops::cast_op());
    add(ops::causal_conv_with_state());
    add(ops::center_crop_pad());
    add(ops::clip());
    add(ops::col2im());
    add(ops::compress());
    add(ops::concat());
    add(ops::constant());
    add(ops::constant_of_shape());
    add_table(ops::control_flow());
    add(ops::conv());
    add(ops::conv_integer());
    add(ops::conv_transpose());
    add_table(ops::cross_entropy());
    add_table(ops::cumulative());
    add_table(ops::depth_space());
    add(ops::deform_conv());
    add(ops::dequantize_linear());
    add(ops::det());
    add(ops::dft());
    add(ops::dropout());
    add(ops::dynamic_quantize_linear());
    add(ops::einsum());
    add(ops::expand());
    add(ops::eye_like());
    add(ops::flatten());
    add(ops::fused_conv());
    add(ops::fused_matmul());
    add(ops::gather());
    add(ops::gather_elements());
    add(ops::gather_nd());
    add(ops::gemm());
    add_table(ops::global_pool());
    add(ops::greater_else());
    add(ops::grid_sample());
    add(ops::group_normalization());
    add(ops::identity());
    add(ops::input());
    add(ops::instance_normalization());
    add(ops::interleave());
    add(ops::layer_normalization());
    add(ops::linear_attention());
    add(ops::lp_normalization());
    add(ops::lp_pool());
    add(ops::lrn());
    add(ops::matmul());
    add(ops::matmul_integer());
    add(ops::max_pool());
    add(ops::max_roi_pool());
    add(ops::max_unpool());
    add(ops::mean_variance_normalization());
    add(ops::mel_weight_matrix());
    add(ops::non_max_suppression());
    add(ops::non_zero());
    add(ops::one_hot());
    add(ops::pad());
    add(ops::pow());
    add(ops::prelu());
    add(ops::qlinear_conv());
    add(ops::qlinear_matmul());
    add(ops::quantize_linear());
    add(ops::range());
    add(ops::recurrence());
    add_table(ops::recurrent());
    add_table(ops::reduce_table());
    add(ops::reshape());
    add(ops::resize());
    add(ops::reverse_sequence());
    add(ops::rms_normalization());
    add(ops::roi_align());
    add(ops::rotary_embedding());
    add(ops::scatter_elements());
    add(ops::scatter_nd());
    add(ops::shape());
    add(ops::size());
    add_table(ops::skip_layer_normalization());
    add(ops::slice());
    add_table(ops::softmax());
    add(ops::split());
    add(ops::squeeze());
    add(ops::stft());
    add(ops::tensor_scatter());
    add_table(ops::tf_idf_vectorizer());
    add(ops::tile());
    add(ops::to_channels());
    add(ops::to_rows());
    add(ops::top_k());
    add(ops::transpose());
    add(ops::trilu());
    add_table(ops::unary_math());
    add(ops::unique());
    add(ops::unsqueeze());
    add_table(ops::variadic());
    add(ops::where());
    add_table(ops::window_functions());
    add(ops::winograd_conv());
    std::sort(list.begin(), list.end(),
              [](const OpDef& a, const OpDef& b) { return std::tie(a.domain, a.name) < std::tie(b.domain, b.name); });
    for (size_t k = 1; k < list.size(); ++k)
      TS_CHECK(list[k].name != list[k - 1].name || list[k].domain != list[k - 1].domain)
          << "operator " << list[k].name << " is defined twice";
    return list;
  }();
  return all;
}

}  // namespace

std::span<const OpDef* const> all_ops() {
  static const std::vector<const OpDef*> pointers = [] {
    std::vector<const OpDef*> list;
    for (const OpDef& op : definitions()) list.push_back(&op);
    return list;
  }();
  return pointers;
}

const OpDef* find_op(std::string_view name, std::string_view domain) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const OpDef*> index = [] {
    std::map<Key, const OpDef*> map;
    for (const OpDef& op : definitions()) map.emplace(Key{op.domain, op.name}, &op);
    return map;
  }();
  const auto found = index.find(Key{domain == "ai.onnx" ? "" : domain, name});
  return found == index.end() ? nullptr : found->second;
}

}  // namespace tensmith::graph
