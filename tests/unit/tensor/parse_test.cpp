#include "tensor/parse.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tests/support/round_trip.h"

namespace tensmith {
namespace {

/// The body of a function with the parameters `A: f32[8, 8]`, `B: i32[8]`, `n: i64`.
std::string with_body(const std::string& body) {
  return "func f(A: f32[8, 8], B: i32[8]; n: i64) {\n" + body + "\n}\n";
}

std::string error_of(const std::string& text) {
  const Result<LoopFunction> f = parse_function(text);
  if (f.ok()) return "no error";
  EXPECT_EQ(f.failure().id, "parse-error");
  return f.failure().message;
}

TEST(Parse, EveryStatementRoundTrips) { expect_round_trip(every_statement_function()); }
TEST(Parse, EveryExpressionRoundTrips) { expect_round_trip(every_expression_function()); }

TEST(Parse, ReadsWhatPeopleWrite) {
  const char* text = R"(
    # a comment
    func g(A: float32[n, 4]; n: int64) -> A {
      for i in n {
        let t = A[i, 0]           # the type follows from the value
        A[i, 1] = t + 1           # an integer literal beside a float
        A[i, ramp(0, 1, 4)] = 2 * A[i, ramp(0, 1, 4)]
      }
    })";
  const Result<LoopFunction> f = parse_function(text);
  ASSERT_TRUE(f.ok()) << f.failure().message;
  EXPECT_EQ(to_string(*f),
            "func g(A: f32[n, 4]; n: i64) -> A {\n"
            "  for i in n {\n"
            "    let t: f32 = A[i, 0]\n"
            "    A[i, 1] = t + 1.0\n"
            "    A[i, ramp(0, 1, 4)] = 2.0 * A[i, ramp(0, 1, 4)]\n"
            "  }\n"
            "}\n");
}

TEST(Parse, SeveralFunctionsMakeAProgram) {
  const std::string text = "func f() {\n}\n\nfunc g(A: i8[2]) -> A @(x = 1) {\n  A[0] = 1\n}\n";
  const Result<LoopProgram> program = parse_program(text);
  ASSERT_TRUE(program.ok()) << program.failure().message;
  ASSERT_EQ(program->functions.size(), 2u);
  EXPECT_FALSE(program->functions[0].body);
  EXPECT_EQ(program->functions[1].attrs, (Attrs{{"x", 1}}));
  EXPECT_EQ(to_string(*program), text);
  EXPECT_TRUE(parse_program("").ok());
  EXPECT_FALSE(parse_function(text).ok());
}

TEST(Parse, InnerNamesHideOuterOnes) {
  const Result<LoopFunction> f = parse_function(with_body("for n in n { for n in n { B[n] = 0 } }"));
  ASSERT_TRUE(f.ok()) << f.failure().message;
  EXPECT_EQ(to_string(*f), with_body("  for n_1 in n {\n    for n_2 in n_1 {\n      B[n_2] = 0\n    }\n  }"));
}

TEST(Parse, WordsThatAreCalledMayBeNames) {
  const std::string text =
      "func f(pow: f32[4, 4], min: i32[4]) -> min {\n"
      "  for i4 in 4 {\n"
      "    for select in 4 {\n"
      "      pow[i4, select] = pow(pow[i4, select], f32(i4))\n"
      "      min[i4] = min(min[i4], i32(select))\n"
      "    }\n"
      "  }\n"
      "}\n";
  const Result<LoopFunction> f = parse_function(text);
  ASSERT_TRUE(f.ok()) << f.failure().message;
  EXPECT_EQ(to_string(*f), text);
}

TEST(Parse, ErrorsTellPlaceExpectedAndFound) {
  EXPECT_EQ(error_of(with_body("B[0] = 1")), "no error");
  EXPECT_EQ(error_of(""), "line 1, column 1: expected 'func', got the end of the text");
  EXPECT_EQ(error_of("func f( {"), "line 1, column 9: expected a name for a buffer, got '{'");
  EXPECT_EQ(error_of("func f(A: f33[1]) {}"), "line 1, column 11: expected a type such as f32 or i64x8, got 'f33'");
  EXPECT_EQ(error_of("func f(A: f32x4[1]) {}"), "line 1, column 11: expected a scalar type for a buffer, got f32x4");
  EXPECT_EQ(error_of("func f(A: f32[m]) {}"), "line 1, column 15: expected a variable or buffer in scope, got 'm'");
  EXPECT_EQ(error_of("func f() -> A {}"), "line 1, column 13: expected a buffer parameter as output, got 'A'");
  EXPECT_EQ(error_of(with_body("B[0] = ")), "line 3, column 1: expected an expression, got '}'");
  EXPECT_EQ(error_of(with_body("B[0] = 1.5")), "line 2, column 8: expected a value of i32, got '1.5'");
  EXPECT_EQ(error_of(with_body("B[0] = 3000000000")), "line 2, column 8: expected a value of i32, got '3000000000'");
  EXPECT_EQ(error_of(with_body("B[0] = n")), "line 2, column 1: expected a value of i32 for B, got i64");
  EXPECT_EQ(error_of(with_body("B[A[0, 0]] = 1")), "line 2, column 3: expected an index of i64, got f32");
  EXPECT_EQ(error_of(with_body("A[0, 0, 0] = 1")),
            "line 2, column 2: expected 2 indices (or a flat one) into A, got 3");
  EXPECT_EQ(error_of(with_body("eval n + B[0]")),
            "line 2, column 8: expected operands of one type for '+', got i64 and i32");
  EXPECT_EQ(error_of(with_body("eval n / 2")), "line 2, column 8: expected floats for '/', got i64");
  EXPECT_EQ(error_of(with_body("eval n < 2 < 3")),
            "line 2, column 12: expected parentheses around the comparison before this one, got '<'");
  EXPECT_EQ(error_of(with_body("eval -n")),
            "line 2, column 6: expected a number behind '-' (write 0 - x for other values), got 'n'");
  EXPECT_EQ(error_of(with_body("eval bitcast(n)")),
            "line 2, column 6: expected a type behind 'bitcast', as in bitcast:i32, got none");
  EXPECT_EQ(error_of(with_body("eval exp(1.0, 2.0)")), "line 2, column 6: expected 1 arguments of 'exp', got 2");
  EXPECT_EQ(error_of(with_body("eval select(n, 1, 2)")),
            "line 2, column 6: expected a bool and two values of one type for 'select', got i64, i64 and i64");
  EXPECT_EQ(error_of(with_body("if n { }")), "line 2, column 4: expected a condition of bool, got i64");
  EXPECT_EQ(error_of(with_body("for for in 3 { }")),
            "line 2, column 5: expected a name for a loop variable, got 'for'");
  EXPECT_EQ(error_of(with_body("assert n < 1, 0, \"x\"")),
            "line 2, column 15: expected an error code other than 0, got 0");
  EXPECT_EQ(error_of(with_body("assert n < 1, 1, \"x")),
            "line 2, column 18: expected '\"' at the end of the string, got the end of the line");
  EXPECT_EQ(error_of(with_body("eval ramp(0, 1, 2000)")),
            "line 2, column 17: expected a number of lanes from 2 to 1024, got 2000");
  EXPECT_EQ(error_of(with_body("eval nan_i32")),
            "line 2, column 6: expected a scalar float type behind 'nan_', got 'i32'");
  EXPECT_EQ(error_of(with_body("x")), "line 2, column 1: expected a statement or a buffer in scope, got 'x'");
  EXPECT_EQ(error_of(with_body("$")), "line 2, column 1: expected a word, number or sign, got '$'");
  EXPECT_EQ(error_of(with_body("\x01")), "line 2, column 1: expected a word, number or sign, got byte 1");
  EXPECT_EQ(error_of(with_body("B[0] = 1") + "func"), "line 4, column 1: expected the end of the text, got 'func'");
  EXPECT_EQ(error_of(with_body("eval A[ramp(0, 1, 4), ramp(0, 1, 8)]")),
            "line 2, column 23: expected an index of 4 lanes, got 8");
  EXPECT_EQ(error_of(with_body("eval A[0, 0 if broadcast(true, 4)]")),
            "line 2, column 6: expected a predicate of 1 lanes, got boolx4");
}

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += part;
  return text;
}

TEST(Parse, DepthIsLimited) {
  const std::string message = "expected at most 1000 nested levels, got more";
  const auto too_deep = [&](const std::string& body) {
    return error_of(with_body(body)).find(message) != std::string::npos;
  };
  EXPECT_TRUE(too_deep("eval " + repeated("(", 100000) + "n" + repeated(")", 100000)));
  EXPECT_TRUE(too_deep("eval " + repeated("!", 100000) + "true"));
  EXPECT_TRUE(too_deep("eval n" + repeated(" + n", 100000)));
  EXPECT_TRUE(too_deep("eval " + repeated("exp(", 100000)));
  EXPECT_TRUE(too_deep("eval " + repeated("(let x = n in ", 100000)));
  EXPECT_TRUE(too_deep(repeated("{", 100000)));
  EXPECT_TRUE(too_deep(repeated("if true { B[0] = 1 } else ", 100000)));
  EXPECT_TRUE(too_deep(repeated("for i in 3 {", 100000)));
  EXPECT_FALSE(too_deep("eval " + repeated("(", 900) + "n" + repeated(")", 900)));
  // Combinations of both ways to nest.
  EXPECT_TRUE(too_deep("eval " + repeated("(", 500) + "n" + repeated(repeated(" + n", 500) + ")", 500)));
  EXPECT_NE(error_of(with_body(repeated("let x = n\n", 10000))).find("expected at most 5000 lets and allocations"),
            std::string::npos);
  EXPECT_EQ(error_of(with_body(repeated("let x = n\n", 4000) + "B[0] = 1")), "no error");
  EXPECT_EQ(error_of(with_body(repeated("B[0] = 1\n", 20000))), "no error");
}

/// Number of random texts; TENSMITH_FUZZ_COUNT in the environment sets another one.
int fuzz_count(int usual) {
  const char* text = std::getenv("TENSMITH_FUZZ_COUNT");
  return text ? std::atoi(text) : usual;
}

/// Whatever the text, the parser answers; when it accepts, the result prints and parses to the same.
void expect_answer(const std::string& text) {
  const Result<LoopProgram> program = parse_program(text);
  if (!program.ok()) {
    EXPECT_EQ(program.failure().id, "parse-error");
    EXPECT_EQ(program.failure().message.rfind("line ", 0), 0u) << program.failure().message;
    return;
  }
  for (const LoopFunction& f : program->functions) expect_round_trip(f);
}

TEST(Parse, TruncatedTextsAreRefusedOrRoundTrip) {
  const std::string text = to_string(every_statement_function());
  for (size_t length = 0; length < text.size(); length += 3) expect_answer(text.substr(0, length));
}

TEST(Parse, MutatedTextsAreRefusedOrRoundTrip) {
  std::mt19937 random(20240501);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::string base[] = {to_string(every_statement_function()), to_string(every_expression_function())};
  const std::string alphabet = "abeifnxu_0123456789.+-*/%<>=!&|^~()[]{},;:@#\"\\ \n\x7f\xc3";
  for (int turn = fuzz_count(1500); turn-- > 0;) {
    std::string text = base[below(2)];
    // A piece of the text, so that each turn is short and the mutations are dense.
    const size_t head = text.find('\n') + 1;
    const size_t from = text.find('\n', head + below(text.size() - head));
    text = text.substr(0, head) + (from == std::string::npos ? "}" : text.substr(from));
    for (size_t edits = 1 + below(4); edits-- > 0;) {
      const size_t at = below(text.size());
      switch (below(5)) {
        case 0: text[at] = alphabet[below(alphabet.size())]; break;
        case 1: text.erase(at, 1 + below(6)); break;
        case 2: text.insert(at, 1, alphabet[below(alphabet.size())]); break;
        case 3: text.insert(at, text.substr(below(text.size()), below(20))); break;
        case 4: std::swap(text[at], text[below(text.size())]); break;
      }
    }
    expect_answer(text);
    if (testing::Test::HasFailure()) FAIL() << text;
  }
}

TEST(Parse, GarbageIsRefused) {
  std::mt19937 random(7);
  const char* const words[] = {"func",  "f",      "(",     ")",      "{",    "}",       "A",    ":",      "f32",  "[",
                               "]",     "4",      ",",     ";",      "for",  "i",       "in",   "=",      "+",    "let",
                               "alloc", "if",     "else",  "while",  "eval", "1.5",     "true", "select", "ramp", "->",
                               "@",     "assert", "\"m\"", "extern", "exp",  "bitcast", "-",    "inf",    "!",    "<"};
  for (int turn = fuzz_count(3000); turn-- > 0;) {
    std::string text = turn % 2 ? "func f(A: f32[4]; n: i64) {" : "";
    for (int length = static_cast<int>(random() % 40); length-- > 0;)
      text += std::string(words[random() % std::size(words)]) + " ";
    expect_answer(text);
  }
}

TEST(EqualHash, BoundNamesDoNotCountFreeOnesDo) {
  const auto parse = [](const char* text) { return parse_function(text).value(); };
  const LoopFunction a = parse("func f(A: f32[n]; n: i64) { for i in n { A[i] = 1.0 } }");
  const LoopFunction b = parse("func other(B: f32[m]; m: i64) { for k in m { B[k] = 1.0 } }");
  EXPECT_TRUE(equal(a, b));
  EXPECT_EQ(structural_hash(a), structural_hash(b));
  const Var x("x"), y("x");
  EXPECT_FALSE(equal(Expr(x), Expr(y)));
  EXPECT_TRUE(equal(Expr(x) + 1, Expr(x) + 1));
  EXPECT_FALSE(equal(Expr(x) + 1, Expr(x) + 2));
  EXPECT_TRUE(equal(Let::make(x, Expr(1), Expr(x) + 1), Let::make(y, Expr(1), Expr(y) + 1)));
  EXPECT_FALSE(equal(Let::make(x, Expr(1), Expr(x) + 1), Let::make(y, Expr(1), Expr(x) + 1)));
}

TEST(EqualHash, EveryPartCounts) {
  const char* const base = "func f(A: f32[n], B: f32[n]; n: i64, m: i64) -> A { for i in n { A[i] = B[i] + 1.0 } }";
  const std::pair<const char*, const char*> changes[] = {{"A[i] =", "A[n] ="},
                                                         {"B[i]", "A[i]"},
                                                         {"1.0", "-1.0"},
                                                         {"1.0", "nan"},
                                                         {"+", "-"},
                                                         {"for", "parallel"},
                                                         {"-> A", "-> B"},
                                                         {"-> A", "-> A, B"},
                                                         {"B: f32[n]", "B: f32[m]"},
                                                         {"-> A", ""},
                                                         {"m: i64", "m: i32"},
                                                         {"in n {", "in m {"},
                                                         {"in n {", "in 1 +: n {"},
                                                         {"in n {", "in n @(a = 1) {"},
                                                         {"B: f32[n]", "B: f32[n] align 32"},
                                                         {"B: f32[n]", "B: f32[n] stack"},
                                                         {"-> A", "-> A @(a = 1)"}};
  const LoopFunction f = parse_function(base).value();
  for (const auto& [from, to] : changes) {
    std::string text = base;
    text.replace(text.find(from), std::string(from).size(), to);
    const Result<LoopFunction> g = parse_function(text);
    ASSERT_TRUE(g.ok()) << text << ": " << g.failure().message;
    EXPECT_FALSE(equal(f, *g)) << text;
    EXPECT_FALSE(equal(*g, f)) << text;
    EXPECT_NE(structural_hash(f), structural_hash(*g)) << text;
  }
}

TEST(EqualHash, FloatsCompareByBitsWithAllNansAlike) {
  EXPECT_FALSE(equal(make_const(kFloat32, 0.0), make_const(kFloat32, -0.0)));
  EXPECT_TRUE(equal(make_const(kFloat32, std::nan("1")), make_const(kFloat32, -std::nan("2"))));
  EXPECT_FALSE(equal(make_const(kFloat32, 1), make_const(kFloat64, 1)));
}

}  // namespace
}  // namespace tensmith
