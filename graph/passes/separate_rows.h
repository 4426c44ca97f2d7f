/// Copies where what the caller sees meets chains of operators with channels.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Puts tensmith.ToChannels in front of convolutions whose many channels come in rows (an input of the model, a
/// reshape), and tensmith.ToRows behind convolutions and pools whose result is an output of the model. Without them
/// such a kernel reads or writes its channels a whole image apart, element by element: a copy costs far less.
int separate_rows(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
