/// Golden text: compares a text with a file in the tree.
#pragma once

#include <string>

namespace tensmith {

/// Compares `text` with tests/golden/<name>; `UPDATE_GOLDEN=1` in the environment rewrites the file instead. On a
/// difference the GoogleTest failure shows the first differing line.
void expect_golden(const std::string& name, const std::string& text);

}  // namespace tensmith
