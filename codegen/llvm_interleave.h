/// Puts the copies of an unrolled elementwise body side by side, so that the machine works on several at a time.
/// Internal to codegen/.
///
/// A function such as sigmoid is one chain of twenty dependent steps a vector. Copies that stand one behind the other
/// fill the scheduler with steps that wait; step by step in turn, their latencies overlap (sigmoid: 17.8 cycles for 16
/// elements behind each other, 16.2 with four in turn).
#pragma once

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/Function.h>

#include "runtime/base/target.h"

namespace tensmith {

/// Reorders within blocks that hold several copies of a long chain, each ending in a store; other blocks stay as they
/// are. As many copies run in turn as the target's registers allow. Gives whether any do.
bool interleave_copies(llvm::Function& function, llvm::AAResults& aliases, const Target& target);

}  // namespace tensmith
