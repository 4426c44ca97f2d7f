/// Pieces that the printer and the parser of the graph text share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/expr.h"

namespace tensmith::graph {

/// The text in double quotes, with escapes for quotes, backslashes and bytes that do not print.
std::string quote(std::string_view text);
/// Whether `text` may stand for a value without quotes (letters, digits, `_`, `.`, `/`, `-`).
bool is_plain_name(std::string_view text);
/// Whether `text` may stand for a symbolic dim without quotes (an identifier that is no function of dim expressions).
bool is_plain_dim_name(std::string_view text);
/// The shortest text that reads back to the same double; always with a point, an exponent, or `inf`, `nan`.
std::string float_text(double value);
/// The same for a float32: fewer digits suffice.
std::string float_text(float value);
std::string base64_encode(const void* data, size_t bytes);
/// Nothing when the text is not base64 (with padding, without blanks).
std::optional<std::vector<uint8_t>> base64_decode(std::string_view text);
/// A dim expression, with variables named by `name_of`.
std::string dim_text(const Expr& dim, const std::function<std::string(const VarNode*)>& name_of);
/// The function name of a binary operation inside dim expressions, such as `floor_div`; null for + - *, which have
/// operators.
const char* dim_function(BinaryOp op);

}  // namespace tensmith::graph
