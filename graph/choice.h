/// Decisions that passes over the graph make by an estimate and that could be made otherwise: where a tuner may try.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tensmith::graph {

/// A place where there is more than one way to go on.
struct ChoiceSite {
  std::string name;               ///< equal for places of a model that are equal: `algorithm of 3x3 conv ...`
  std::vector<std::string> ways;  ///< at least two words
  size_t by_price = 0;            ///< the way that the estimate prefers
};

/// Says which way is taken, as an index of `ways`; asked again for each place, it answers the same for equal sites.
using Chooser = std::function<size_t(const ChoiceSite&)>;

/// What the chooser says, or the estimate where there is none.
inline size_t choose(const Chooser& chooser, const ChoiceSite& site) { return chooser ? chooser(site) : site.by_price; }

}  // namespace tensmith::graph
