#include "apps/driver/executable.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace tensmith {

void Executable::AlignedFree::operator()(void* p) const { std::free(p); }

Executable::Executable(std::shared_ptr<const CompiledProgram> program, int threads)
    : program_(std::move(program)), module_([&] {
        if (const char* missing = program_->target.missing_on_host())
          throw TargetError("missing-cpu-feature", "program: compiled for " + to_string(program_->target) + ": this machine lacks " + missing +
                                                       "; compile with --target host or a lower level");
        return JitModule::load(program_->objects);
      }()) {
  main_ = module_.function<int32_t(const tensmith_context*, void*)>(program_->prefix + "main_packed");
  TS_CHECK(main_) << program_->prefix << "main_packed";
  pool_ = std::make_unique<ThreadPool>(threads > 0 ? threads : program_->threads);
  context_ = pool_->context();
  // Touched now, so that the first run does not pay for page faults; huge pages where the system gives them.
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t bytes = (static_cast<size_t>(program_->arena_bytes) + kHugePage - 1) / kHugePage * kHugePage;
  void* arena = std::aligned_alloc(kHugePage, bytes);
  if (!arena)
    throw DeviceError("out-of-memory", "program: the arena needs " + std::to_string(bytes) + " bytes, which the system does not give; use smaller dims");
  arena_.reset(arena);
  madvise(arena, bytes, MADV_HUGEPAGE);
  std::memset(arena, 0, bytes);
  table_.resize(program_->inputs.size() + program_->outputs.size() + 2);
  table_[table_.size() - 2] = program_->weights->data();
  table_[table_.size() - 1] = arena;
}

int Executable::threads() const { return pool_->threads(); }

int Executable::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  TS_CHECK(inputs.size() == program_->inputs.size() && outputs.size() == program_->outputs.size())
      << inputs.size() << " inputs and " << outputs.size() << " outputs";
  for (size_t k = 0; k < inputs.size(); ++k) table_[k] = const_cast<void*>(inputs[k]);
  for (size_t k = 0; k < outputs.size(); ++k) table_[inputs.size() + k] = outputs[k];
  return main_(&context_, table_.data());
}

void Executable::observe(void (*on_kernel)(void*, int32_t, int32_t), void* user) {
  context_.on_kernel = on_kernel;
  context_.user = user;
}

}  // namespace tensmith
