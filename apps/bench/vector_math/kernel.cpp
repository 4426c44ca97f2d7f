#include "apps/bench/vector_math/kernel.h"

#include "runtime/base/error.h"

namespace tensmith {

namespace {

LoopFunction element_loop(Intrinsic id, int arity, DType type, int lanes) {
  const Var count("count"), i("i");
  const Buffer in0 = make_buffer("in0", type, {count}), in1 = make_buffer("in1", type, {count}),
               out = make_buffer("out", type, {count});
  const Expr first = i * lanes;
  const Expr index = lanes == 1 ? first : Ramp::make(first, Expr(1), lanes);
  std::vector<Expr> args{load(in0, {index})};
  if (arity == 2) args.push_back(load(in1, {index}));
  const Expr value = arity == 0 ? args[0] : call(id, args);
  const Stmt body =
      For::make(i, Expr(0), floor_div(count, Expr(lanes)), ForKind::kSerial, Store::make(out, {index}, value));
  return {"kernel", {in0, in1, out}, {count}, {out}, body, {}};
}

ObjectCode build(Intrinsic id, int arity, DType type, int lanes, const Target& target, const CodegenOptions& options) {
  LoopProgram program;
  program.functions.push_back(element_loop(id, arity, type, lanes));
  return compile(program, target, options);
}

}  // namespace

ElementKernel::ElementKernel(Intrinsic id, int arity, DType type, int lanes, const Target& target,
                             const CodegenOptions& options)
    : module_([&] {
        ObjectCode object = build(id, arity, type, lanes, target, options);
        assembly_ = object.assembly;
        return JitModule::load(std::span(&object, 1));
      }()),
      run_(module_.function<int32_t(const void*, const void*, const void*, void*, int64_t)>("kernel")) {
  TS_CHECK(run_ != nullptr);
}

void ElementKernel::operator()(const void* in0, const void* in1, void* out, int64_t count) const {
  TS_CHECK(run_(nullptr, in0, in1, out, count) == 0);
}

}  // namespace tensmith
