#include "apps/cli/explanations.h"

namespace tensmith::cli {

namespace {

constexpr Explanation kExplanations[] = {
    {"bad-usage", "the command line cannot be understood", "run tensmith --help, or tensmith COMMAND --help"},
    {"internal-error", "an invariant of ours does not hold; this is our fault", "report it with the model and the command line; another -O level may avoid it"},
    {"symbolic-dims", "the model leaves sizes open and they were not given", "give each with --dim NAME=N, or an input array of the wanted shape"},
    {"unsupported-model", "the model uses operators or types that are not supported; the message lists all of them", "rewrite those parts, or export the model with other operators"},
};

}  // namespace

std::span<const Explanation> explanations() { return kExplanations; }

}  // namespace tensmith::cli
