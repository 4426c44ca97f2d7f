/// From a compiled program to something that runs: in this process, or as a library that needs nothing else.
#pragma once

#include <memory>
#include <string>

#include "apps/driver/program.h"
#include "runtime/module.h"

namespace tensmith {

/// The program loaded into this process. Errors: TargetError `missing-cpu-feature`; UserError of loading.
Module load_program(std::shared_ptr<const CompiledProgram> program);

/// Where weights of an exported library go.
enum class WeightsHome : uint8_t { kEmbed, kFile, kAuto /* embedded below 64 MiB */ };

struct ExportOptions {
  std::string path;  ///< OUT.so, OUT.a or OUT.o
  WeightsHome weights = WeightsHome::kAuto;
};

/// Files that an export wrote.
struct ExportResult {
  std::string library, header, manifest, weights;  ///< weights empty when embedded
};

/// The prefix that symbols of a library at this path get: its file name without `lib` and suffix, as a C identifier,
/// and `_`.
std::string prefix_for(const std::string& path);

/// Writes library, C header, manifest and perhaps a file of weights. The program must have been compiled with
/// `prefix_for(path)`. Equal programs give equal bytes. Errors: UserError `bad-output-suffix`, `cannot-write`; then no
/// partial file is left and what an earlier export left is whole.
ExportResult export_program(const CompiledProgram& program, const ExportOptions& options);
/// The same with the weights taken out of the program and let go of while they are written, which saves their memory
/// during the link: the program can then neither run nor be exported again.
ExportResult export_last(CompiledProgram& program, const ExportOptions& options);

}  // namespace tensmith
