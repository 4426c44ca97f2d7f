#include "graph/partition/placement.h"

#include <algorithm>
#include <unordered_map>

#include "graph/op_def.h"
#include "graph/partition/access.h"

namespace tensmith::graph {

namespace {

// More than graphs of real models take; a chain that is refused node by node would take as many as it has nodes.
constexpr int kSingleAttempts = 4;

class Placer {
 public:
  Placer(const Graph& graph, const LayoutMap& layouts, std::string* explanation)
      : graph_(graph), layouts_(layouts), explanation_(explanation), order_(graph.topological_order()) {
    for (NodeId id : order_)
      if (auto moved = moved_outputs(graph, id); moved && !touches_constants(*moved))
        moved_.emplace(id, std::move(*moved));
  }

  PlacementPlan run() {
    // A node that turns out to need a kernel takes those with it that stood on its freedom: start again without it.
    int attempts = 0;
    while (!attempt(/*at_once=*/attempts >= kSingleAttempts)) ++attempts;
    PlacementPlan plan;
    plan.free = free_;
    for (const auto& [value, place] : places_) {
      const auto layout = layout_of(place.where, graph_.type(value).static_shape());
      plan.places[value] = {place.base, place.where.offset, *layout};
      plan.slack = std::max(plan.slack, excess(value, place) * graph_.type(value).dtype.bytes());
    }
    for (NodeId id : order_) {
      if (!explanation_) break;
      if (free_.count(id)) *explanation_ += graph_.node(id).name + ": only says where elements lie\n";
      else if (refused_.count(id))
        *explanation_ += graph_.node(id).name + ": moves elements, since " + refused_.at(id) + "\n";
    }
    return plan;
  }

 private:
  struct Place {
    Value base;
    Strided where;
  };

  bool touches_constants(const std::vector<MovedOutput>& outputs) const {
    for (const MovedOutput& moved : outputs)
      for (const MovedOutput::Piece& piece : moved.pieces)
        if (graph_.constant(piece.source)) return true;
    return outputs.empty();
  }

  bool is_graph_output(Value v) const {
    for (const Graph::Use& use : graph_.uses(v))
      if (use.node < 0) return true;
    return false;
  }

  /// Where a value is: in another one's memory or its own. Nothing when its layout is no matter of strides.
  std::optional<Place> place_of(Value v) const {
    if (const auto it = places_.find(v); it != places_.end()) return it->second;
    const auto layout = layouts_.find(v);
    const auto where = strided(layout == layouts_.end() ? Layout() : layout->second, graph_.type(v).static_shape());
    if (!where) return std::nullopt;
    return Place{v, *where};
  }

  int64_t stored_elements(Value v, const Layout& layout) const {
    std::vector<int64_t> shape = graph_.type(v).static_shape();
    if (!layout.dims().empty()) shape = layout.physical_shape(shape);
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
  }
  /// How many elements the padding of a placed value reaches beyond its base.
  int64_t excess(Value v, const Place& place) const {
    const auto own = layouts_.find(place.base);
    const int64_t end = place.where.offset + stored_elements(v, *layout_of(place.where, graph_.type(v).static_shape()));
    return std::max<int64_t>(0, end - stored_elements(place.base, own == layouts_.end() ? Layout() : own->second));
  }
  bool is_callers(Value base) const { return graph_.node(base.node).op->is_source || is_graph_output(base); }

  void refuse(NodeId id, std::string why) { refused_.emplace(id, std::move(why)); }

  /// True when the attempt stands. `at_once`: what needs a kernel counts as one for the nodes before it in this attempt
  /// already, so that refusals run along a chain in one. Some of these might have been free in the end, where what
  /// stands before them is refused too.
  bool attempt(bool at_once) {
    places_.clear();
    free_.clear();
    const size_t before = refused_.size();
    // The largest joins first: what is joined before is then a part of what is joined later.
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      if (const auto moved = moved_.find(*it); moved != moved_.end() && !refused_.count(*it))
        if (is_join(moved->second)) join(*it, moved->second[0]);
    for (NodeId id : order_)
      if (const auto moved = moved_.find(id); moved != moved_.end() && !refused_.count(id) && !free_.count(id))
        if (!is_join(moved->second)) view(id, moved->second);
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      if (!free_.count(*it)) continue;
      check_readers(*it);
      if (at_once && refused_.count(*it)) free_.erase(*it);
    }
    return refused_.size() == before;
  }
  static bool is_join(const std::vector<MovedOutput>& moved) { return moved.size() == 1 && moved[0].pieces.size() > 1; }

  /// The parts of a joined value are written into its memory.
  void join(NodeId id, const MovedOutput& moved) {
    const Value out{id, 0};
    const auto whole = place_of(out);
    if (!whole) return refuse(id, "its layout has blocks");
    std::vector<std::pair<Value, Strided>> parts;
    size_t inside = 0;  // parts that are already where a larger join wants them
    std::set<Value> seen;
    for (const MovedOutput::Piece& piece : moved.pieces) {
      Strided where = whole->where;
      where.offset += piece.start * where.strides[static_cast<size_t>(piece.axis)];
      const Node& source = graph_.node(piece.source.node);
      if (!seen.insert(piece.source).second) return refuse(id, "a part stands in it twice");
      if (source.op->is_source || is_graph_output(piece.source)) return refuse(id, "a part belongs to the caller");
      inside += places_.count(piece.source);
      parts.emplace_back(piece.source, where);
    }
    if (inside == parts.size() && !places_.count(out)) {
      // The same parts in the same order in a larger join: this one is a part of that.
      const Place first = places_.at(parts[0].first);
      Strided where = first.where;
      if (is_graph_output(out)) return refuse(id, "it belongs to the caller");
      for (size_t k = 0; k < parts.size(); ++k) {
        const Place& place = places_.at(parts[k].first);
        Strided wanted = first.where;
        wanted.offset += moved.pieces[k].start * wanted.strides[static_cast<size_t>(moved.pieces[k].axis)];
        if (place.base != first.base || !(place.where == wanted)) return refuse(id, "its parts lie elsewhere");
      }
      if (!layout_of(where, graph_.type(out).static_shape())) return refuse(id, "no strides say where it lies");
      places_[out] = {first.base, where};
      free_.insert(id);
      return;
    }
    if (inside > 0) return refuse(id, "some parts lie elsewhere");
    for (const auto& [part, where] : parts)
      if (!layout_of(where, graph_.type(part).static_shape())) return refuse(id, "no strides say where parts lie");
    for (const auto& [part, where] : parts) places_[part] = {whole->base, where};
    free_.insert(id);
  }

  /// The outputs are read where the input lies.
  void view(NodeId id, const std::vector<MovedOutput>& moved) {
    std::vector<std::pair<Value, Place>> found;
    for (size_t o = 0; o < moved.size(); ++o) {
      const Value out{id, static_cast<int>(o)};
      if (is_graph_output(out)) return refuse(id, "its result belongs to the caller");
      if (places_.count(out)) return refuse(id, "its result is a part of another value");
      const std::vector<int64_t> shape = graph_.type(out).static_shape();
      const auto source = place_of(moved[o].pieces[0].source);
      const auto where = source ? through(moved[o], source->where, shape) : std::nullopt;
      if (!where || !layout_of(*where, shape)) return refuse(id, "no strides say where its elements lie");
      found.emplace_back(out, Place{source->base, *where});
    }
    for (auto& [out, place] : found) places_[out] = place;
    free_.insert(id);
  }

  /// Kernels that walk along rows want them contiguous, and read nothing beyond the end of the caller's memory.
  void check_readers(NodeId id) {
    for (const Value& input : graph_.node(id).inputs)
      if (const auto place = places_.find(input);
          place != places_.end() && is_callers(place->second.base) && excess(input, place->second) > 0)
        return refuse(id, "it would reach beyond the caller's memory");
    for (size_t o = 0; o < graph_.node(id).types.size(); ++o) {
      const Value out{id, static_cast<int>(o)};
      const std::vector<int64_t> shape = graph_.type(out).static_shape();
      if (const auto place = places_.find(out);
          place != places_.end() && is_callers(place->second.base) && excess(out, place->second) > 0)
        return refuse(id, "it would reach beyond the caller's memory");
      const Strided where = places_.count(out) ? places_.at(out).where : *strided_of(out);
      size_t last = shape.size();
      while (last > 0 && shape[last - 1] == 1) --last;
      if (last == 0 || where.strides[last - 1] == 1) continue;
      for (const Graph::Use& use : graph_.uses(out)) {
        if (use.node < 0 || free_.count(use.node)) continue;
        const OpDef& reader = *graph_.node(use.node).op;
        const bool suits = reader.fusion == FusionKind::kContraction ||
                           (layout_role(reader) != LayoutRole::kRowMajor && layouts_.count(out));
        if (!suits) return refuse(id, graph_.node(use.node).name + " wants rows");
      }
    }
  }
  std::optional<Strided> strided_of(Value v) const {
    const auto place = place_of(v);
    return place ? std::optional(place->where) : std::nullopt;
  }

  const Graph& graph_;
  const LayoutMap& layouts_;
  std::string* explanation_;
  std::vector<NodeId> order_;
  std::unordered_map<NodeId, std::vector<MovedOutput>> moved_;
  std::unordered_map<NodeId, std::string> refused_;
  std::map<Value, Place> places_;
  std::set<NodeId> free_;
};

}  // namespace

PlacementPlan place_values(const Graph& graph, const LayoutMap& layouts, std::string* explanation) {
  return Placer(graph, layouts, explanation).run();
}

}  // namespace tensmith::graph
