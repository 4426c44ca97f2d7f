/// Builds `main`: the loop IR function that calls the kernels in order on pieces of one arena.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "apps/driver/program.h"
#include "graph/partition/group_workload.h"
#include "graph/partition/index_limits.h"
#include "graph/partition/placement.h"

namespace tensmith {

class MainProgramBuilder {
 public:
  /// `layouts` are those of values in memory of their own, `placements` tells which lie in that of others; both must
  /// outlive the builder.
  MainProgramBuilder(const graph::Graph& graph, const graph::LayoutMap& layouts, const graph::PlacementPlan& placements,
                     std::string prefix);

  /// Appends a call of kernel number `kernel`, whose nodes read index data with these limits.
  void add_call(const graph::GroupWorkload& work, int kernel, std::vector<graph::IndexLimits> limits = {});
  /// Plans the memory, packs the weights as the kernels want them and writes `main` into the program, whose kernels are
  /// known now.
  void finish(CompiledProgram& program);
  /// How many results were written over an operand.
  int in_place() const { return in_place_; }
  /// main and main_packed.
  LoopProgram functions() const { return functions_; }

 private:
  enum class Home : uint8_t { kInput, kOutput, kArena, kWeights };
  /// Where a value lives.
  struct Place {
    Home home = Home::kArena;
    int index = 0;       ///< input, output or memory request
    int64_t offset = 0;  ///< Units: bytes
  };
  struct Step {
    int kernel = 0;
    std::vector<graph::Value> inputs, outputs;
    std::vector<int> workspaces;  ///< memory requests
    std::vector<graph::IndexLimits> limits;
  };

  /// Whose memory the value lies in: its own, or that of another value.
  graph::Value base_of(graph::Value value) const;
  /// Where a value starts whose base has a place.
  Place place_of(graph::Value value) const;
  /// The bytes of a value in memory of its own, padding included.
  int64_t bytes_of(graph::Value base) const;
  Expr address(const Place& place) const;
  /// The calls that look over a step's index data, each number once; appends their functions and messages.
  std::vector<Stmt> index_checks(const Step& call, CompiledProgram& program);

  const graph::Graph& graph_;
  const graph::LayoutMap& layouts_;
  const graph::PlacementPlan& placements_;
  std::string prefix_;
  std::map<graph::Value, Place> places_;  // of bases
  std::vector<Step> calls_;
  std::vector<Buffer> inputs_, outputs_;
  Buffer weights_, arena_;
  std::vector<int64_t> offsets_;
  int in_place_ = 0;
  std::set<std::pair<graph::Value, std::vector<int64_t>>> checked_;  // index data and extents
  LoopProgram functions_;
};

}  // namespace tensmith
