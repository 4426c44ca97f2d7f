// The static guard on real assembly, good and bad.
#include "codegen/asm_guard.h"

#include <gtest/gtest.h>

#include "codegen/artifact.h"
#include "tests/unit/codegen_math/asm_snippets.h"

namespace tensmith {
namespace {

AsmFunction only_function(const char* text) {
  std::vector<AsmFunction> functions = inspect_assembly(text);
  EXPECT_EQ(functions.size(), 1u);
  return functions.empty() ? AsmFunction() : functions[0];
}

/// The problems as one text, for comparing.
std::string problems_of(const char* text, const AsmRequirements& requirements) {
  std::string all;
  for (const std::string& problem : asm_problems(only_function(text), requirements)) all += problem + "\n";
  return all;
}

TEST(AsmGuard, PassesACleanTile) {
  const AsmFunction f = only_function(snippets::kGood);
  EXPECT_EQ(f.name, "good");
  ASSERT_EQ(f.loops.size(), 1u);
  const AsmLoop& loop = f.loops[0];
  EXPECT_EQ(loop.label, ".LBB0_1");
  EXPECT_EQ(loop.instructions, 18);
  EXPECT_EQ(loop.fmas, 8);
  EXPECT_EQ(loop.vector_bits, 256);
  EXPECT_EQ(loop.narrow_fmas, 0);
  EXPECT_EQ(loop.stack_references, 0);
  EXPECT_EQ(loop.last_line - loop.first_line, 17);
  EXPECT_EQ(problems_of(snippets::kGood, {.vector_bits = 256, .min_fma_share = 0.4}), "");
  EXPECT_EQ(problems_of(snippets::kGood, {.vector_bits = 256}),
            "hot loop .LBB0_1: share of multiply-adds: expected at least 50 %, got 44 % (8 of 18)\n");
}

TEST(AsmGuard, FindsSpills) {
  EXPECT_EQ(problems_of(snippets::kSpilled, {.vector_bits = 256}),
            "hot loop .LBB0_1: stack references: expected at most 0, got 4\n"
            "hot loop .LBB0_1: share of multiply-adds: expected at least 50 %, got 25 % (14 of 56)\n");
}

TEST(AsmGuard, TellsSpilledVectorsFromAddresses) {
  const AsmFunction f = only_function(
      "f:\n.LBB0_1:\n\tmovq\t8(%rsp), %rax\n\tvmovups\t64(%rsp), %zmm1\n"
      "\tvfmadd231ps\t128(%rsp), %zmm1, %zmm2\n\tvmovups\t%zmm2, (%rax)\n\tjne\t.LBB0_1\n\tretq\n");
  ASSERT_NE(f.hot_loop(), nullptr);
  EXPECT_EQ(f.hot_loop()->stack_references, 3);
  EXPECT_EQ(f.hot_loop()->vector_spills, 2);
}

TEST(AsmGuard, FindsVectorsSplitInHalves) {
  EXPECT_EQ(problems_of(snippets::kHalves, {.vector_bits = 512}),
            "hot loop .LBB0_1: vector width: expected 512 bits, got 256\n");
  EXPECT_EQ(problems_of(snippets::kHalves, {}), "");
}

TEST(AsmGuard, FindsCallsOfFmaf) {
  const AsmFunction f = only_function(snippets::kCalls);
  EXPECT_EQ(f.calls, 4);
  EXPECT_EQ(f.callees, std::vector<std::string>{"fmaf"});
  ASSERT_NE(f.hot_loop(), nullptr);
  EXPECT_EQ(f.hot_loop()->calls, 4);
  EXPECT_EQ(f.hot_loop()->fmas, 0);
  const std::string problems = problems_of(snippets::kCalls, {.vector_bits = 128});
  EXPECT_NE(problems.find("calls: expected at most 0, got 4"), std::string::npos) << problems;
  EXPECT_NE(problems.find("stack references"), std::string::npos) << problems;
}

TEST(AsmGuard, FindsGathersAndTheHotLoopAmongSeveral) {
  const AsmFunction f = only_function(snippets::kGathered);
  EXPECT_EQ(f.loops.size(), 3u);  // 256 bits, 512 bits, scalar rest
  int scalar = 0;
  for (const AsmLoop& loop : f.loops) scalar += loop.scalar_fmas;
  EXPECT_EQ(scalar, 1);
  ASSERT_NE(f.hot_loop(), nullptr);
  EXPECT_EQ(f.hot_loop()->gathers, 1);
  EXPECT_EQ(f.hot_loop()->fmas, 1);
  EXPECT_NE(
      problems_of(snippets::kGathered, {.min_fma_share = 0}).find("gathers and scatters: expected at most 0, got 1"),
      std::string::npos);
  EXPECT_EQ(problems_of(snippets::kGathered, {.min_fma_share = 0, .allow_gathers = true}), "");
}

TEST(AsmGuard, ReadsAArch64) {
  const AsmFunction good = only_function(snippets::kNeon);
  ASSERT_NE(good.hot_loop(), nullptr);
  EXPECT_EQ(good.hot_loop()->fmas, 8);
  EXPECT_EQ(good.hot_loop()->vector_bits, 128);
  EXPECT_EQ(problems_of(snippets::kNeon, {.vector_bits = 128, .min_fma_share = 0.45}), "");
  const AsmFunction spilled = only_function(snippets::kNeonSpilled);
  ASSERT_NE(spilled.hot_loop(), nullptr);
  EXPECT_EQ(spilled.hot_loop()->fmas, 28);
  EXPECT_GT(spilled.hot_loop()->stack_references, 0);
}

TEST(AsmGuard, TakesInnermostLoopsOnly) {
  const std::vector<AsmFunction> functions = inspect_assembly(
      "outer:\n"
      "\tpushq\t%rbp\n\tmovq\t%rsp, %rbp\n"
      ".LBB0_1:\n\tmovq\t-8(%rbp), %rax\n\tcallq\tprepare@PLT\n"
      ".LBB0_2:\n\tvfmadd231ps\t-64(%rbp), %zmm1, %zmm0\n\ttestq\t%rdx, %rdx\n\tje\t.LBB0_4\n"
      ".LBB0_3:\n\tvfmadd231ss\t%xmm1, %xmm2, %xmm3\n"
      ".LBB0_4:\n\tdecq\t%rcx\n\tjne\t.LBB0_2\n"
      "\tdecq\t%rbx\n\tjne\t.LBB0_1\n\tpopq\t%rbp\n\tretq\n"
      "second:\n\tret\n");
  ASSERT_EQ(functions.size(), 2u);
  ASSERT_EQ(functions[0].loops.size(), 1u);
  const AsmLoop& loop = functions[0].loops[0];
  EXPECT_EQ(loop.label, ".LBB0_2");
  EXPECT_EQ(loop.instructions, 6);
  EXPECT_EQ(loop.stack_references, 1);  // by the frame pointer
  EXPECT_EQ(loop.calls, 0);
  EXPECT_EQ(loop.scalar_fmas, 1);
  EXPECT_EQ(functions[0].calls, 1);
  EXPECT_EQ(functions[1].name, "second");
  EXPECT_EQ(asm_problems(functions[1]), std::vector<std::string>{"function second: loops: expected at least 1, got 0"});
  EXPECT_TRUE(inspect_assembly("no assembly at all: %r\n\n:\n").empty());
  EXPECT_TRUE(inspect_assembly("").empty());
}

/// The guard on what code generation makes: a loop of exp holds no call, no stack reference, and full vectors on every
/// target. AArch64 has no memory operands, so a constant or two of the longer functions may come from the stack.
TEST(AsmGuard, ElementwiseLoopsAreClean) {
  for (const char* name : {"znver3", "znver4", "sapphirerapids", "aarch64"}) {
    const Target target = Target::parse(name).value();
    const int lanes = target.lanes(4);
    const Var i("i");
    const Buffer in = make_buffer("in", kFloat32, {Expr(1024)}), out = make_buffer("out", kFloat32, {Expr(1024)});
    const Expr index = Ramp::make(i * lanes, Expr(1), lanes);
    for (const Intrinsic id :
         {Intrinsic::kExp, Intrinsic::kErf, Intrinsic::kTanh, Intrinsic::kSigmoid, Intrinsic::kLog}) {
      const Stmt body = For::make(i, Expr(0), Expr(1024 / lanes), ForKind::kSerial,
                                  Store::make(out, {index}, call(id, {load(in, {index})})));
      CodegenOptions options;
      options.want_asm = true;
      const ObjectCode object = compile({{LoopFunction{"f", {in, out}, {}, {out}, body, {}}}}, target, options);
      const std::vector<AsmFunction> functions = inspect_assembly(object.assembly);
      ASSERT_EQ(functions.size(), 1u);
      const AsmRequirements requirements{.vector_bits = target.vector_bits,
                                         .min_fma_share = 0.15,  // with tables, each coefficient is looked up
                                         .max_stack_references = target.arch == "aarch64" ? 2 : 0};
      EXPECT_EQ(asm_problems(functions[0], requirements), std::vector<std::string>())
          << name << " " << intrinsic_info(id).name << "\n"
          << object.assembly;
    }
  }
}

}  // namespace
}  // namespace tensmith
