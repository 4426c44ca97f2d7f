/// How a node that only moves elements reads its inputs, found from its tensor expressions alone.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "tensor/layout.h"

namespace tensmith::graph {

/// One output of a node as moved elements. Shapes: everything is static.
struct MovedOutput {
  /// A box of the output whose elements all come from one input.
  struct Piece {
    Value source;
    int axis = 0;            ///< of the output, along which pieces follow each other
    int64_t start = 0;       ///< the first index along it
    int64_t extent = 0;      ///< how many of them
    std::vector<Expr> from;  ///< index in the source, over the variables of `index`
  };
  std::vector<Var> index;     ///< one variable per output axis
  std::vector<Piece> pieces;  ///< one that is the whole output, or several that tile it along one axis, each a source
                              ///< that is taken whole
};

/// The outputs of a node as moves, or nothing when it computes, repeats elements under conditions, or has dims that are
/// not known.
std::optional<std::vector<MovedOutput>> moved_outputs(const Graph& graph, NodeId node);

/// The place of a tensor in a buffer that is counted in elements: element i lies at offset + sum of i[d] * stride[d].
struct Strided {
  int64_t offset = 0;
  std::vector<int64_t> strides;
  friend bool operator==(const Strided&, const Strided&) = default;
};

/// A layout as strides; nothing for blocked ones.
std::optional<Strided> strided(const Layout& layout, const std::vector<int64_t>& shape);
/// The strides as a layout, whose padding stands for the elements between (the offset is not part of it). Nothing when
/// no dim is contiguous or dims overlap.
std::optional<Layout> layout_of(const Strided& place, const std::vector<int64_t>& shape);
/// Where the output lies when its one piece is read from `source`: nothing when no strides can say it.
std::optional<Strided> through(const MovedOutput& moved, const Strided& source, const std::vector<int64_t>& shape);

}  // namespace tensmith::graph
