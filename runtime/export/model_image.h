/// The description of a model (abi.h) as data: for an object file of an exported library, or for a program in this
/// process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/export/abi.h"

namespace tensmith {

/// What tensmith_model says, with C++ types. Functions and weights are named by symbol.
struct ModelDescription {
  struct Symbol {
    std::string name;
    int64_t min = 0;
    int64_t max = 0;
  };
  struct Io {
    std::string name;
    std::vector<int64_t> shape;  ///< A value v < 0 stands for dims[-1 - v]: symbols, then derived dimensions.
    DType dtype;
    int alignment = 0;  ///< Bytes; 0: the element's size.
  };
  struct Kernel {
    std::string name;
    double flops = 0;
    double bytes = 0;
  };
  struct Variant {
    std::string target;
    std::vector<tensmith_cpu_requirement> requirements;  ///< required_cpu_features(target)
    std::string run_symbol;  ///< int32_t run(const tensmith_context*, void* const* buffers, const int64_t* dims)
    std::string
        arena_size_symbol;  ///< int64_t arena_size(const int64_t* dims, int64_t threads); "": the two figures below
    int64_t arena_bytes = 0;
    int64_t arena_bytes_per_thread = 0;
    std::string weights_symbol;  ///< Embedded weights; "": in a file or none.
    std::string weights_file;    ///< Name of the file beside the library; "": embedded or none.
    int64_t weights_bytes = 0;
    std::optional<std::array<uint8_t, 32>> weights_sha256;  ///< Required with a file.
    std::vector<Kernel> kernels;
  };

  std::string name;
  std::string digest;    ///< SHA-256 of the model file.
  std::string manifest;  ///< JSON text.
  std::vector<Io> inputs;
  std::vector<Io> outputs;
  std::vector<Symbol> symbols;
  int num_derived = 0;
  std::string derive_symbol;  ///< int32_t derive(const int64_t* symbols, int64_t* derived); "" if nothing is derived.
  std::vector<Variant> variants;      ///< Best first; at least one.
  std::vector<std::string> messages;  ///< Of the codes 1, 2, ...
  int default_threads = 0;            ///< 0: usable cores.
};

/// Bytes of a tensmith_model (at offset 0) and all that it points to, with the places of its pointers.
struct ModelImage {
  struct Pointer {
    uint64_t at;         ///< Offset of the eight bytes.
    uint64_t target;     ///< Offset within the image; used if `symbol` is empty.
    std::string symbol;  ///< External symbol.
  };
  std::string bytes;
  std::vector<Pointer> pointers;
};

/// Lays the description out. The layout is that of both 64-bit architectures. Errors: TS_CHECK for a description that
/// contradicts itself.
ModelImage build_model_image(const ModelDescription& description);

/// A relocatable ELF object for `arch` ("x86_64" or "aarch64") that defines `symbol` (hidden) as the description and,
/// if `weights_symbol` is not empty, that symbol as the weights, aligned to 64 bytes. Equal input gives equal bytes.
/// Embedded weights should stay below 1 GiB: code reaches them by 32-bit distances.
std::string model_object(const ModelDescription& description, std::string_view arch, const std::string& symbol,
                         const std::string& weights_symbol = "", std::span<const std::byte> weights = {});

/// A description loaded into this process, for programs that were compiled in memory.
class LoadedModel {
 public:
  /// `resolve` gives the address of a function or of weights by symbol, null if there is none.
  /// Errors: undefined-symbol.
  static Result<LoadedModel> load(const ModelDescription& description,
                                  const std::function<const void*(const std::string&)>& resolve);
  const tensmith_model* model() const { return reinterpret_cast<const tensmith_model*>(bytes_.get()); }

 private:
  struct Free {
    void operator()(char* p) const;
  };
  std::unique_ptr<char, Free> bytes_;
};

}  // namespace tensmith
