#include "apps/driver/main_program.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "apps/driver/index_check.h"
#include "apps/driver/pack.h"
#include "graph/partition/memory_plan.h"
#include "schedule/lower/in_place.h"

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

/// What one packed weight is made of. Constants of several shapes may share their bytes (a Reshape, two initialisers at
/// one place of a file), and the text of a layout says nothing of sizes.
using PackedKey = std::tuple<const void*, std::string, std::vector<int64_t>, std::string>;

PackedKey packed_key(const graph::Constant& constant, const Layout& layout) {
  return {constant.data(), to_string(constant.dtype()), constant.shape(), layout.text()};
}

}  // namespace

MainProgramBuilder::MainProgramBuilder(const graph::Graph& graph, const graph::LayoutMap& layouts,
                                       const graph::PlacementPlan& placements, std::string prefix)
    : graph_(graph), layouts_(layouts), placements_(placements), prefix_(std::move(prefix)) {
  for (size_t k = 0; k < graph.inputs.size(); ++k)
    places_[{graph.inputs[k], 0}] = {Home::kInput, static_cast<int>(k), 0};
}

graph::Value MainProgramBuilder::base_of(graph::Value value) const {
  const auto it = placements_.places.find(value);
  return it == placements_.places.end() ? value : it->second.base;
}

MainProgramBuilder::Place MainProgramBuilder::place_of(graph::Value value) const {
  Place place = places_.at(base_of(value));
  if (const auto it = placements_.places.find(value); it != placements_.places.end())
    place.offset += it->second.offset * graph_.type(value).dtype.bytes();
  return place;
}

int64_t MainProgramBuilder::bytes_of(graph::Value base) const {
  const graph::TensorType& type = graph_.type(base);
  std::vector<int64_t> shape = type.static_shape();
  if (const auto it = layouts_.find(base); it != layouts_.end() && !it->second.dims().empty())
    shape = it->second.physical_shape(shape);
  int64_t bytes = type.dtype.bytes();
  for (int64_t extent : shape) TS_CHECK(!__builtin_mul_overflow(bytes, extent, &bytes)) << graph_.value_name(base);
  return bytes;
}

void MainProgramBuilder::add_call(const graph::GroupWorkload& work, int kernel,
                                  std::vector<graph::IndexLimits> limits) {
  calls_.push_back({kernel, work.inputs, work.outputs, {}, std::move(limits)});
}

std::vector<Stmt> MainProgramBuilder::index_checks(const Step& call, CompiledProgram& program) {
  std::vector<Stmt> checks;
  for (const graph::IndexLimits& limits : call.limits) {
    const auto found = std::find(call.inputs.begin(), call.inputs.end(), limits.indices);
    const graph::Node& node = graph_.node(limits.node);
    TS_CHECK(found != call.inputs.end()) << node.name << ": its indices lie in no memory";
    const graph::TensorType& type = graph_.type(limits.indices);
    const std::vector<int64_t> shape = type.static_shape();
    if (std::count(shape.begin(), shape.end(), 0) != 0) continue;
    if (!checked_.insert({limits.indices, limits.extents}).second) continue;
    const CompiledKernel& kernel = program.kernels[call.kernel];
    std::string ranges;
    for (int64_t extent : limits.extents)
      ranges += (ranges.empty() ? "" : "; ") + std::to_string(-extent) + " to " + std::to_string(extent - 1);
    IndexCheck check;
    check.name = prefix_ + "check_indices" + std::to_string(program.messages.size());
    check.dtype = type.dtype;
    check.shape = shape;
    check.layout = kernel.lowered.input_layouts[static_cast<size_t>(found - call.inputs.begin())];
    check.extents = limits.extents;
    check.code = static_cast<int>(program.messages.size()) + 1;
    check.message = "node " + node.name + " (" + node.op->name + ", kernel " + kernel.name + "): input " +
                    node.op->inputs[static_cast<size_t>(limits.input)].name + ": expected indices from " + ranges +
                    ", got one outside; check the data that they come from";
    program.messages.push_back(check.message);
    functions_.functions.push_back(index_check(check));
    checks.push_back(Evaluate::make(Call::make_extern(kInt32, check.name, {address(place_of(limits.indices))})));
  }
  return checks;
}

Expr MainProgramBuilder::address(const Place& place) const {
  const auto at = [](const Buffer& buffer, int64_t offset) {
    return Call::make(kHandle, Intrinsic::kAddressOf, {Load::make(buffer, {Expr(offset)})});
  };
  switch (place.home) {
    case Home::kInput: return at(inputs_[place.index], place.offset / inputs_[place.index]->dtype.bytes());
    case Home::kOutput: return at(outputs_[place.index], place.offset / outputs_[place.index]->dtype.bytes());
    case Home::kWeights: return at(weights_, place.offset);
    case Home::kArena: return at(arena_, offsets_[place.index] + place.offset);
  }
  return {};
}

void MainProgramBuilder::finish(CompiledProgram& program) {
  // Outputs of the graph are written where the caller wants them; an output that stands twice, or is an input or a
  // constant, is copied behind the last kernel.
  std::map<graph::Value, int> output_home;
  for (size_t k = 0; k < graph_.outputs.size(); ++k) {
    const graph::Value value = graph_.outputs[k];
    if (!graph_.constant(value) && base_of(value) == value && !places_.count(value))
      output_home.try_emplace(value, static_cast<int>(k));
  }
  for (const auto& [value, index] : output_home) places_[value] = {Home::kOutput, index, 0};

  // Memory of the values between kernels and of workspaces, by the calls that use them.
  std::vector<graph::MemoryRequest> requests;
  std::map<PackedKey, int64_t> packed;
  std::vector<ProgramWeights::Piece> pieces;
  std::map<std::pair<graph::Value, std::string>, int64_t> weight_place;
  int64_t weight_bytes = 0;
  const auto place_constant = [&](graph::Value value, const Layout& wanted) {
    const graph::Constant& constant = *graph_.constant(value);
    const Layout layout = wanted.dims().empty() ? Layout::row_major(static_cast<int>(constant.shape().size())) : wanted;
    auto [it, fresh] = packed.try_emplace(packed_key(constant, layout), weight_bytes);
    if (fresh) {
      pieces.push_back({constant, layout, weight_bytes});
      weight_bytes += round_up(packed_bytes(constant, layout));
    }
    return it->second;
  };
  const int end = static_cast<int>(calls_.size());
  std::map<graph::Value, int> last_read;  // of bases
  for (size_t c = 0; c < calls_.size(); ++c)
    for (const graph::Value& value : calls_[c].inputs) last_read[base_of(value)] = static_cast<int>(c);
  for (const graph::Value& output : graph_.outputs) last_read[base_of(output)] = end;
  for (size_t c = 0; c < calls_.size(); ++c) {
    Step& call = calls_[c];
    const LoweredKernel& kernel = program.kernels[call.kernel].lowered;
    const int step = static_cast<int>(c);
    // The operand whose memory result `k` takes over: the kernel allows it, and nobody reads the operand afterwards.
    const auto operand_to_overwrite = [&](size_t k, int64_t bytes) -> const Place* {
      for (const InPlacePair& pair : in_place_pairs(program.kernels[call.kernel].schedule)) {
        if (pair.output != static_cast<int>(k)) continue;
        const graph::Value value = call.inputs[static_cast<size_t>(pair.input)], base = base_of(value);
        const auto place = places_.find(base);
        if (place == places_.end() || place->second.home != Home::kArena || last_read.at(base) != step) continue;
        if (place_of(value).offset != 0 || requests[place->second.index].bytes != bytes) continue;
        if (std::count_if(call.inputs.begin(), call.inputs.end(),
                          [&](const graph::Value& v) { return base_of(v) == base; }) == 1)
          return &place->second;
      }
      return nullptr;
    };
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const graph::Value value = call.inputs[k];
      if (graph_.constant(value)) {
        weight_place[{value, kernel.input_layouts[k].text()}] = place_constant(value, kernel.input_layouts[k]);
      } else if (const Place& place = places_.at(base_of(value)); place.home == Home::kArena) {
        requests[place.index].last = std::max(requests[place.index].last, step);
      }
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const graph::Value base = base_of(call.outputs[k]);
      if (const auto it = places_.find(base); it != places_.end()) {
        // A later part of what others have begun to write.
        if (it->second.home == Home::kArena)
          requests[it->second.index].last = std::max(requests[it->second.index].last, step);
        continue;
      }
      const bool own = base == call.outputs[k];
      const int64_t bytes = own ? buffer_bytes(kernel.function.buffers[kernel.num_inputs + k]) : bytes_of(base);
      if (const Place* operand = own ? operand_to_overwrite(k, bytes) : nullptr) {
        const Place place = *operand;
        places_[base] = place;
        requests[place.index].last = std::max(requests[place.index].last, step);
        ++in_place_;
        continue;
      }
      places_[base] = {Home::kArena, static_cast<int>(requests.size()), 0};
      requests.push_back({bytes, step, step});
    }
    for (int w = 0; w < kernel.num_workspaces; ++w) {
      call.workspaces.push_back(static_cast<int>(requests.size()));
      requests.push_back(
          {buffer_bytes(kernel.function.buffers[kernel.num_inputs + kernel.num_outputs + w]), step, step});
    }
  }
  // Outputs that need a copy keep their source until the end.
  for (const graph::Value& output : graph_.outputs) {
    const graph::Value value = base_of(output);
    if (const auto it = places_.find(value); it != places_.end() && it->second.home == Home::kArena)
      requests[it->second.index].last = end;
  }
  const graph::MemoryPlan plan = graph::plan_memory(requests, kAlignment);
  offsets_ = plan.offsets;

  for (size_t k = 0; k < graph_.outputs.size(); ++k)
    if (graph_.constant(graph_.outputs[k])) place_constant(graph_.outputs[k], {});
  program.weights = std::make_shared<ProgramWeights>(std::move(pieces), std::max<int64_t>(weight_bytes, kAlignment));
  program.arena_bytes = std::max<int64_t>(round_up(plan.arena_bytes + placements_.slack), kAlignment);
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
  weights_ = make_buffer("weights", kUInt8, {Expr(program.weights->size())});
  arena_ = make_buffer("arena", kUInt8, {Expr(program.arena_bytes)});

  std::vector<Stmt> body;
  for (size_t c = 0; c < calls_.size(); ++c) {
    const Step& call = calls_[c];
    const LoweredKernel& kernel = program.kernels[call.kernel].lowered;
    std::vector<Expr> args;
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const graph::Value value = call.inputs[k];
      if (graph_.constant(value))
        args.push_back(address({Home::kWeights, 0, weight_place.at({value, kernel.input_layouts[k].text()})}));
      else args.push_back(address(place_of(value)));
    }
    for (const graph::Value& value : call.outputs) args.push_back(address(place_of(value)));
    for (int request : call.workspaces) args.push_back(address({Home::kArena, request, 0}));
    const auto observe = [&](int is_end) {
      return Evaluate::make(Call::make_extern(
          kInt32, "tensmith_on_kernel", {IntImm::make(kInt32, static_cast<int64_t>(c)), IntImm::make(kInt32, is_end)}));
    };
    for (Stmt& check : index_checks(call, program)) body.push_back(std::move(check));
    body.push_back(observe(0));
    body.push_back(Evaluate::make(Call::make_extern(kInt32, kernel.function.name, args)));
    body.push_back(observe(1));
  }
  for (size_t k = 0; k < graph_.outputs.size(); ++k) {
    const graph::Value value = graph_.outputs[k], source = base_of(value);
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
          packed.at(packed_key(*constant, Layout::row_major(static_cast<int>(constant->shape().size()))));
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
