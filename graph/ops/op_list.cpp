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
    add_table(ops::arg_reduce());
    add(ops::batch_normalization());
    add_table(ops::binary_math());
    add(ops::cast_like());
    add(ops::cast_op());
    add(ops::clip());
    add(ops::concat());
    add(ops::constant());
    add(ops::constant_of_shape());
    add(ops::conv());
    add_table(ops::cumulative());
    add(ops::dropout());
    add(ops::expand());
    add(ops::flatten());
    add(ops::fused_matmul());
    add(ops::gather());
    add(ops::gather_elements());
    add(ops::gather_nd());
    add(ops::gemm());
    add(ops::group_normalization());
    add(ops::identity());
    add(ops::input());
    add(ops::instance_normalization());
    add(ops::layer_normalization());
    add(ops::lp_normalization());
    add(ops::lrn());
    add(ops::matmul());
    add(ops::mean_variance_normalization());
    add(ops::pad());
    add(ops::pow());
    add(ops::prelu());
    add(ops::range());
    add_table(ops::reduce_table());
    add(ops::reshape());
    add(ops::rms_normalization());
    add(ops::scatter_elements());
    add(ops::scatter_nd());
    add(ops::shape());
    add(ops::size());
    add(ops::slice());
    add_table(ops::softmax());
    add(ops::split());
    add(ops::squeeze());
    add(ops::tensor_scatter());
    add(ops::tile());
    add(ops::transpose());
    add_table(ops::unary_math());
    add(ops::unsqueeze());
    add_table(ops::variadic());
    add(ops::where());
    std::sort(list.begin(), list.end(), [](const OpDef& a, const OpDef& b) { return std::tie(a.domain, a.name) < std::tie(b.domain, b.name); });
    for (size_t k = 1; k < list.size(); ++k)
      TS_CHECK(list[k].name != list[k - 1].name || list[k].domain != list[k - 1].domain) << "operator " << list[k].name << " is defined twice";
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
