/// Every rule of every table: what it makes of an example, and that the result computes the same.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "graph/interpret.h"
#include "graph/passes/algebra.h"
#include "graph/passes/cancel_transpose_reshape.h"
#include "graph/passes/canonicalize.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/recompose.h"

namespace tensmith::graph {
namespace {

/// Statements before and after; `x`, `y` and the like are inputs, `%out` is the output.
struct Example {
  const char* rule;
  const char* before;
  const char* after;  ///< null: the rule must not apply
};

constexpr Example kCanonicalize[] = {
    {"identity", "%x: f32[2] = input\n%out: f32[2] = Identity(%x)\n", "%x: f32[2] = input\n"},
    {"dropout", "%x: f32[2] = input\n%out: f32[2] = Dropout(%x)\n", "%x: f32[2] = input\n"},
    {"cast-same", "%x: f32[2] = input\n%out: f32[2] = Cast(%x) {to = f32}\n", "%x: f32[2] = input\n"},
    {"cast-same", "%x: f32[2] = input\n%out: f64[2] = Cast(%x) {to = f64}\n", nullptr},
    {"expand-same", "%x: f32[2, 3] = input\n%s = i64[2] {2, 1}\n%out: f32[2, 3] = Expand(%x, %s)\n", "%x: f32[2, 3] = input\n"},
    {"expand-same", "%x: f32[1, 3] = input\n%s = i64[2] {2, 1}\n%out: f32[2, 3] = Expand(%x, %s)\n", nullptr},
    {"tile-once", "%x: f32[2] = input\n%s = i64[1] {1}\n%out: f32[2] = Tile(%x, %s)\n", "%x: f32[2] = input\n"},
    {"concat-one", "%x: f32[2] = input\n%out: f32[2] = Concat(%x) {axis = 0}\n", "%x: f32[2] = input\n"},
    {"sum-one", "%x: f32[2] = input\n%out: f32[2] = Sum(%x)\n", "%x: f32[2] = input\n"},
    {"mean-one", "%x: f32[2] = input\n%out: f32[2] = Mean(%x)\n", "%x: f32[2] = input\n"},
    {"max-one", "%x: f32[2] = input\n%out: f32[2] = Max(%x)\n", "%x: f32[2] = input\n"},
    {"min-one", "%x: f32[2] = input\n%out: f32[2] = Min(%x)\n", "%x: f32[2] = input\n"},
    {"split-one", "%x: f32[2] = input\n%out: f32[2] = Split(%x) {num_outputs = 1}\n", "%x: f32[2] = input\n"},
    {"pad-none", "%x: f32[2] = input\n%p = i64[2] {0, 0}\n%out: f32[2] = Pad(%x, %p)\n", "%x: f32[2] = input\n"},
    {"pad-none", "%x: f32[2] = input\n%p = i64[2] {1, -1}\n%out: f32[2] = Pad(%x, %p)\n", nullptr},
    {"slice-all", "%x: f32[3] = input\n%a = i64[1] {0}\n%b = i64[1] {99}\n%out: f32[3] = Slice(%x, %a, %b)\n", "%x: f32[3] = input\n"},
    {"slice-all",
     "%x: f32[3] = input\n%a = i64[1] {-1}\n%b = i64[1] {-99}\n%c = i64[1] {0}\n%d = i64[1] {-1}\n%out: f32[3] = Slice(%x, %a, %b, %c, %d)\n", nullptr},
    {"gather-to-slice", "%x: f32[4, 3] = input\n%i = i64[] {-3}\n%out: f32[3] = Gather(%x, %i)\n",
     "%x: f32[4, 3] = input\n%out.ints = i64[1] {1}\n%out.ints_1 = i64[1] {2} \"out.ints\"\n%out.ints_2 = i64[1] {0} \"out.ints\"\n"
     "%out_1: f32[1, 3] = Slice(%x, %out.ints, %out.ints_1, %out.ints_2) \"out\"\n%out.ints_3 = i64[1] {3} \"out.ints\"\n%out: f32[3] = Reshape(%out_1, %out.ints_3)\n"},
    {"gather-to-slice", "%x: f32[2, 3] = input\n%i = i64[3] {0, 1, 2}\n%out: f32[2, 3] = Gather(%x, %i) {axis = 1}\n", "%x: f32[2, 3] = input\n"},
    {"gather-to-slice", "%x: f32[2, 3] = input\n%i = i64[2] {0, 2}\n%out: f32[2, 2] = Gather(%x, %i) {axis = 1}\n", nullptr},
    {"gather-nd-of-all", "%x: f32[1, 2, 3] = input\n%i = i64[2, 1, 2] {0, 0, 0, 1}\n%out: f32[2, 1, 3] = GatherND(%x, %i)\n",
     "%x: f32[1, 2, 3] = input\n%out.ints = i64[3] {2, 1, 3}\n%out: f32[2, 1, 3] = Reshape(%x, %out.ints)\n"},
    {"gather-nd-of-all", "%x: f32[1, 2, 3] = input\n%i = i64[2, 1, 2] {0, 1, 0, 0}\n%out: f32[2, 1, 3] = GatherND(%x, %i)\n", nullptr},
    {"flatten-as-reshape", "%x: f32[2, 3, 4] = input\n%out: f32[2, 12] = Flatten(%x) {axis = 1}\n",
     "%x: f32[2, 3, 4] = input\n%out.ints = i64[2] {2, 12}\n%out: f32[2, 12] = Reshape(%x, %out.ints)\n"},
    {"squeeze-as-reshape", "%x: f32[n, 1, 4] = input\n%a = i64[1] {1}\n%out: f32[n, 4] = Squeeze(%x, %a)\n",
     "%x: f32[n, 1, 4] = input\n%out.ints = i64[2] {0, 4}\n%out: f32[n, 4] = Reshape(%x, %out.ints)\n"},
    {"unsqueeze-as-reshape", "%x: f32[n, 4] = input\n%a = i64[1] {0}\n%out: f32[1, n, 4] = Unsqueeze(%x, %a)\n",
     "%x: f32[n, 4] = input\n%out.ints = i64[3] {1, -1, 4}\n%out: f32[1, n, 4] = Reshape(%x, %out.ints)\n"},
    {"reshape-by-numbers",
     "%x: f32[n, 6] = input\n%s: i64[2] = Shape(%x)\n%a = i64[1] {0}\n%i: i64[1] = Gather(%s, %a)\n%t = i64[2] {2, 3}\n%c: i64[3] = Concat(%i, %t) {axis = 0}\n"
     "%out: f32[n, 2, 3] = Reshape(%x, %c)\n",
     "%x: f32[n, 6] = input\n%out.ints = i64[3] {0, 2, 3}\n%out: f32[n, 2, 3] = Reshape(%x, %out.ints)\n"},
    {"reshape-by-numbers", "%x: f32[2, 3] = input\n%s = i64[2] {2, -1}\n%out: f32[2, 3] = Reshape(%x, %s)\n", "%x: f32[2, 3] = input\n"},
    {"reshape-of-reshape", "%x: f32[2, 6] = input\n%s = i64[1] {12}\n%t = i64[2] {3, 4}\n%r: f32[12] = Reshape(%x, %s)\n%out: f32[3, 4] = Reshape(%r, %t)\n",
     "%x: f32[2, 6] = input\n%out.ints = i64[2] {3, 4}\n%out: f32[3, 4] = Reshape(%x, %out.ints)\n"},
    {"transpose-of-ones", "%x: f32[2, 1, 3] = input\n%out: f32[2, 3, 1] = Transpose(%x) {perm = [0, 2, 1]}\n",
     "%x: f32[2, 1, 3] = input\n%out.ints = i64[3] {2, 3, 1}\n%out: f32[2, 3, 1] = Reshape(%x, %out.ints)\n"},
    {"transpose-of-ones", "%x: f32[2, 1, 3] = input\n%out: f32[3, 1, 2] = Transpose(%x)\n", nullptr},
    {"gemm-to-matmul", "%x: f32[1, 2] = input\n%w = f32[3, 2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}\n%c = f32[3] {7.0, 8.0, 9.0}\n%out: f32[1, 3] = Gemm(%x, %w, %c) {transB = 1}\n",
     "%x: f32[1, 2] = input\n%c = f32[3] {7.0, 8.0, 9.0}\n%w_1 = f32[2, 3] {1.0, 3.0, 5.0, 2.0, 4.0, 6.0} \"w\"\n%out_1: f32[1, 3] = MatMul(%x, %w_1) \"out\"\n"
     "%out: f32[1, 3] = Add(%out_1, %c)\n"},
    {"gemm-to-matmul", "%x: f32[1, 2] = input\n%y: f32[2, 3] = input\n%out: f32[1, 3] = Gemm(%x, %y) {alpha = 2.0}\n", nullptr},
    {"pow-to-product", "%x: f32[2] = input\n%e = f32[] {2.0}\n%out: f32[2] = Pow(%x, %e)\n", "%x: f32[2] = input\n%out: f32[2] = Mul(%x, %x)\n"},
    {"pow-to-product", "%x: f32[2] = input\n%e = f32[] {3.0}\n%out: f32[2] = Pow(%x, %e)\n",
     "%x: f32[2] = input\n%out_1: f32[2] = Mul(%x, %x) \"out\"\n%out: f32[2] = Mul(%out_1, %x)\n"},
    {"pow-to-product", "%x: f32[2] = input\n%e = f32[] {1.5}\n%out: f32[2] = Pow(%x, %e)\n", nullptr},
    {"div-to-mul", "%x: f32[2] = input\n%c = f32[] {8.0}\n%out: f32[2] = Div(%x, %c)\n",
     "%x: f32[2] = input\n%out.factor = f32[] {0.125}\n%out: f32[2] = Mul(%x, %out.factor)\n"},
    {"div-to-mul", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Div(%x, %c)\n", nullptr},
    {"div-to-mul", "%x: i32[2] = input\n%c = i32[] {2}\n%out: i32[2] = Div(%x, %c)\n", nullptr},
    {"sub-to-add", "%x: f32[2] = input\n%c = f32[2] {1.0, -2.0}\n%out: f32[2] = Sub(%x, %c)\n",
     "%x: f32[2] = input\n%out.term = f32[2] {-1.0, 2.0}\n%out: f32[2] = Add(%x, %out.term)\n"},
    {"add-constant-right", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Add(%c, %x)\n", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Add(%x, %c)\n"},
    {"mul-constant-right", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Mul(%c, %x)\n", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Mul(%x, %c)\n"},
    {"max-constant-right", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Max(%c, %x)\n", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Max(%x, %c)\n"},
    {"min-constant-right", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Min(%c, %x)\n", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: f32[2] = Min(%x, %c)\n"},
    {"equal-constant-right", "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: bool[2] = Equal(%c, %x)\n",
     "%x: f32[2] = input\n%c = f32[] {3.0}\n%out: bool[2] = Equal(%x, %c)\n"},
    {"and-constant-right", "%x: bool[2] = input\n%c = bool[2] {1, 0}\n%out: bool[2] = And(%c, %x)\n",
     "%x: bool[2] = input\n%c = bool[2] {1, 0}\n%out: bool[2] = And(%x, %c)\n"},
    {"or-constant-right", "%x: bool[2] = input\n%c = bool[2] {1, 0}\n%out: bool[2] = Or(%c, %x)\n",
     "%x: bool[2] = input\n%c = bool[2] {1, 0}\n%out: bool[2] = Or(%x, %c)\n"},
    {"clip-to-relu", "%x: f32[2] = input\n%c = f32[] {0.0}\n%out: f32[2] = Clip(%x, %c)\n", "%x: f32[2] = input\n%out: f32[2] = Relu(%x)\n"},
    {"clip-to-relu", "%x: f32[2] = input\n%out: f32[2] = Clip(%x)\n", "%x: f32[2] = input\n"},
    {"clip-to-relu", "%x: f32[2] = input\n%c = f32[] {0.0}\n%d = f32[] {6.0}\n%out: f32[2] = Clip(%x, %c, %d)\n", nullptr},
    {"max-to-relu", "%x: f32[2] = input\n%c = f32[] {0.0}\n%out: f32[2] = Max(%x, %c)\n", "%x: f32[2] = input\n%out: f32[2] = Relu(%x)\n"},
    {"where-not", "%c: bool[2] = input\n%x: f32[2] = input\n%y: f32[2] = input\n%n: bool[2] = Not(%c)\n%out: f32[2] = Where(%n, %x, %y)\n",
     "%c: bool[2] = input\n%x: f32[2] = input\n%y: f32[2] = input\n%out: f32[2] = Where(%c, %y, %x)\n"},
    {"where-known", "%x: f32[2] = input\n%y: f32[2] = input\n%c = bool[2] {0, 0}\n%out: f32[2] = Where(%c, %x, %y)\n", "%x: f32[2] = input\n%y: f32[2] = input\n"},
    {"where-known", "%x: f32[2] = input\n%y: f32[1] = input\n%c = bool[2] {0, 0}\n%out: f32[2] = Where(%c, %x, %y)\n", nullptr},
};

constexpr Example kAlgebra[] = {
    {"add-zero", "%x: f32[2] = input\n%c = f32[1] {0.0}\n%out: f32[2] = Add(%x, %c)\n", "%x: f32[2] = input\n"},
    {"add-zero", "%x: f32[1] = input\n%c = f32[2] {0.0, 0.0}\n%out: f32[2] = Add(%x, %c)\n", nullptr},
    {"sub-zero", "%x: i32[2] = input\n%c = i32[] {0}\n%out: i32[2] = Sub(%x, %c)\n", "%x: i32[2] = input\n"},
    {"mul-one", "%x: f32[2] = input\n%c = f32[] {1.0}\n%out: f32[2] = Mul(%x, %c)\n", "%x: f32[2] = input\n"},
    {"div-one", "%x: f32[2] = input\n%c = f32[] {1.0}\n%out: f32[2] = Div(%x, %c)\n", "%x: f32[2] = input\n"},
    {"mul-zero", "%x: i32[2] = input\n%c = i32[] {0}\n%out: i32[2] = Mul(%x, %c)\n", "%x: i32[2] = input\n%out = i32[2] {0, 0} \"out.zero\"\n"},
    {"mul-zero", "%x: f32[2] = input\n%c = f32[] {0.0}\n%out: f32[2] = Mul(%x, %c)\n", nullptr},
    {"and-known", "%x: bool[2] = input\n%c = bool[] {1}\n%out: bool[2] = And(%x, %c)\n", "%x: bool[2] = input\n"},
    {"and-known", "%x: bool[2] = input\n%c = bool[2] {0, 0}\n%out: bool[2] = And(%x, %c)\n", "%x: bool[2] = input\n%c = bool[2] {0, 0}\n"},
    {"or-known", "%x: bool[2] = input\n%c = bool[] {0}\n%out: bool[2] = Or(%x, %c)\n", "%x: bool[2] = input\n"},
    {"not-not", "%x: bool[2] = input\n%a: bool[2] = Not(%x)\n%out: bool[2] = Not(%a)\n", "%x: bool[2] = input\n"},
    {"neg-neg", "%x: f32[2] = input\n%a: f32[2] = Neg(%x)\n%out: f32[2] = Neg(%a)\n", "%x: f32[2] = input\n"},
    {"relu-relu", "%x: f32[2] = input\n%a: f32[2] = Relu(%x)\n%out: f32[2] = Relu(%a)\n", "%x: f32[2] = input\n%a: f32[2] = Relu(%x)\n"},
    {"abs-abs", "%x: f32[2] = input\n%a: f32[2] = Abs(%x)\n%out: f32[2] = Abs(%a)\n", "%x: f32[2] = input\n%a: f32[2] = Abs(%x)\n"},
    {"floor-floor", "%x: f32[2] = input\n%a: f32[2] = Floor(%x)\n%out: f32[2] = Floor(%a)\n", "%x: f32[2] = input\n%a: f32[2] = Floor(%x)\n"},
    {"ceil-ceil", "%x: f32[2] = input\n%a: f32[2] = Ceil(%x)\n%out: f32[2] = Ceil(%a)\n", "%x: f32[2] = input\n%a: f32[2] = Ceil(%x)\n"},
    {"where-same", "%c: bool[2] = input\n%x: f32[2] = input\n%out: f32[2] = Where(%c, %x, %x)\n", "%c: bool[2] = input\n%x: f32[2] = input\n"},
    {"cast-of-cast", "%x: f32[2] = input\n%a: f64[2] = Cast(%x) {to = f64}\n%out: f32[2] = Cast(%a) {to = f32}\n", "%x: f32[2] = input\n"},
    {"cast-of-cast", "%x: u8[2] = input\n%a: i32[2] = Cast(%x) {to = i32}\n%out: f32[2] = Cast(%a) {to = f32}\n",
     "%x: u8[2] = input\n%out: f32[2] = Cast(%x) {to = f32}\n"},
    {"cast-of-cast", "%x: f32[2] = input\n%a: i32[2] = Cast(%x) {to = i32}\n%out: f32[2] = Cast(%a) {to = f32}\n", nullptr},
    {"cast-of-cast", "%x: i32[2] = input\n%a: f32[2] = Cast(%x) {to = f32}\n%out: i32[2] = Cast(%a) {to = i32}\n", nullptr},
    {"narrow-operand", "%x: f32[1, 3] = input\n%y: f32[2, 3] = input\n%s = i64[2] {2, 3}\n%e: f32[2, 3] = Expand(%x, %s)\n%out: f32[2, 3] = Add(%e, %y)\n",
     "%x: f32[1, 3] = input\n%y: f32[2, 3] = input\n%out: f32[2, 3] = Add(%x, %y)\n"},
    {"narrow-operand", "%x: f32[1, 3] = input\n%y: f32[3] = input\n%s = i64[2] {2, 3}\n%e: f32[2, 3] = Expand(%x, %s)\n%out: f32[2, 3] = Add(%e, %y)\n", nullptr},
    {"narrow-operand", "%x: f32[1, 3] = input\n%y: f32[2, 3] = input\n%s = i64[2] {2, 3}\n%e: f32[2, 3] = Expand(%x, %s)\n%out: f32[2, 3] = Sub(%y, %e)\n",
     "%x: f32[1, 3] = input\n%y: f32[2, 3] = input\n%out: f32[2, 3] = Sub(%y, %x)\n"},
    {"narrow-operand", "%x: f32[1] = input\n%y: f32[2] = input\n%s = i64[1] {2}\n%e: f32[2] = Expand(%x, %s)\n%out: f32[2] = Mul(%e, %y)\n",
     "%x: f32[1] = input\n%y: f32[2] = input\n%out: f32[2] = Mul(%x, %y)\n"},
    {"narrow-operand", "%x: f32[1] = input\n%y: f32[2] = input\n%s = i64[1] {2}\n%e: f32[2] = Expand(%x, %s)\n%out: f32[2] = Div(%e, %y)\n",
     "%x: f32[1] = input\n%y: f32[2] = input\n%out: f32[2] = Div(%x, %y)\n"},
    {"narrow-operand", "%x: bool[1] = input\n%y: bool[2] = input\n%s = i64[1] {2}\n%e: bool[2] = Expand(%x, %s)\n%out: bool[2] = And(%e, %y)\n",
     "%x: bool[1] = input\n%y: bool[2] = input\n%out: bool[2] = And(%x, %y)\n"},
    {"narrow-operand", "%c: bool[1] = input\n%x: f32[2] = input\n%y: f32[] = input\n%s = i64[1] {2}\n%e: bool[2] = Expand(%c, %s)\n%out: f32[2] = Where(%e, %x, %y)\n",
     "%c: bool[1] = input\n%x: f32[2] = input\n%y: f32[] = input\n%out: f32[2] = Where(%c, %x, %y)\n"},
    {"narrow-operand",
     "%x: bool[1, 3] = input\n%y: f32[2, 3] = input\n%t = bool[2, 1] {1, 1}\n%a: bool[2, 3] = And(%x, %t)\n%o = f32[] {1.0}\n%z = f32[] {0.0}\n"
     "%w: f32[2, 3] = Where(%a, %o, %z)\n%out: f32[2, 3] = Add(%y, %w)\n",
     "%x: bool[1, 3] = input\n%y: f32[2, 3] = input\n%o = f32[] {1.0}\n%z = f32[] {0.0}\n%t.number = bool[] {1}\n%a_3: bool[1, 3] = And(%x, %t.number) \"a\"\n"
     "%w_2: f32[1, 3] = Where(%a_3, %o, %z) \"w\"\n%out: f32[2, 3] = Add(%y, %w_2)\n"},
    {"gather-first",
     "%x: i64[2] = input\n%t = i8[2, 2] {1, 2, 3, 4}\n%s = f32[] {0.5}\n%d: f32[2, 2] = DequantizeLinear(%t, %s)\n%out: f32[2, 2] = Gather(%d, %x)\n",
     "%x: i64[2] = input\n%t = i8[2, 2] {1, 2, 3, 4}\n%s = f32[] {0.5}\n%out_1: i8[2, 2] = Gather(%t, %x) \"out\"\n%out: f32[2, 2] = DequantizeLinear(%out_1, %s) \"d\"\n"},
    {"gather-first",
     "%x: i64[1, 2] = input\n%t = i8[2, 2] {1, 2, 3, 4}\n%s = f32[2, 1] {0.5, 0.25}\n%z = f32[2] {1.0, 2.0}\n%c: f32[2, 2] = Cast(%t) {to = f32}\n"
     "%m: f32[2, 2] = Mul(%c, %s)\n%a: f32[2, 2] = Add(%m, %z)\n%out: f32[1, 2, 2] = Gather(%a, %x)\n",
     "%x: i64[1, 2] = input\n%t = i8[2, 2] {1, 2, 3, 4}\n%s = f32[2, 1] {0.5, 0.25}\n%z = f32[2] {1.0, 2.0}\n%out_4: i8[1, 2, 2] = Gather(%t, %x) \"out\"\n"
     "%out_2: f32[1, 2, 2] = Cast(%out_4) {to = f32} \"c\"\n%out_3: f32[1, 2, 1] = Gather(%s, %x) \"out\"\n%out_1: f32[1, 2, 2] = Mul(%out_2, %out_3) \"m\"\n"
     "%out: f32[1, 2, 2] = Add(%out_1, %z) \"a\"\n"},
    {"gather-first", "%x: i64[2] = input\n%t: f32[2, 2] = input\n%d: f64[2, 2] = Cast(%t) {to = f64}\n%out: f64[2, 2] = Gather(%d, %x)\n", nullptr},
    {"concat-of-split", "%x: f32[2, 4] = input\n%a: f32[2, 2], %b: f32[2, 2] = Split(%x) {axis = 1, num_outputs = 2}\n%out: f32[2, 4] = Concat(%a, %b) {axis = -1}\n",
     "%x: f32[2, 4] = input\n"},
    {"concat-of-split", "%x: f32[4] = input\n%a: f32[2], %b: f32[2] = Split(%x) {num_outputs = 2}\n%out: f32[4] = Concat(%b, %a) {axis = 0}\n", nullptr},
    {"concat-of-concat", "%x: f32[1] = input\n%y: f32[2] = input\n%a: f32[3] = Concat(%x, %y) {axis = 0}\n%out: f32[4] = Concat(%a, %x) {axis = 0}\n",
     "%x: f32[1] = input\n%y: f32[2] = input\n%out: f32[4] = Concat(%x, %y, %x) {axis = 0}\n"},
    {"split-of-concat",
     "%x: f32[2] = input\n%y: f32[2] = input\n%a: f32[4] = Concat(%x, %y) {axis = 0}\n%b: f32[2], %c: f32[2] = Split(%a) {num_outputs = 2}\n%out: f32[2] = Sub(%b, %c)\n",
     "%x: f32[2] = input\n%y: f32[2] = input\n%out: f32[2] = Sub(%x, %y)\n"},
    {"add-constants", "%x: i32[2] = input\n%a = i32[] {3}\n%b = i32[] {4}\n%s: i32[2] = Add(%x, %a)\n%out: i32[2] = Add(%s, %b)\n",
     "%x: i32[2] = input\n%a = i32[] {3}\n%b = i32[] {4}\n%out_1: i32[] = Add(%a, %b) \"out\"\n%out: i32[2] = Add(%x, %out_1)\n"},
};

constexpr Example kBatchNorm[] = {
    {"batch-norm-into-conv",
     "%x: f32[1, 1, 2] = input\n%w = f32[2, 1, 1] {1.0, 2.0}\n%b = f32[2] {1.0, 1.0}\n%c: f32[1, 2, 2] = Conv(%x, %w, %b)\n%s = f32[2] {4.0, 4.0}\n%h = f32[2] {1.0, 1.0}\n"
     "%m = f32[2] {1.0, 0.0}\n%v = f32[2] {4.0, 16.0}\n%out: f32[1, 2, 2] = BatchNormalization(%c, %s, %h, %m, %v) {epsilon = 0.0}\n",
     "%x: f32[1, 1, 2] = input\n%w_1 = f32[2, 1, 1] {2.0, 2.0} \"w\"\n%c.bias = f32[2] {1.0, 2.0}\n%out: f32[1, 2, 2] = Conv(%x, %w_1, %c.bias) \"c\"\n"},
    {"batch-norm-to-product",
     "%x: f32[1, 2, 2] = input\n%s = f32[2] {2.0, 4.0}\n%h = f32[2] {0.0, 1.0}\n%m = f32[2] {1.0, 0.0}\n%v = f32[2] {4.0, 16.0}\n"
     "%out: f32[1, 2, 2] = BatchNormalization(%x, %s, %h, %m, %v) {epsilon = 0.0}\n",
     "%x: f32[1, 2, 2] = input\n%out.scale = f32[2, 1] {1.0, 1.0}\n%out_1: f32[1, 2, 2] = Mul(%x, %out.scale) \"out\"\n%out.shift = f32[2, 1] {-1.0, 1.0}\n"
     "%out: f32[1, 2, 2] = Add(%out_1, %out.shift)\n"},
    {"mul-into-conv",
     "%x: f32[1, 2, 2] = input\n%w = f32[2, 1, 1] {1.0, 2.0}\n%c: f32[1, 2, 2] = Conv(%x, %w) {group = 2}\n%k = f32[2, 1] {3.0, 5.0}\n%out: f32[1, 2, 2] = Mul(%c, %k)\n",
     "%x: f32[1, 2, 2] = input\n%w_1 = f32[2, 1, 1] {3.0, 10.0} \"w\"\n%c.bias = f32[2] {0.0, 0.0}\n%out: f32[1, 2, 2] = Conv(%x, %w_1, %c.bias) {group = 2} \"c\"\n"},
    {"mul-into-conv",
     "%x: f32[1, 2, 2] = input\n%w = f32[2, 1, 1] {1.0, 2.0}\n%c: f32[1, 2, 2] = Conv(%x, %w) {group = 2}\n%k = f32[2] {3.0, 5.0}\n%out: f32[1, 2, 2] = Mul(%c, %k)\n", nullptr},
    {"add-into-conv",
     "%x: f32[1, 1, 2] = input\n%w = f32[2, 1, 1] {1.0, 2.0}\n%c: f32[1, 2, 2] = Conv(%x, %w)\n%k = f32[1, 2, 1] {3.0, 5.0}\n%out: f32[1, 2, 2] = Add(%c, %k)\n",
     "%x: f32[1, 1, 2] = input\n%w = f32[2, 1, 1] {1.0, 2.0}\n%c.bias = f32[2] {3.0, 5.0}\n%out: f32[1, 2, 2] = Conv(%x, %w, %c.bias) \"c\"\n"},
};

constexpr Example kMoves[] = {
    {"transpose-identity", "%x: f32[2, 3] = input\n%out: f32[2, 3] = Transpose(%x) {perm = [0, 1]}\n", "%x: f32[2, 3] = input\n"},
    {"transpose-of-transpose", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%out: f32[2, 3] = Transpose(%a) {perm = [1, 0]}\n", "%x: f32[2, 3] = input\n"},
    {"transpose-of-transpose",
     "%x: f32[2, 3, 4] = input\n%a: f32[3, 4, 2] = Transpose(%x) {perm = [1, 2, 0]}\n%out: f32[4, 3, 2] = Transpose(%a) {perm = [1, 0, 2]}\n",
     "%x: f32[2, 3, 4] = input\n%out: f32[4, 3, 2] = Transpose(%x) {perm = [2, 1, 0]}\n"},
    {"sink-elementwise",
     "%x: f32[2, 3] = input\n%y: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%b: f32[3, 2] = Transpose(%y)\n%out: f32[3, 2] = Sub(%a, %b)\n",
     "%x: f32[2, 3] = input\n%y: f32[2, 3] = input\n%out_1: f32[2, 3] = Sub(%x, %y) \"out\"\n%out: f32[3, 2] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"sink-elementwise", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%c = f32[2] {1.0, 2.0}\n%out: f32[3, 2] = Mul(%a, %c)\n",
     "%x: f32[2, 3] = input\n%c_1 = f32[2, 1] {1.0, 2.0} \"c\"\n%out_1: f32[2, 3] = Mul(%x, %c_1) \"out\"\n%out: f32[3, 2] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"sink-elementwise", "%x: f32[2, 3] = input\n%y: f32[3, 2] = input\n%a: f32[3, 2] = Transpose(%x)\n%out: f32[3, 2] = Mul(%a, %y)\n", nullptr},
    {"sink-elementwise", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%c = f32[1, 1, 2] {1.0, 2.0}\n%out: f32[1, 3, 2] = Mul(%a, %c)\n", nullptr},
    {"sink-concat",
     "%x: f32[2, 3] = input\n%y: f32[1, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%b: f32[3, 1] = Transpose(%y)\n%out: f32[3, 3] = Concat(%a, %b) {axis = 1}\n",
     "%x: f32[2, 3] = input\n%y: f32[1, 3] = input\n%out_1: f32[3, 3] = Concat(%x, %y) {axis = 0} \"out\"\n%out: f32[3, 3] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"sink-softmax", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%out: f32[3, 2] = Softmax(%a)\n",
     "%x: f32[2, 3] = input\n%out_1: f32[2, 3] = Softmax(%x) {axis = 0} \"out\"\n%out: f32[3, 2] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"sink-log-softmax", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%out: f32[3, 2] = LogSoftmax(%a) {axis = 0}\n",
     "%x: f32[2, 3] = input\n%out_1: f32[2, 3] = LogSoftmax(%x) {axis = 1} \"out\"\n%out: f32[3, 2] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"sink-reduce-mean",
     "%x: f32[2, 3, 4] = input\n%a: f32[4, 2, 3] = Transpose(%x) {perm = [2, 0, 1]}\n%i = i64[1] {0}\n%out: f32[2, 3] = ReduceMean(%a, %i) {keepdims = 0}\n",
     "%x: f32[2, 3, 4] = input\n%out.ints = i64[1] {2}\n%out_1: f32[2, 3] = ReduceMean(%x, %out.ints) {keepdims = 0} \"out\"\n"
     "%out: f32[2, 3] = Transpose(%out_1) {perm = [0, 1]}\n"},
    {"sink-reduce-sum", "%x: f32[2, 3, 4] = input\n%a: f32[4, 2, 3] = Transpose(%x) {perm = [2, 0, 1]}\n%i = i64[2] {-2, 0}\n%out: f32[1, 1, 3] = ReduceSum(%a, %i)\n",
     "%x: f32[2, 3, 4] = input\n%out.ints = i64[2] {0, 2}\n%out_1: f32[1, 3, 1] = ReduceSum(%x, %out.ints) \"out\"\n%out: f32[1, 1, 3] = Transpose(%out_1) {perm = [2, 0, 1]}\n"},
    {"sink-reduce-max", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%i = i64[2] {0, 1}\n%out: f32[] = ReduceMax(%a, %i) {keepdims = 0}\n",
     "%x: f32[2, 3] = input\n%out.ints = i64[2] {1, 0}\n%out: f32[] = ReduceMax(%x, %out.ints) {keepdims = 0}\n"},
    {"sink-reduce-min", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%i = i64[1] {0}\n%out: f32[1, 2] = ReduceMin(%a, %i)\n",
     "%x: f32[2, 3] = input\n%out.ints = i64[1] {1}\n%out_1: f32[2, 1] = ReduceMin(%x, %out.ints) \"out\"\n%out: f32[1, 2] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"sink-pad", "%x: f32[2, 3] = input\n%a: f32[3, 2] = Transpose(%x)\n%p = i64[4] {1, 0, 0, 2}\n%out: f32[4, 4] = Pad(%a, %p)\n",
     "%x: f32[2, 3] = input\n%out.ints = i64[4] {0, 1, 2, 0}\n%out_1: f32[4, 4] = Pad(%x, %out.ints) \"out\"\n%out: f32[4, 4] = Transpose(%out_1) {perm = [1, 0]}\n"},
    {"transpose-before-reshape",
     "%x: f32[1, 2, 3, 4] = input\n%s = i64[3] {2, 3, 4}\n%a: f32[2, 3, 4] = Reshape(%x, %s)\n%out: f32[2, 4, 3] = Transpose(%a) {perm = [0, 2, 1]}\n",
     "%x: f32[1, 2, 3, 4] = input\n%out_1: f32[1, 2, 4, 3] = Transpose(%x) {perm = [0, 1, 3, 2]} \"out\"\n%out.ints = i64[3] {2, 4, 3}\n"
     "%out: f32[2, 4, 3] = Reshape(%out_1, %out.ints)\n"},
    {"transpose-before-reshape", "%x: f32[6, 4] = input\n%s = i64[3] {2, 3, 4}\n%a: f32[2, 3, 4] = Reshape(%x, %s)\n%out: f32[4, 3, 2] = Transpose(%a)\n", nullptr},
    {"reshape-around-elementwise",
     "%x: f32[2, 6] = input\n%s = i64[1] {12}\n%t = i64[2] {3, 4}\n%a: f32[12] = Reshape(%x, %s)\n%b: f32[12] = Relu(%a)\n%out: f32[3, 4] = Reshape(%b, %t)\n",
     "%x: f32[2, 6] = input\n%out.ints = i64[2] {3, 4}\n%out_1: f32[3, 4] = Reshape(%x, %out.ints) \"out\"\n%out: f32[3, 4] = Relu(%out_1) \"b\"\n"},
};

constexpr Example kRecompose[] = {
    {"softplus", "%x: f32[2] = input\n%o = f32[] {1.0}\n%e: f32[2] = Exp(%x)\n%a: f32[2] = Add(%e, %o)\n%out: f32[2] = Log(%a)\n",
     "%x: f32[2] = input\n%out: f32[2] = Softplus(%x)\n"},
    {"sigmoid-quotient", "%x: f32[2] = input\n%o = f32[] {1.0}\n%n: f32[2] = Neg(%x)\n%e: f32[2] = Exp(%n)\n%a: f32[2] = Add(%e, %o)\n%out: f32[2] = Div(%o, %a)\n",
     "%x: f32[2] = input\n%out: f32[2] = Sigmoid(%x)\n"},
    {"sigmoid-reciprocal", "%x: f32[2] = input\n%o = f32[] {1.0}\n%n: f32[2] = Neg(%x)\n%e: f32[2] = Exp(%n)\n%a: f32[2] = Add(%e, %o)\n%out: f32[2] = Reciprocal(%a)\n",
     "%x: f32[2] = input\n%out: f32[2] = Sigmoid(%x)\n"},
    {"softmax",
     "%x: f32[2, 3] = input\n%i = i64[1] {-1}\n%m: f32[2, 1] = ReduceMax(%x, %i)\n%d: f32[2, 3] = Sub(%x, %m)\n%e: f32[2, 3] = Exp(%d)\n%s: f32[2, 1] = ReduceSum(%e, %i)\n"
     "%out: f32[2, 3] = Div(%e, %s)\n",
     "%x: f32[2, 3] = input\n%out: f32[2, 3] = Softmax(%x) {axis = 1}\n"},
    {"gelu",
     "%x: f32[2] = input\n%r = f32[] {1.4142135}\n%o = f32[] {1.0}\n%h = f32[] {0.5}\n%d: f32[2] = Div(%x, %r)\n%e: f32[2] = Erf(%d)\n%a: f32[2] = Add(%e, %o)\n"
     "%p: f32[2] = Mul(%x, %a)\n%out: f32[2] = Mul(%p, %h)\n",
     "%x: f32[2] = input\n%out: f32[2] = Gelu(%x)\n"},
    {"gelu",
     "%x: f32[2] = input\n%r = f32[] {0.70710677}\n%o = f32[] {1.0}\n%h = f32[] {0.5}\n%p: f32[2] = Mul(%x, %h)\n%d: f32[2] = Mul(%x, %r)\n%e: f32[2] = Erf(%d)\n"
     "%a: f32[2] = Add(%e, %o)\n%out: f32[2] = Mul(%p, %a)\n",
     "%x: f32[2] = input\n%out: f32[2] = Gelu(%x)\n"},
    {"gelu",
     "%x: f32[2] = input\n%k = f32[] {0.044715}\n%r = f32[] {0.7978846}\n%o = f32[] {1.0}\n%h = f32[] {0.5}\n%q: f32[2] = Mul(%x, %x)\n%u: f32[2] = Mul(%q, %x)\n"
     "%c: f32[2] = Mul(%u, %k)\n%s: f32[2] = Add(%x, %c)\n%d: f32[2] = Mul(%s, %r)\n%e: f32[2] = Tanh(%d)\n%a: f32[2] = Add(%e, %o)\n%p: f32[2] = Mul(%x, %h)\n"
     "%out: f32[2] = Mul(%p, %a)\n",
     "%x: f32[2] = input\n%out: f32[2] = Gelu(%x) {approximate = \"tanh\"}\n"},
    {"gelu",
     "%x: f32[2] = input\n%r = f32[] {0.6}\n%o = f32[] {1.0}\n%h = f32[] {0.5}\n%p: f32[2] = Mul(%x, %h)\n%d: f32[2] = Mul(%x, %r)\n%e: f32[2] = Erf(%d)\n"
     "%a: f32[2] = Add(%e, %o)\n%out: f32[2] = Mul(%p, %a)\n",
     nullptr},
    {"gelu-quotient",
     "%x: f32[2] = input\n%r = f32[] {1.4142135}\n%o = f32[] {1.0}\n%h = f32[] {2.0}\n%d: f32[2] = Div(%x, %r)\n%e: f32[2] = Erf(%d)\n%a: f32[2] = Add(%e, %o)\n"
     "%p: f32[2] = Mul(%x, %a)\n%out: f32[2] = Div(%p, %h)\n",
     "%x: f32[2] = input\n%out: f32[2] = Gelu(%x)\n"},
    {"hard-swish", "%x: f32[2] = input\n%g: f32[2] = HardSigmoid(%x) {alpha = 0.1666666716337204, beta = 0.5}\n%out: f32[2] = Mul(%x, %g)\n",
     "%x: f32[2] = input\n%out: f32[2] = HardSwish(%x)\n"},
    {"hard-swish", "%x: f32[2] = input\n%g: f32[2] = HardSigmoid(%x)\n%out: f32[2] = Mul(%x, %g)\n", nullptr},
    {"hard-swish-quotient",
     "%x: f32[2] = input\n%t = f32[] {3.0}\n%z = f32[] {0.0}\n%s = f32[] {6.0}\n%a: f32[2] = Add(%x, %t)\n%c: f32[2] = Clip(%a, %z, %s)\n%p: f32[2] = Mul(%x, %c)\n"
     "%out: f32[2] = Div(%p, %s)\n",
     "%x: f32[2] = input\n%out: f32[2] = HardSwish(%x)\n"},
    {"hard-sigmoid",
     "%x: f32[2] = input\n%t = f32[] {3.0}\n%z = f32[] {0.0}\n%s = f32[] {6.0}\n%k = f32[] {0.16666667}\n%a: f32[2] = Add(%x, %t)\n%c: f32[2] = Clip(%a, %z, %s)\n"
     "%out: f32[2] = Mul(%c, %k)\n",
     "%x: f32[2] = input\n%out: f32[2] = HardSigmoid(%x) {alpha = 0.16666666666666666, beta = 0.5}\n"},
    {"hard-sigmoid-quotient",
     "%x: f32[2] = input\n%t = f32[] {3.0}\n%z = f32[] {0.0}\n%s = f32[] {6.0}\n%a: f32[2] = Add(%x, %t)\n%c: f32[2] = Clip(%a, %z, %s)\n%out: f32[2] = Div(%c, %s)\n",
     "%x: f32[2] = input\n%out: f32[2] = HardSigmoid(%x) {alpha = 0.16666666666666666, beta = 0.5}\n"},
    {"swish", "%x: f32[2] = input\n%g: f32[2] = Sigmoid(%x)\n%out: f32[2] = Mul(%g, %x)\n", "%x: f32[2] = input\n%out: f32[2] = Swish(%x)\n"},
    {"swish", "%x: f32[2] = input\n%k = f32[] {1.5}\n%m: f32[2] = Mul(%x, %k)\n%g: f32[2] = Sigmoid(%m)\n%out: f32[2] = Mul(%x, %g)\n",
     "%x: f32[2] = input\n%out: f32[2] = Swish(%x) {alpha = 1.5}\n"},
    {"swish", "%x: f32[2] = input\n%y: f32[2] = input\n%g: f32[2] = Sigmoid(%y)\n%out: f32[2] = Mul(%x, %g)\n", nullptr},
    {"mish", "%x: f32[2] = input\n%s: f32[2] = Softplus(%x)\n%t: f32[2] = Tanh(%s)\n%out: f32[2] = Mul(%x, %t)\n", "%x: f32[2] = input\n%out: f32[2] = Mish(%x)\n"},
    {"layer-norm-scaled",
     "%x: f32[2, 3] = input\n%g = f32[3] {1.0, 2.0, 3.0}\n%b = f32[3] {4.0, 5.0, 6.0}\n%i = i64[1] {-1}\n%k = f32[] {1e-05}\n%m: f32[2, 1] = ReduceMean(%x, %i)\n"
     "%d: f32[2, 3] = Sub(%x, %m)\n%q: f32[2, 3] = Mul(%d, %d)\n%v: f32[2, 1] = ReduceMean(%q, %i)\n%e: f32[2, 1] = Add(%v, %k)\n%s: f32[2, 1] = Sqrt(%e)\n"
     "%n: f32[2, 3] = Div(%d, %s)\n%p: f32[2, 3] = Mul(%n, %g)\n%out: f32[2, 3] = Add(%p, %b)\n",
     "%x: f32[2, 3] = input\n%g = f32[3] {1.0, 2.0, 3.0}\n%b = f32[3] {4.0, 5.0, 6.0}\n"
     "%out: f32[2, 3] = LayerNormalization(%x, %g, %b) {axis = 1, epsilon = 9.999999747378752e-06}\n"},
    {"layer-norm-scaled",
     "%x: f32[2, 3] = input\n%g = f32[3] {1.0, 2.0, 3.0}\n%i = i64[1] {0}\n%k = f32[] {1e-05}\n%m: f32[1, 3] = ReduceMean(%x, %i)\n"
     "%d: f32[2, 3] = Sub(%x, %m)\n%q: f32[2, 3] = Mul(%d, %d)\n%v: f32[1, 3] = ReduceMean(%q, %i)\n%e: f32[1, 3] = Add(%v, %k)\n%s: f32[1, 3] = Sqrt(%e)\n"
     "%n: f32[2, 3] = Div(%d, %s)\n%out: f32[2, 3] = Mul(%n, %g)\n",
     nullptr},
    {"rms-norm-scaled",
     "%x: f32[2, 3] = input\n%g = f32[3] {1.0, 2.0, 3.0}\n%i = i64[1] {-1}\n%k = f32[] {1e-05}\n%q: f32[2, 3] = Mul(%x, %x)\n%v: f32[2, 1] = ReduceMean(%q, %i)\n"
     "%e: f32[2, 1] = Add(%v, %k)\n%s: f32[2, 1] = Sqrt(%e)\n%r: f32[2, 1] = Reciprocal(%s)\n%n: f32[2, 3] = Mul(%x, %r)\n%out: f32[2, 3] = Mul(%g, %n)\n",
     "%x: f32[2, 3] = input\n%g = f32[3] {1.0, 2.0, 3.0}\n%out: f32[2, 3] = RMSNormalization(%x, %g) {axis = 1, epsilon = 9.999999747378752e-06}\n"},
    {"layer-norm",
     "%x: f32[2, 3] = input\n%i = i64[1] {-1}\n%k = f32[] {1e-05}\n%m: f32[2, 1] = ReduceMean(%x, %i)\n%d: f32[2, 3] = Sub(%x, %m)\n%q: f32[2, 3] = Mul(%d, %d)\n"
     "%v: f32[2, 1] = ReduceMean(%q, %i)\n%e: f32[2, 1] = Add(%v, %k)\n%s: f32[2, 1] = Sqrt(%e)\n%out: f32[2, 3] = Div(%d, %s)\n",
     "%x: f32[2, 3] = input\n%out.number = f32[3] {1.0, 1.0, 1.0}\n%out: f32[2, 3] = LayerNormalization(%x, %out.number) {axis = 1, epsilon = 9.999999747378752e-06}\n"},
};

std::string indented(const std::string& statements) {
  std::string text;
  for (size_t start = 0; start < statements.size();) {
    const size_t end = statements.find('\n', start);
    text += "  " + statements.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return text;
}

Graph parsed(const std::string& statements) {
  const std::string dims = statements.find("[n,") != std::string::npos ? "  dims n\n" : "";
  auto graph = parse_graph("graph \"\" {\n" + dims + indented(statements) + "  return %out as \"out\"\n}");
  EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.failure().message) << "\n" << statements;
  return graph ? std::move(graph).value() : Graph();
}

/// The statements of a graph, without the frame and the output.
std::string statements_of(const Graph& graph) {
  const std::string text = to_string(graph);
  std::string out;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    if (line.starts_with("  %")) out += line.substr(2) + "\n";
    start = end + 1;
  }
  return out;
}

std::vector<RefTensor> random_inputs(const Graph& graph) {
  std::mt19937 random(7);
  std::vector<RefTensor> inputs;
  for (NodeId id : graph.inputs) {
    const TensorType& type = graph.node(id).types[0];
    std::vector<int64_t> shape;
    for (const Expr& dim : type.shape) shape.push_back(dim.as<IntImm>() ? dim.as<IntImm>()->value : 5);
    RefTensor tensor = make_ref_tensor(type.dtype, shape);
    for (int64_t k = 0; k < tensor.num_elements(); ++k)
      tensor.set(k, type.dtype.is_float() ? std::uniform_real_distribution<double>(-4, 4)(random) : static_cast<double>(random() % 2));
    round_to_dtype(tensor);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void check(std::span<const Rule> rules, std::span<const Example> examples) {
  std::set<std::string> covered;
  for (const Example& example : examples) {
    SCOPED_TRACE(std::string(example.rule) + ": " + example.before);
    covered.insert(example.rule);
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return std::string_view(r.name) == example.rule; });
    ASSERT_NE(rule, rules.end());
    Graph graph = parsed(example.before);
    if (graph.outputs.empty()) continue;
    const Graph original = graph.clone();
    GraphEditor edit(graph);
    const int changes = apply_rules(edit, std::span(&*rule, 1));
    edit.erase_dead();
    const auto ok = verify(graph);
    ASSERT_TRUE(ok.ok()) << ok.failure().message;
    EXPECT_EQ(changes > 0, example.after != nullptr);
    EXPECT_EQ(statements_of(graph), example.after ? example.after : statements_of(original));
    const std::vector<RefTensor> inputs = random_inputs(original);
    const auto expected = interpret(original, inputs), got = interpret(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.failure().message;
    ASSERT_TRUE(got.ok()) << got.failure().message;
    ASSERT_EQ((*got)[0].shape, (*expected)[0].shape);
    for (int64_t k = 0; k < (*got)[0].num_elements(); ++k) {
      const double want = (*expected)[0].get(k), have = (*got)[0].get(k);
      if (std::isnan(want) && std::isnan(have)) continue;
      ASSERT_NEAR(have, want, 2e-6 * (1 + std::fabs(want))) << k;
    }
  }
  for (const Rule& rule : rules) {
    EXPECT_TRUE(covered.count(rule.name)) << "rule " << rule.name << " has no example";
    EXPECT_NE(std::string_view(rule.doc), "") << rule.name;
  }
}

TEST(PassRules, Canonicalize) { check(canonicalize_rules(), kCanonicalize); }
TEST(PassRules, Algebra) { check(algebra_rules(), kAlgebra); }
TEST(PassRules, FoldBatchNorm) { check(fold_batch_norm_rules(), kBatchNorm); }
TEST(PassRules, CancelTransposeReshape) { check(cancel_transpose_reshape_rules(), kMoves); }
TEST(PassRules, Recompose) { check(recompose_rules(), kRecompose); }

}  // namespace
}  // namespace tensmith::graph
