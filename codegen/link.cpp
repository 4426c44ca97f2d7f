#include "codegen/link.h"

#include <lld/Common/Driver.h>
#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/raw_ostream.h>

#include <fstream>
#include <mutex>
#include <set>

#include "codegen/data_object.h"
#include "codegen/system_libraries.h"
#include "runtime/base/files.h"

LLD_HAS_DRIVER(elf)

namespace tensmith {

namespace {

llvm::MemoryBufferRef buffer_of(const ObjectCode& object, llvm::StringRef name = "object") {
  return {llvm::StringRef(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()), name};
}

struct SymbolSets {
  std::set<std::string> defined, undefined;
};

void add_symbols(llvm::MemoryBufferRef object, SymbolSets& sets) {
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file)
    throw UserError("link-failed", "link: object: expected an ELF object, got: " + llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags ? name.takeError() : flags.takeError());
      throw UserError("link-failed", "link: object: expected an ELF object, got a damaged symbol table");
    }
    if (!(*flags & llvm::object::SymbolRef::SF_Global)) continue;
    (*flags & llvm::object::SymbolRef::SF_Undefined ? sets.undefined : sets.defined).insert(name->str());
  }
}

SymbolSets symbols_of(std::span<const ObjectCode> objects, const LinkOptions& options) {
  SymbolSets sets;
  for (const ObjectCode& object : objects) add_symbols(buffer_of(object), sets);
  for (const std::string& path : options.object_files) {
    const auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file) throw UserError("link-failed", "link: object " + path + ": " + file.getError().message());
    add_symbols((*file)->getMemBufferRef(), sets);
  }
  for (const std::string& name : sets.defined) sets.undefined.erase(name);
  sets.undefined.erase("_GLOBAL_OFFSET_TABLE_");  // the linker makes it
  return sets;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void check_exports(const SymbolSets& symbols, const LinkOptions& options) {
  std::vector<std::string> missing;
  for (const std::string& name : options.exported)
    if (!symbols.defined.contains(name)) missing.push_back(name);
  TS_USER_CHECK(missing.empty(), "undefined-export")
      << "link: exported symbols: expected each defined by an object, got none for " << join(missing)
      << "; add its object or drop the name";
}

/// Runs LLD. It keeps its state in globals, so runs wait for each other; a fatal error of LLD ends the run, not the
/// process.
void run_lld(std::vector<std::string> arguments) {
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard lock(mutex);
  TS_CHECK(usable) << "the linker crashed earlier and cannot run again in this process";
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::string out, err;
  llvm::raw_string_ostream out_stream(out), err_stream(err);
  const lld::Result result = lld::lldMain(argv, out_stream, err_stream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  TS_USER_CHECK(result.retCode == 0, "link-failed")
      << "link: " << arguments.back() << ": expected success, got: " << err;
}

const char* emulation(const Target& target) { return target.arch == "aarch64" ? "aarch64linux" : "elf_x86_64"; }

/// A scratch file: unlike write_file it does not wait for the disk.
void write(const std::string& path, llvm::StringRef content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  TS_USER_CHECK(file.good(), "cannot-write") << "link: " << path << ": expected to write " << content.size()
                                             << " bytes, got an error; free space in its folder";
}

std::vector<std::string> write_objects(std::span<const ObjectCode> objects, const TempDir& folder) {
  std::vector<std::string> paths;
  for (const ObjectCode& object : objects) {
    paths.push_back(folder.file(std::to_string(paths.size()) + ".o"));
    write(paths.back(), buffer_of(object).getBuffer());
  }
  return paths;
}

/// A shared library without code that has the system library's name, functions and versions.
std::string make_stub_library(const SystemLibrary& library, const Target& target, const TempDir& folder) {
  std::vector<std::string> functions;
  std::string script;
  for (const SystemLibrary::Version& version : library.versions) {
    script += version.name + " { global:";
    for (const std::string& function : version.functions) {
      functions.push_back(function);
      script += " " + function + ";";
    }
    script += " };\n";
  }
  const std::string object = folder.file(library.soname + ".o"), versions = folder.file(library.soname + ".versions");
  write(object, buffer_of(make_stub_object(functions, target)).getBuffer());
  write(versions, script);
  const std::string path = folder.file(library.soname);
  run_lld({"ld.lld", "-m", emulation(target), "-shared", "--soname=" + library.soname, "--version-script=" + versions,
           object, "-o", path});
  return path;
}

}  // namespace

void link_shared_library(std::span<const ObjectCode> objects, const Target& target, const LinkOptions& options,
                         const std::string& path) {
  const SymbolSets symbols = symbols_of(objects, options);
  check_exports(symbols, options);
  TempDir folder;
  std::vector<std::string> libraries;
  std::set<std::string> missing = symbols.undefined;
  for (const SystemLibrary& library : system_libraries(target)) {
    bool used = false;
    for (const std::string& name : symbols.undefined) {
      if (!provides(library, name)) continue;
      used = true;
      missing.erase(name);
    }
    if (used) libraries.push_back(make_stub_library(library, target, folder));
  }
  TS_USER_CHECK(missing.empty(), "undefined-symbol")
      << "link: undefined symbols: expected only functions of libc, libm and libpthread, got "
      << join({missing.begin(), missing.end()}) << "; add the object that defines them";
  std::string script = "{ ";
  if (!options.exported.empty()) {
    script += "global:";
    for (const std::string& name : options.exported) script += " " + name + ";";
  }
  script += " local: *; };\n";
  const std::string exports = folder.file("exports");
  write(exports, script);
  // -Bsymbolic: functions of the library call each other directly. One thread: two would not be faster for a few
  // kernels.
  std::vector<std::string> arguments = {"ld.lld",
                                        "-m",
                                        emulation(target),
                                        "-shared",
                                        "-Bsymbolic",
                                        "--no-undefined",
                                        "--gc-sections",
                                        "--hash-style=gnu",
                                        "--build-id=sha1",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "now",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "text",
                                        "--threads=1",
                                        "--version-script=" + exports};
  if (!options.soname.empty()) arguments.push_back("--soname=" + options.soname);
  for (std::string& object : write_objects(objects, folder)) arguments.push_back(std::move(object));
  arguments.insert(arguments.end(), options.object_files.begin(), options.object_files.end());
  for (std::string& library : libraries) arguments.push_back(std::move(library));
  arguments.insert(arguments.end(), {"-o", path});
  run_lld(std::move(arguments));
}

ObjectCode link_object(std::span<const ObjectCode> objects, const Target& target, const LinkOptions& options) {
  check_exports(symbols_of(objects, options), options);
  TempDir folder;
  const std::string path = folder.file("combined.o");
  std::vector<std::string> arguments = {"ld.lld", "-m", emulation(target), "-r", "--threads=1"};
  for (std::string& object : write_objects(objects, folder)) arguments.push_back(std::move(object));
  arguments.insert(arguments.end(), options.object_files.begin(), options.object_files.end());
  arguments.insert(arguments.end(), {"-o", path});
  run_lld(std::move(arguments));
  Result<std::string> combined = read_file(path, INT64_MAX);
  if (!combined) throw UserError(combined.failure().id, combined.failure().message);

  llvm::objcopy::ConfigManager config;
  config.Common.InputFilename = config.Common.OutputFilename = "combined.o";
  config.Common.OutputFormat = llvm::objcopy::FileFormat::ELF;
  auto keep_error = [](llvm::Error error) { return error; };
  for (const std::string& name : options.exported) {
    llvm::Expected<llvm::objcopy::NameOrPattern> pattern =
        llvm::objcopy::NameOrPattern::create(name, llvm::objcopy::MatchStyle::Literal, keep_error);
    TS_CHECK(static_cast<bool>(pattern)) << llvm::toString(pattern.takeError());
    llvm::Error error = config.Common.SymbolsToKeepGlobal.addMatcher(std::move(pattern));
    TS_CHECK(!error) << llvm::toString(std::move(error));
  }
  llvm::Expected<std::unique_ptr<llvm::object::Binary>> binary =
      llvm::object::createBinary(llvm::MemoryBufferRef(*combined, "combined.o"));
  TS_CHECK(static_cast<bool>(binary)) << llvm::toString(binary.takeError());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **binary, stream);
  TS_CHECK(!error) << llvm::toString(std::move(error));
  ObjectCode result;
  result.bytes.assign(bytes.begin(), bytes.end());
  return result;
}

std::vector<uint8_t> make_archive(const std::vector<std::pair<std::string, ObjectCode>>& members) {
  std::vector<llvm::NewArchiveMember> list;
  for (const auto& [name, object] : members) list.emplace_back(buffer_of(object, name));
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> archive =
      llvm::writeArchiveToBuffer(list, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                 /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    throw UserError("link-failed", "link: archive: expected ELF objects, got: " + llvm::toString(archive.takeError()));
  return {(*archive)->getBufferStart(), (*archive)->getBufferEnd()};
}

}  // namespace tensmith
