#include "codegen/system_libraries.h"

#include <algorithm>
#include <map>

namespace tensmith {

namespace {

struct Row {
  const char* soname;
  const char* x86_version;  // oldest version with today's interface; AArch64 begins at GLIBC_2.17
  const char* functions;    // separated by spaces
};

// The functions of libm come in both precisions: `exp` stands for exp and expf.
constexpr const char* kLibm =
    "exp exp2 expm1 log log2 log10 log1p tanh sinh cosh asinh acosh atanh sin cos tan asin acos atan atan2 erf erfc "
    "sqrt cbrt pow "
    "fmod fmin fmax fma floor ceil trunc rint round nearbyint fabs";

// Source: symbol versions of glibc 2.36 as `nm -D` prints them.
constexpr Row kRows[] = {
    {"libc.so.6", "GLIBC_2.2.5",
     "memcpy memmove memset memcmp malloc calloc realloc free strlen strcmp strncmp strchr getenv open read write "
     "close fstat lseek mmap munmap "
     "madvise mprotect sysconf syscall sched_yield clock_gettime nanosleep strtol strtoll strtoul snprintf "
     "posix_memalign "
     "__errno_location pread"},
    {"libc.so.6", "GLIBC_2.16", "aligned_alloc getauxval"},
    {"libc.so.6", "GLIBC_2.3.4", "sched_getaffinity __snprintf_chk"},
    {"libc.so.6", "GLIBC_2.4", "__stack_chk_fail"},
    {"libpthread.so.0", "GLIBC_2.2.5",
     "pthread_create pthread_join pthread_attr_init pthread_attr_destroy pthread_attr_setstacksize pthread_sigmask "
     "pthread_mutex_lock "
     "pthread_mutex_unlock pthread_once pthread_self"},
    {"libm.so.6", "GLIBC_2.2.5", kLibm},
    {"libm.so.6", "GLIBC_2.25", "roundeven"},
};

}  // namespace

std::vector<SystemLibrary> system_libraries(const Target& target) {
  const bool x86 = target.arch == "x86_64";
  std::vector<SystemLibrary> libraries;
  for (const Row& row : kRows) {
    if (libraries.empty() || libraries.back().soname != row.soname) libraries.push_back({row.soname, {}});
    std::vector<SystemLibrary::Version>& versions = libraries.back().versions;
    // AArch64 arrived with 2.17: older rows are one version there.
    const std::string_view wanted = row.x86_version;
    const std::string version = x86 || wanted == "GLIBC_2.25" ? row.x86_version : "GLIBC_2.17";
    if (versions.empty() || versions.back().name != version) versions.push_back({version, {}});
    const bool both_precisions = libraries.back().soname == "libm.so.6";
    for (std::string_view rest = row.functions; !rest.empty();) {
      const size_t space = std::min(rest.find(' '), rest.size());
      const std::string name(rest.substr(0, space));
      versions.back().functions.push_back(name);
      if (both_precisions) versions.back().functions.push_back(name + "f");
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
  }
  return libraries;
}

bool provides(const SystemLibrary& library, std::string_view function) {
  for (const SystemLibrary::Version& version : library.versions)
    if (std::find(version.functions.begin(), version.functions.end(), function) != version.functions.end()) return true;
  return false;
}

}  // namespace tensmith
