#include "apps/driver/main_program.h"

#include <algorithm>
#include <cstring>

#include "apps/driver/pack.h"
#include "graph/partition/memory_plan.h"

namespace tensmith {

namespace {

constexpr int64_t kAlignment = 64;

int64_t round_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t buffer_bytes(const Buffer& buffer) {
  int64_t bytes = buffer->dtype.bytes();
  for (const Expr& extent : buffer->shape) {
    int64_t value;
    TS_CHECK(as_const_int(extent, &value)) << buffer->name << " has a symbolic shape";
    TS_CHECK(!__builtin_mul_overflow(bytes, value, &bytes)) << buffer->name;
  }
  return bytes;
}

}  // namespace

MainProgramBuilder::MainProgramBuilder(const graph::Graph& graph, const graph::LayoutMap& layouts, std::string prefix)
    : graph_(graph), layouts_(layouts), prefix_(std::move(prefix)) {
  for (size_t k = 0; k < graph.inputs.size(); ++k)
    places_[{graph.inputs[k], 0}] = {Home::kInput, static_cast<int>(k), 0};
}

graph::Value MainProgramBuilder::resolve(graph::Value value) const {
  for (auto it = alias_.find(value); it != alias_.end(); it = alias_.find(value)) value = it->second;
  return value;
}

bool MainProgramBuilder::try_alias(const graph::Group& group) {
  if (!group.is_view) return false;
  const graph::Node& node = graph_.node(group.nodes[0]);
  const graph::Value out{node.id, 0}, in = node.inputs[0];
  if (layouts_.count(out) || layouts_.count(in) || graph_.constant(in)) return false;
  if (std::find(graph_.outputs.begin(), graph_.outputs.end(), out) != graph_.outputs.end()) return false;
  alias_[out] = in;
  return true;
}

void MainProgramBuilder::add_call(const graph::Group&, const graph::GroupWorkload& work, int kernel) {
  calls_.push_back({kernel, work.inputs, work.outputs, {}});
}

Expr MainProgramBuilder::address(const Place& place) const {
  const auto at = [](const Buffer& buffer, int64_t offset) {
    return Call::make(kHandle, Intrinsic::kAddressOf, {Load::make(buffer, {Expr(offset)})});
  };
  switch (place.home) {
    case Home::kInput: return at(inputs_[place.index], 0);
    case Home::kOutput: return at(outputs_[place.index], 0);
    case Home::kWeights: return at(weights_, place.offset);
    case Home::kArena: return at(arena_, offsets_[place.index]);
  }
  return {};
}

void MainProgramBuilder::finish(CompiledProgram& program) {
  // Outputs of the graph are written where the caller wants them; an output that stands twice, or is an input or a
  // constant, is copied behind the last kernel.
  std::map<graph::Value, int> output_home;
  for (size_t k = 0; k < graph_.outputs.size(); ++k) {
    const graph::Value value = graph_.outputs[k];
    if (!graph_.constant(value) && resolve(value) == value && !places_.count(value))
      output_home.try_emplace(value, static_cast<int>(k));
  }
  for (const auto& [value, index] : output_home) places_[value] = {Home::kOutput, index, 0};

  // Memory of the values between kernels and of workspaces, by the calls that use them.
  std::vector<graph::MemoryRequest> requests;
  std::map<std::pair<const void*, std::string>, int64_t> packed;
  struct Packing {
    const graph::Constant* constant;
    Layout layout;
    int64_t offset;
  };
  std::vector<Packing> packings;
  std::map<std::pair<graph::Value, std::string>, int64_t> weight_place;
  int64_t weight_bytes = 0;
  const auto place_constant = [&](graph::Value value, const Layout& wanted) {
    const graph::Constant& constant = *graph_.constant(value);
    const Layout layout = wanted.dims().empty() ? Layout::row_major(static_cast<int>(constant.shape().size())) : wanted;
    const auto key = std::pair(constant.data(), layout.text());
    auto [it, fresh] = packed.try_emplace(key, weight_bytes);
    if (fresh) {
      packings.push_back({&constant, layout, weight_bytes});
      weight_bytes += round_up(packed_bytes(constant, layout));
    }
    return it->second;
  };
  for (size_t c = 0; c < calls_.size(); ++c) {
    Step& call = calls_[c];
    const LoweredKernel& kernel = program.kernels[call.kernel].lowered;
    const int step = static_cast<int>(c);
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const graph::Value value = resolve(call.inputs[k]);
      if (graph_.constant(value)) {
        weight_place[{value, kernel.input_layouts[k].text()}] = place_constant(value, kernel.input_layouts[k]);
      } else if (const Place& place = places_.at(value); place.home == Home::kArena) {
        requests[place.index].last = std::max(requests[place.index].last, step);
      }
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (places_.count(call.outputs[k])) continue;
      places_[call.outputs[k]] = {Home::kArena, static_cast<int>(requests.size()), 0};
      requests.push_back({buffer_bytes(kernel.function.buffers[kernel.num_inputs + k]), step, step});
    }
    for (int w = 0; w < kernel.num_workspaces; ++w) {
      call.workspaces.push_back(static_cast<int>(requests.size()));
      requests.push_back(
          {buffer_bytes(kernel.function.buffers[kernel.num_inputs + kernel.num_outputs + w]), step, step});
    }
  }
  // Outputs that need a copy keep their source until the end.
  const int end = static_cast<int>(calls_.size());
  for (const graph::Value& output : graph_.outputs) {
    const graph::Value value = resolve(output);
    if (const auto it = places_.find(value); it != places_.end() && it->second.home == Home::kArena)
      requests[it->second.index].last = end;
  }
  const graph::MemoryPlan plan = graph::plan_memory(requests, kAlignment);
  offsets_ = plan.offsets;

  program.weights = std::make_shared<WeightBytes>();
  for (size_t k = 0; k < graph_.outputs.size(); ++k)
    if (graph_.constant(graph_.outputs[k])) place_constant(graph_.outputs[k], {});
  program.weights->resize(std::max<int64_t>(weight_bytes, kAlignment));
  for (const Packing& p : packings) pack(*p.constant, p.layout, program.weights->data() + p.offset);
  program.arena_bytes = std::max<int64_t>(plan.arena_bytes, kAlignment);
  program.stats.arena_bytes = plan.arena_bytes;
  program.stats.arena_lower_bound = plan.lower_bound;
  program.stats.weight_bytes = weight_bytes;

  // main.
  const auto element_buffer = [](const std::string& name, const graph::TensorType& type) {
    int64_t count = 1;
    for (int64_t extent : type.static_shape()) count *= extent;
    return make_buffer(name, type.dtype, {Expr(std::max<int64_t>(count, 1))}, Scope::kGlobal,
                       static_cast<int>(type.dtype.bytes()));
  };
  for (graph::NodeId id : graph_.inputs)
    inputs_.push_back(element_buffer("input" + std::to_string(inputs_.size()), graph_.type({id, 0})));
  for (const graph::Value& output : graph_.outputs)
    outputs_.push_back(element_buffer("output" + std::to_string(outputs_.size()), graph_.type(output)));
  weights_ = make_buffer("weights", kUInt8, {Expr(static_cast<int64_t>(program.weights->size()))});
  arena_ = make_buffer("arena", kUInt8, {Expr(program.arena_bytes)});

  std::vector<Stmt> body;
  for (size_t c = 0; c < calls_.size(); ++c) {
    const Step& call = calls_[c];
    const LoweredKernel& kernel = program.kernels[call.kernel].lowered;
    std::vector<Expr> args;
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const graph::Value value = resolve(call.inputs[k]);
      if (graph_.constant(value))
        args.push_back(address({Home::kWeights, 0, weight_place.at({value, kernel.input_layouts[k].text()})}));
      else args.push_back(address(places_.at(value)));
    }
    for (const graph::Value& value : call.outputs) args.push_back(address(places_.at(value)));
    for (int request : call.workspaces) args.push_back(address({Home::kArena, request, 0}));
    const auto observe = [&](int is_end) {
      return Evaluate::make(Call::make_extern(
          kInt32, "tensmith_on_kernel", {IntImm::make(kInt32, static_cast<int64_t>(c)), IntImm::make(kInt32, is_end)}));
    };
    body.push_back(observe(0));
    body.push_back(Evaluate::make(Call::make_extern(kInt32, kernel.function.name, args)));
    body.push_back(observe(1));
  }
  for (size_t k = 0; k < graph_.outputs.size(); ++k) {
    const graph::Value value = graph_.outputs[k], source = resolve(value);
    const auto home = output_home.find(value);
    if (home != output_home.end() && home->second == static_cast<int>(k)) continue;
    // A plain copy in loop IR over bytes.
    const Buffer& to = outputs_[k];
    int64_t count;
    TS_CHECK(as_const_int(to->shape[0], &count)) << to->name;
    const Var i("i");
    if (const graph::Constant* constant = graph_.constant(source)) {
      // Through a typed view of the weights there is none; bytes are exact for every type.
      const int64_t offset =
          packed.at({constant->data(), Layout::row_major(static_cast<int>(constant->shape().size())).text()});
      body.push_back(
          Evaluate::make(Call::make_extern(kHandle, "memcpy",
                                           {address({Home::kOutput, static_cast<int>(k), 0}),
                                            address({Home::kWeights, 0, offset}), Expr(count * to->dtype.bytes())})));
      continue;
    }
    body.push_back(Evaluate::make(Call::make_extern(kHandle, "memcpy",
                                                    {address({Home::kOutput, static_cast<int>(k), 0}),
                                                     address(places_.at(source)), Expr(count * to->dtype.bytes())})));
  }
  if (body.empty()) body.push_back(Evaluate::make(Expr(0)));
  LoopFunction main;
  main.name = prefix_ + "main";
  main.buffers = inputs_;
  main.buffers.insert(main.buffers.end(), outputs_.begin(), outputs_.end());
  main.buffers.push_back(weights_);
  main.buffers.push_back(arena_);
  main.outputs = outputs_;
  main.outputs.push_back(arena_);
  main.body = Block::make(body);

  LoopFunction packed_main;
  packed_main.name = prefix_ + "main_packed";
  const Buffer table =
      make_buffer("table", kHandle, {Expr(static_cast<int64_t>(main.buffers.size()))}, Scope::kGlobal, 8);
  packed_main.buffers = {table, make_buffer("dims", kInt64, {Expr(1)}, Scope::kGlobal, 8)};
  std::vector<Expr> pointers;
  for (size_t k = 0; k < main.buffers.size(); ++k)
    pointers.push_back(Load::make(table, {Expr(static_cast<int64_t>(k))}));
  packed_main.body = Evaluate::make(Call::make_extern(kInt32, main.name, pointers));
  program.main = main;
  for (const CompiledKernel& kernel : program.kernels) {
    LoopFunction declaration = kernel.lowered.function;
    declaration.body = {};
    declaration.attrs[kDeclaration] = 1;
    functions_.functions.push_back(declaration);
  }
  functions_.functions.push_back(main);
  functions_.functions.push_back(packed_main);
}

}  // namespace tensmith
