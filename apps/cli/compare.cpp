#include "apps/cli/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "apps/cli/model.h"

namespace tensmith::cli {

Comparison compare(const HostTensor& got, const HostTensor& wanted, double rtol, double atol, bool scale_atol) {
  Comparison c;
  std::ostringstream text;
  HostTensor reinterpreted;
  const HostTensor* want = &wanted;
  if (got.dtype().is_float() && got.dtype().bits == 16 && wanted.dtype() == kUInt16 && got.shape() == wanted.shape()) {
    reinterpreted = HostTensor(got.shape(), got.dtype());
    std::memcpy(reinterpreted.raw(), wanted.raw(), wanted.bytes());
    want = &reinterpreted;
  }
  // Files have no 4-bit types: one element a byte.
  const bool narrow = got.dtype().is_integral() && got.dtype().bits == 4 && want->dtype().bits == 8 &&
                      want->dtype().code == got.dtype().code;
  if ((got.dtype() != want->dtype() && !narrow) || got.shape() != want->shape()) {
    text << "expected " << to_string(want->dtype()) << " of " << want->size() << " elements and rank "
         << want->shape().size() << ", got " << to_string(got.dtype()) << " of " << got.size() << " elements and rank "
         << got.shape().size();
    c.text = text.str();
    c.max_abs = INFINITY;
    return c;
  }
  for (int64_t k = 0; k < want->size(); ++k)
    if (const double w = std::fabs(want->get(k)); std::isfinite(w)) c.scale = std::max(c.scale, w);
  const double allowed = scale_atol ? atol * std::max(c.scale, 1e-30) : atol;
  c.same = true;
  for (int64_t k = 0; k < want->size(); ++k) {
    if (!got.dtype().is_float()) {
      // Exact, but for the last step of a quantised value.
      const int64_t g = got.get_int(k), w = want->get_int(k);
      const double difference = std::fabs(static_cast<double>(g) - static_cast<double>(w));
      c.max_abs = std::max(c.max_abs, difference);
      const bool ok = g == w || (got.dtype().bits == 8 && !got.dtype().is_bool() && scale_atol && difference <= 1);
      if (!ok && c.same) {
        c.same = false;
        text << "element " << k << ": expected " << w << ", got " << g;
      }
      continue;
    }
    const double g = got.get(k), w = want->get(k);
    if (std::isnan(g) && std::isnan(w)) continue;
    const double difference = g == w ? 0 : std::fabs(g - w);
    if (difference > c.max_abs || std::isnan(difference)) c.max_abs = std::isnan(difference) ? INFINITY : difference;
    const bool ok = g == w || (std::isfinite(g) && std::isfinite(w) && difference <= allowed + rtol * std::fabs(w));
    if (!ok && c.same) {
      c.same = false;
      text << "element " << k << ": expected " << w << ", got " << g;
    }
  }
  c.text = text.str();
  return c;
}

graph::RefTensor to_reference(const HostTensor& tensor) {
  graph::RefTensor ref = graph::make_ref_tensor(tensor.dtype(), tensor.shape());
  for (int64_t k = 0; k < tensor.size(); ++k) {
    if (ref.is_float()) ref.f[k] = tensor.get(k);
    else ref.i[k] = tensor.get_int(k);
  }
  return ref;
}

HostTensor from_reference(const graph::RefTensor& ref) {
  HostTensor tensor(ref.shape, ref.dtype);
  for (int64_t k = 0; k < tensor.size(); ++k) {
    if (ref.is_float()) tensor.set(k, ref.f[k]);
    else tensor.set_int(k, ref.i[k]);
  }
  return tensor;
}

namespace {

std::vector<graph::RefTensor> interpreted(const graph::Graph& graph, const std::vector<HostTensor>& inputs,
                                          double noise) {
  std::vector<graph::RefTensor> references;
  for (const HostTensor& input : inputs) references.push_back(to_reference(input));
  graph::InterpretOptions options;
  options.round_each = noise > 0;
  options.noise = noise;
  return take(graph::interpret(graph, std::move(references), options));
}

std::vector<HostTensor> as_arrays(const std::vector<graph::RefTensor>& results) {
  std::vector<HostTensor> arrays;
  for (const graph::RefTensor& ref : results) arrays.push_back(from_reference(ref));
  return arrays;
}

}  // namespace

std::vector<HostTensor> interpreter_outputs(const graph::Graph& graph, const std::vector<HostTensor>& inputs) {
  return as_arrays(interpreted(graph, inputs, /*noise=*/0));
}

std::vector<HostTensor> exact_outputs(const graph::Graph& graph, const std::vector<HostTensor>& inputs) {
  std::vector<graph::RefTensor> results = interpreted(graph, inputs, /*noise=*/0);
  for (graph::RefTensor& ref : results)
    if (ref.is_float()) ref.dtype = kFloat64;
  return as_arrays(results);
}

std::vector<HostTensor> rounded_outputs(const graph::Graph& graph, const std::vector<HostTensor>& inputs) {
  return as_arrays(interpreted(graph, inputs, /*noise=*/1e-6));
}

NodeReport compare_per_node(const graph::Graph& graph, const Options& options, std::vector<HostTensor>& inputs) {
  // Every float value becomes an output; without fusion each is what its operator gives from the compiled values before
  // it.
  graph::Graph all = graph.clone();
  std::vector<graph::Value> values;
  std::vector<std::string> names;
  for (graph::NodeId id : all.topological_order()) {
    const graph::Node& node = all.node(id);
    if (node.op->name == "Input" || node.op->name == "Constant") continue;
    for (size_t o = 0; o < node.types.size(); ++o) {
      values.push_back({id, static_cast<int>(o)});
      names.push_back(all.value_name(values.back()));
    }
  }
  graph::GraphEditor(all).set_outputs(values, names);
  const graph::Graph reference = all.clone();
  CompileOptions compile = compile_options(options);
  compile.opt_level = 0;
  auto program = std::make_shared<CompiledProgram>(compile_graph(all, compile));
  const Module module = load_program(program);
  Instance instance = make_instance(module, options);
  const std::vector<HostTensor> got = take(instance.run(inputs));
  const std::vector<HostTensor> want = interpreter_outputs(reference, inputs);
  std::ostringstream report;
  int wrong = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    const Comparison c = compare(got[k], want[k], options.rtol, options.atol, /*scale_atol=*/true);
    if (c.same) continue;
    const graph::Node& node = reference.node(values[k].node);
    if (wrong++ == 0) report << "first difference: ";
    report << node.name << " (" << node.op->name << ") output " << names[k] << ": " << c.text << "\n";
  }
  report << got.size() - wrong << " of " << got.size() << " values agree\n";
  return {static_cast<int>(got.size()), wrong, report.str()};
}

}  // namespace tensmith::cli
