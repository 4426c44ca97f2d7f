#include "tensor/interpret.h"

#include <bit>

#include "tensor/interpreter/compile.h"
#include "tensor/interpreter/run.h"

namespace tensmith {

namespace {

using interp::Cell;

Result<void> run(const LoopProgram& program, const std::vector<InterpValue*>& buffers, std::span<const int64_t> scalars,
                 InterpFloat mode, int64_t max_steps) {
  if (program.functions.empty()) return Failure{"interp-arguments", "program: expected a function, got none"};
  const LoopFunction& f = program.functions.back();
  const auto refuse = [&](const std::string& message) { return Failure{"interp-arguments", f.name + ": " + message}; };
  if (buffers.size() != f.buffers.size())
    return refuse("expected " + std::to_string(f.buffers.size()) + " buffers, got " + std::to_string(buffers.size()));
  if (scalars.size() != f.scalars.size())
    return refuse("expected " + std::to_string(f.scalars.size()) + " scalars, got " + std::to_string(scalars.size()));
  const std::vector<interp::Code> codes = interp::compile(program, mode);
  interp::Machine machine(codes, max_steps);
  std::vector<Cell> arguments;
  for (size_t k = 0; k < buffers.size(); ++k) {
    const DType type = f.buffers[k]->dtype;
    if (!buffers[k] || buffers[k]->dtype != type)
      return refuse("expected a buffer of " + to_string(type) + " for " + f.buffers[k]->name + ", got " +
                    (buffers[k] ? to_string(buffers[k]->dtype) : "none"));
    interp::Memory memory;
    memory.dtype = type;
    memory.base = reinterpret_cast<Cell*>(type.is_float() ? static_cast<void*>(buffers[k]->f.data())
                                                          : static_cast<void*>(buffers[k]->i.data()));
    memory.cells = static_cast<int64_t>(type.is_float() ? buffers[k]->f.size() : buffers[k]->i.size());
    Cell handle;
    handle.i = interp::Machine::handle(machine.add_memory(std::move(memory)), 0);
    arguments.push_back(handle);
  }
  for (size_t k = 0; k < scalars.size(); ++k) {
    Cell cell;
    if (f.scalars[k].dtype().is_float()) cell.f = std::bit_cast<double>(scalars[k]);
    else cell.i = interp::wrap_int(f.scalars[k].dtype(), scalars[k]);
    arguments.push_back(cell);
  }
  const std::optional<int> code = machine.call(static_cast<int>(program.functions.size()) - 1, arguments);
  if (!code) return machine.failure();
  if (*code != 0) return Failure{"assert-failed", machine.assert_text()};
  return {};
}

}  // namespace

Result<void> interpret(const LoopProgram& program, std::vector<InterpValue*> buffers, std::span<const int64_t> scalars,
                       InterpFloat mode, int64_t max_steps) {
  try {
    return run(program, buffers, scalars, mode, max_steps);
  } catch (const interp::Malformed& error) {
    return Failure{"interp-malformed", error.message};
  }
}

Result<void> interpret(const LoopFunction& function, std::vector<InterpValue*> buffers,
                       std::span<const int64_t> scalars, InterpFloat mode, int64_t max_steps) {
  return interpret(LoopProgram{{function}}, std::move(buffers), scalars, mode, max_steps);
}

InterpValue make_interp_value(DType dtype, int64_t count) {
  InterpValue value{dtype, {}, {}};
  if (dtype.is_float()) value.f.resize(static_cast<size_t>(count));
  else value.i.resize(static_cast<size_t>(count));
  return value;
}

}  // namespace tensmith
