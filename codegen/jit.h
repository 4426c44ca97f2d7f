/// Object code loaded into this process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "codegen/artifact.h"
#include "codegen/host_symbols.h"

namespace tensmith {

/// Executable memory with the functions of one or several objects. Freed on destruction: no function may run then.
/// Threads: loading and destroying different modules may happen at the same time; `find` is const.
class JitModule {
 public:
  /// Loads the objects, which may refer to each other as long as that goes in one direction (a host function calling
  /// kernels). Other names are looked up in `symbols`, then in host_symbols(). Errors: TargetError "object-target" when
  /// an object is not for this machine's architecture; UserError "undefined-symbol" naming all that were not found;
  /// "jit-load" for malformed objects. Cost: about 0.2 ms an object.
  static JitModule load(std::span<const ObjectCode> objects, const SymbolTable& symbols = {});

  JitModule(JitModule&&) noexcept;
  JitModule& operator=(JitModule&&) noexcept;
  ~JitModule();

  /// The address of a symbol that an object defines; null when there is none.
  void* find(std::string_view name) const;
  /// The same as a function: `module.function<int32_t(const tensmith_context*, void*)>("f")`.
  template <typename Signature>
  Signature* function(std::string_view name) const {
    return reinterpret_cast<Signature*>(find(name));
  }

 private:
  struct State;
  explicit JitModule(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tensmith
