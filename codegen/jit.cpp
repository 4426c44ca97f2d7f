// JITLink without ORC: linking one object into the process takes 0.2 ms, needs no session and no lock.
#include "codegen/jit.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/Object/ELF.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "codegen/llvm_target.h"
#include "runtime/base/config.h"

namespace tensmith {

namespace jitlink = llvm::jitlink;

struct JitModule::State {
  std::unique_ptr<jitlink::InProcessMemoryManager> memory;
  std::vector<jitlink::JITLinkMemoryManager::FinalizedAlloc> allocations;
  SymbolTable defined;

  ~State() {
    if (memory && !allocations.empty()) llvm::consumeError(memory->deallocate(std::move(allocations)));
  }
};

namespace {

/// Links one object; every callback runs between LLVM's frames, so problems are noted, not thrown.
class LinkContext : public jitlink::JITLinkContext {
 public:
  LinkContext(jitlink::JITLinkMemoryManager& memory, const std::vector<const SymbolTable*>& tables,
              SymbolTable& defined, std::vector<jitlink::JITLinkMemoryManager::FinalizedAlloc>& allocations,
              std::string& problem)
      : JITLinkContext(nullptr),
        memory_(memory),
        tables_(tables),
        defined_(defined),
        allocations_(allocations),
        problem_(problem) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }

  void notifyFailed(llvm::Error error) override { problem_ = llvm::toString(std::move(error)); }

  void lookup(const LookupMap& symbols, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> next) override {
    jitlink::AsyncLookupResult result;
    for (const auto& [name, flags] : symbols) {
      for (const SymbolTable* table : tables_) {
        auto it = table->find(std::string_view(name.data(), name.size()));
        if (it == table->end()) continue;
        result[name] = {llvm::orc::ExecutorAddr::fromPtr(it->second), llvm::JITSymbolFlags::Exported};
        break;
      }
      if (!result.contains(name)) return next->run(llvm::createStringError("undefined symbol " + name));
    }
    next->run(std::move(result));
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName()) continue;
      if (symbol->getScope() == jitlink::Scope::Default)
        defined_[symbol->getName().str()] = symbol->getAddress().toPtr<void*>();
      if (perf_map_ && symbol->isCallable()) tell_perf(*symbol);
    }
    return llvm::Error::success();
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocations_.push_back(std::move(allocation));
  }

 private:
  /// perf reads lines `START SIZE NAME`, in hexadecimal, from this file after the run.
  static void tell_perf(const jitlink::Symbol& symbol) {
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (!file) return;
    std::fprintf(file, "%llx %llx %s\n", static_cast<unsigned long long>(symbol.getAddress().getValue()),
                 static_cast<unsigned long long>(symbol.getSize()), symbol.getName().str().c_str());
    std::fclose(file);
  }

  const bool perf_map_ = config()->perf_map;
  jitlink::JITLinkMemoryManager& memory_;
  const std::vector<const SymbolTable*>& tables_;
  SymbolTable& defined_;
  std::vector<jitlink::JITLinkMemoryManager::FinalizedAlloc>& allocations_;
  std::string& problem_;
};

void check_machine(const ObjectCode& object) {
  constexpr size_t kMachineOffset = 18;
#if defined(__aarch64__)
  constexpr unsigned kMachine = llvm::ELF::EM_AARCH64;
#else
  constexpr unsigned kMachine = llvm::ELF::EM_X86_64;
#endif
  const unsigned machine = object.bytes.size() > kMachineOffset + 1
                               ? object.bytes[kMachineOffset] | object.bytes[kMachineOffset + 1] << 8
                               : 0;
  if (machine != kMachine)
    throw TargetError("object-target", "jit: object: expected ELF machine " + std::to_string(kMachine) +
                                           " of this process, got " + std::to_string(machine) +
                                           "; compile for target host");
}

bool contains(const std::vector<const SymbolTable*>& tables, llvm::StringRef name) {
  for (const SymbolTable* table : tables)
    if (table->contains(std::string_view(name.data(), name.size()))) return true;
  return false;
}

}  // namespace

JitModule JitModule::load(std::span<const ObjectCode> objects, const SymbolTable& symbols) {
  initialize_llvm();
  auto state = std::make_unique<State>();
  llvm::Expected<std::unique_ptr<jitlink::InProcessMemoryManager>> memory = jitlink::InProcessMemoryManager::Create();
  TS_CHECK(static_cast<bool>(memory)) << llvm::toString(memory.takeError());
  state->memory = std::move(*memory);

  std::vector<std::unique_ptr<jitlink::LinkGraph>> waiting;
  for (const ObjectCode& object : objects) {
    check_machine(object);
    llvm::MemoryBufferRef buffer(
        llvm::StringRef(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()), "object");
    llvm::Expected<std::unique_ptr<jitlink::LinkGraph>> graph = jitlink::createLinkGraphFromObject(buffer);
    if (!graph)
      throw UserError("jit-load",
                      "jit: object: expected a relocatable ELF file, got: " + llvm::toString(graph.takeError()));
    waiting.push_back(std::move(*graph));
  }

  // Each round links the objects whose references are all known by now: callees before callers.
  const std::vector<const SymbolTable*> tables = {&state->defined, &symbols, &host_symbols()};
  while (!waiting.empty()) {
    std::vector<std::unique_ptr<jitlink::LinkGraph>> later;
    std::string missing;
    for (std::unique_ptr<jitlink::LinkGraph>& graph : waiting) {
      std::string unknown;
      for (jitlink::Symbol* symbol : graph->external_symbols())
        if (!contains(tables, symbol->getName()) && symbol->getName() != "_GLOBAL_OFFSET_TABLE_")
          unknown += (unknown.empty() ? "" : ", ") + symbol->getName().str();
      if (!unknown.empty()) {
        missing += (missing.empty() ? "" : ", ") + unknown;
        later.push_back(std::move(graph));
        continue;
      }
      std::string problem;
      jitlink::link(std::move(graph),
                    std::make_unique<LinkContext>(*state->memory, tables, state->defined, state->allocations, problem));
      if (!problem.empty()) throw UserError("jit-load", "jit: linking failed: " + problem);
    }
    if (later.size() == waiting.size())
      throw UserError("undefined-symbol", "jit: undefined symbols: expected only C's functions and those given, got " +
                                              missing + "; pass their addresses to JitModule::load");
    waiting = std::move(later);
  }
  return JitModule(std::move(state));
}

JitModule::JitModule(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitModule::JitModule(JitModule&&) noexcept = default;
JitModule& JitModule::operator=(JitModule&&) noexcept = default;
JitModule::~JitModule() = default;

void* JitModule::find(std::string_view name) const {
  auto it = state_->defined.find(name);
  return it == state_->defined.end() ? nullptr : it->second;
}

}  // namespace tensmith
