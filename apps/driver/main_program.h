/// Builds `main`: the loop IR function that calls the kernels in order on pieces of one arena.
#pragma once

#include <map>
#include <optional>

#include "apps/driver/program.h"
#include "graph/partition/group_workload.h"
#include "graph/partition/layouts.h"

namespace tensmith {

class MainProgramBuilder {
 public:
  MainProgramBuilder(const graph::Graph& graph, const graph::LayoutMap& layouts, std::string prefix);

  /// Makes the output of a group that only renames elements the same memory as its input. False when it must be copied.
  bool try_alias(const graph::Group& group);
  /// Appends a call of kernel number `kernel`.
  void add_call(const graph::Group& group, const graph::GroupWorkload& work, int kernel);
  /// Plans the memory, packs the weights as the kernels want them and writes `main` into the program, whose kernels are
  /// known now.
  void finish(CompiledProgram& program);
  /// main and main_packed.
  LoopProgram functions() const { return functions_; }

 private:
  enum class Home : uint8_t { kInput, kOutput, kArena, kWeights };
  /// Where a value lives.
  struct Place {
    Home home = Home::kArena;
    int index = 0;       ///< input, output or memory request
    int64_t offset = 0;  ///< kWeights. Units: bytes
  };
  struct Step {
    int kernel = 0;
    std::vector<graph::Value> inputs, outputs;
    std::vector<int> workspaces;  ///< memory requests
  };

  graph::Value resolve(graph::Value value) const;
  Expr address(const Place& place) const;

  const graph::Graph& graph_;
  const graph::LayoutMap& layouts_;
  std::string prefix_;
  std::map<graph::Value, graph::Value> alias_;
  std::map<graph::Value, Place> places_;
  std::vector<Step> calls_;
  std::vector<Buffer> inputs_, outputs_;
  Buffer weights_, arena_;
  std::vector<int64_t> offsets_;
  LoopProgram functions_;
};

}  // namespace tensmith
