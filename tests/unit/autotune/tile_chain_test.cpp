// Pieces of transformed tiles: the schedule of a chain of stages around one product.
#include <gtest/gtest.h>

#include "autotune/default_schedule.h"
#include "graph/ops/winograd.h"
#include "graph/partition/group_workload.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

struct Size {
  int64_t channels, outs, rows, columns;
  int tile;
};

/// relu(winograd(x)) as the graph makes a kernel of it.
Workload winograd_workload(const Size& s) {
  graph::Graph g;
  graph::GraphEditor edit(g);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {1, s.channels, s.rows, s.columns}));
  const int64_t points = s.tile + graph::kWinogradKernel - 1;
  const graph::Value w =
      edit.add_constant(graph::Constant::allocate(kFloat32, {points, points, s.channels, s.outs}), "w");
  const graph::Value b = edit.add_constant(graph::Constant::allocate(kFloat32, {s.outs}), "b");
  graph::AttrMap attrs;
  attrs.set("tile", int64_t{s.tile});
  attrs.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  const graph::NodeId conv = edit.add(*graph::find_op("WinogradConv", "tensmith"), {x, w, b}, std::move(attrs), "conv");
  const graph::NodeId relu = edit.add("Relu", {{conv, 0}}, {}, "relu");
  edit.set_outputs({{relu, 0}}, {"y"});
  graph::Group group;
  group.nodes = {conv, relu};
  group.inputs = {x, w, b};
  group.outputs = {{relu, 0}};
  return graph::make_group_workload(g, group, "kernel").workload;
}

class TileChain : public testing::TestWithParam<const char*> {};

TEST_P(TileChain, GiveTheWorkloadsResult) {
  const Layout last = Layout::permuted({0, 2, 3, 1});
  for (int threads : {1, 2})
    for (const Size& size : {Size{16, 32, 12, 12, 4}, Size{17, 33, 7, 9, 4}, Size{32, 16, 6, 5, 2},
                             Size{5, 48, 8, 8, 4}, Size{128, 32, 8, 8, 4}}) {
      ScheduleRequest request;
      request.target = Target::parse(GetParam()).value();
      request.target.l2_bytes = 64 << 10;  // so that there are several pieces
      request.threads = threads;
      request.input_layouts = {last, Layout(), Layout()};
      request.output_layouts = {last};
      std::string why;
      const Schedule schedule = default_schedule(winograd_workload(size), request, &why);
      EXPECT_NE(why.find("in pieces of"), std::string::npos) << why;
      RunOptions run;
      run.code = true;
      const std::optional<std::string> wrong = difference(schedule, {}, run);
      EXPECT_FALSE(wrong.has_value()) << size.channels << "->" << size.outs << " threads " << threads << ": "
                                      << wrong.value_or("") << "\n"
                                      << schedule.to_string();
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, TileChain, testing::Values("sapphirerapids", "znver3", "aarch64"));

}  // namespace
}  // namespace tensmith
