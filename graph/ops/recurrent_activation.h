/// The activation functions that recurrent operators name in their attributes.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// A function with its parameters.
struct RecurrentActivation {
  std::string name;  ///< in lower case
  double alpha, beta;
};

/// The functions of an operator with `count` of them for all its directions; `defaults` for one direction where none
/// are named. Alphas and betas are consumed in order by the functions that have such a parameter. Errors:
/// `bad-attribute` for a wrong count or an unknown name.
Result<std::vector<RecurrentActivation>> recurrent_activations(const AttrMap& attrs,
                                                               const std::vector<std::string>& defaults,
                                                               int directions);

Expr apply(const RecurrentActivation& activation, const Expr& x);
double apply(const RecurrentActivation& activation, double x);

}  // namespace tensmith::graph::ops
