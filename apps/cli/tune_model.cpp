#include "apps/cli/tune_model.h"

#include <algorithm>

#include "apps/driver/op_graph.h"
#include "runtime/base/format.h"

namespace tensmith::cli {

namespace {

constexpr int64_t kMostWeights = int64_t{2} << 30;

}  // namespace

LoadedModel load_tuned(const Options& options, std::shared_ptr<const RecordIndex> records) {
  if (options.op.empty()) return load_model(options, {}, false, false, std::move(records));
  LoadedModel model;
  graph::Graph graph = take(graph_of_op(options.op));
  CompileOptions compile = compile_options(options);
  if (records) compile.records = std::move(records);
  auto program = std::make_shared<CompiledProgram>(compile_graph(graph, compile));
  model.program = program;
  model.module = load_program(model.program);
  return model;
}

InModelSide side_of(const LoadedModel& model, const Options& options) {
  std::vector<HostTensor> inputs = make_inputs(model, options, {});
  Instance instance = make_instance(*model.module, options);
  std::vector<HostTensor> outputs = take(instance.run(inputs));
  return {model.program.get(), std::move(instance), std::move(inputs), std::move(outputs)};
}

size_t programs_at_once(const LoadedModel& model) {
  const int64_t weights = model.program->weights ? model.program->weights->size() : 0;
  return static_cast<size_t>(std::max<int64_t>(1, kMostWeights / std::max<int64_t>(1, weights)));
}

std::function<bool(size_t, double)> told_of(const std::string& what, const WholeListener& listener) {
  return [=](size_t rounds, double seconds) {
    return listener(what + format_text(": %zu rounds in %.0f s", rounds, seconds));
  };
}

}  // namespace tensmith::cli
