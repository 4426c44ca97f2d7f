// Facts about the machine code of every default kernel of some models, one JSON line a kernel: asm_guard.py judges
// them.
//
//   tensmith_asm_guard LIST.json TARGET     LIST.json as tests/harness/batch.py writes it (inputs give open dims)
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <string>

#include "apps/driver/compile.h"
#include "codegen/asm_guard.h"
#include "graph/import/specialize.h"
#include "runtime/base/files.h"
#include "runtime/base/sha256.h"
#include "runtime/npy.h"
#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith {
namespace {

template <typename T>
T take(Result<T> result) {
  if (!result) throw UserError(result.failure().id, result.failure().message);
  return std::move(result).value();
}

/// The model with open dims and what decides shapes taken from the entry's arrays.
graph::Graph import_entry(const Json& entry) {
  const std::string path = entry.at("model").get<std::string>();
  graph::ImportOptions options;
  std::map<std::string, HostTensor> arrays;
  for (const Json& input : entry.value("inputs", Json::array())) {
    HostTensor array = take(read_npy(input.at("file").get<std::string>()));
    options.input_shapes[input.at("name").get<std::string>()] = array.shape();
    arrays.emplace(input.at("name").get<std::string>(), std::move(array));
  }
  graph::ImportResult imported = graph::import_onnx(path, options);
  if (arrays.empty() || graph::has_known_shapes(imported)) return std::move(imported).take();
  std::map<std::string, graph::Constant> constants;
  for (graph::NodeId id : imported.graph.inputs) {
    const auto array = arrays.find(imported.graph.value_name({id, 0}));
    const DType dtype = imported.graph.node(id).types[0].dtype;
    if (array == arrays.end() || array->second.dtype() != dtype) continue;
    graph::Constant constant = graph::Constant::allocate(dtype, array->second.shape());
    std::memcpy(constant.mutable_data(), array->second.raw(), static_cast<size_t>(constant.num_bytes()));
    constants.emplace(array->first, std::move(constant));
  }
  auto special = graph::specialize_shapes(path, options, constants);
  return special ? std::move(special->import).take() : std::move(imported).take();
}

bool has_load(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& part) {
    found = found || part.as<Load>();
    return !found;
  });
  return found;
}

/// What a sum of products in the workload multiplies: the dtype, or "" when there is none.
std::string product_type(const Workload& workload) {
  for (const Stage& stage : workload.stages) {
    if (!stage->reducer || stage->reduce_axes.empty() || stage->reducer->name != "sum") continue;
    for (const Expr& body : stage->bodies) {
      bool product = false;
      visit(body, [&](const Expr& e) {
        const auto* mul = e.as<Binary>();
        product = product || (mul && mul->op == BinaryOp::kMul && has_load(mul->a) && has_load(mul->b));
        return !product;
      });
      if (product) return to_string(body.dtype());
    }
  }
  return "";
}

Json facts_of(const AsmLoop& loop) {
  return {{"instructions", loop.instructions},
          {"fmas", loop.fmas},
          {"scalar_fmas", loop.scalar_fmas},
          {"stack", loop.stack_references},
          {"spills", loop.vector_spills},
          {"gathers", loop.gathers + loop.scatters},
          {"calls", loop.calls},
          {"vector_bits", loop.vector_bits},
          {"narrow_fmas", loop.narrow_fmas}};
}

Json facts_of(const CompiledKernel& kernel) {
  Json functions = Json::array();
  for (const AsmFunction& function : inspect_assembly(kernel.assembly)) {
    Json loops = Json::array();
    for (const AsmLoop& loop : function.loops) loops.push_back(facts_of(loop));
    functions.push_back({{"name", function.name}, {"callees", function.callees}, {"loops", loops}});
  }
  return {{"kernel", kernel.name},
          {"node", kernel.first_node},
          {"ops", kernel.ops},
          {"plain", kernel.is_plain},
          {"flops", kernel.cost.flops},
          {"bytes", kernel.cost.bytes},
          {"product", product_type(kernel.schedule.workload())},
          {"floats", kernel.lowered.function.buffers.back()->dtype == kFloat32},
          {"code", sha256_hex(kernel.assembly)},
          {"functions", functions}};
}

int main_with(const std::string& list, const std::string& target_text) {
  const Target target = take(Target::parse(target_text));
  const Json entries = take(parse_json(take(read_file(list)))).at("entries");
  for (const Json& entry : entries) {
    Json line = {{"model", entry.at("id")}, {"target", target_text}, {"kernels", Json::array()}};
    try {
      graph::Graph graph = import_entry(entry);
      CompileOptions options;
      options.target = target;
      options.threads = 1;
      options.want_asm = true;
      for (const CompiledKernel& kernel : compile_graph(graph, options).kernels)
        line["kernels"].push_back(facts_of(kernel));
    } catch (const Error& e) {
      line["error"] = std::string(e.id()) + ": " + e.message().substr(0, 500);
      line["refused"] = e.kind() == ErrorKind::kUnsupported;
    }
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace tensmith

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tensmith_asm_guard LIST.json TARGET\n");
    return 2;
  }
  try {
    return tensmith::main_with(argv[1], argv[2]);
  } catch (const tensmith::Error& e) {
    std::fprintf(stderr, "asm_guard: %s\n", e.what());
    return tensmith::exit_code(e.kind());
  }
}
