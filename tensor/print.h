/// Stable text of the loop IR; `parse` reads it back.
///
///     func scale(A: f32[M, 16], W: i8[16] constant align 32; M: i64) -> A @(alignment = 64) {   # buffers; scalars ->
///     outputs @(attrs)
///       parallel i in M {                      # for, parallel, vectorized, unrolled; from 0, `for k in min +: extent`
///       otherwise
///         alloc t: f32[16] stack               # reaches to the closing brace, as `let` does
///         let s: f32 = A[i, 0] * 2.0           # a number beside another operand, or stored, has that one's type and
///         lanes t[ramp(0, 1, 16)] = max(A[i, ramp(0, 1, 16)], broadcast(s, 16)) A[i, ramp(0, 1, 16) if ramp(0, 1, 16)
///         < 5] = t[ramp(0, 1, 16)]    # predicated if i // 4 == 0 { ... } else if i % 4 > 1 { ... } else { ... }
///       }
///     }
///
/// Alone, numbers carry their type (`3u8`, `0.5f64`, `nan_f16`) unless it is i64 or f32; casts are `f32(x)`; calls name
/// their type (`bitcast:i32(x)`, `extern:i32 f(x)`) where the arguments do not imply it; `//` and `%` are floor
/// division and remainder,
/// `/` is float division. `#` starts a comment.
#pragma once

#include <string>

#include "tensor/stmt.h"
#include "tensor/workload.h"

namespace tensmith {

/// Names are made unique (`i`, `i_1`); two-space indentation; one statement a line.
std::string to_string(const Expr& e);
std::string to_string(const Stmt& s);
std::string to_string(const LoopFunction& f);
std::string to_string(const LoopProgram& p);

}  // namespace tensmith
