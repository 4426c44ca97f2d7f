#include "runtime/c_api.h"

#include <exception>
#include <new>
#include <string>

#include "runtime/module.h"

struct tensmith_library {
  tensmith::Module module;
};

namespace {

thread_local std::string g_message;

/// Runs `f`, which gives a code; no exception leaves.
template <typename F>
int32_t guarded(F f) noexcept {
  try {
    g_message.clear();
    return f();
  } catch (const std::bad_alloc&) {
    return TENSMITH_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    try {
      g_message = error.what();
    } catch (...) {
      g_message.clear();
    }
  } catch (...) {
  }
  return TENSMITH_INTERNAL;
}

}  // namespace

extern "C" {

const char* tensmith_version(void) { return tensmith::tool_version(); }

const char* tensmith_last_message(void) { return g_message.c_str(); }

int32_t tensmith_library_open(const char* path, const char* prefix, tensmith_library** library) {
  return guarded([&]() -> int32_t {
    if (!library) return TENSMITH_BAD_ARGUMENT;
    *library = nullptr;
    if (!path) {
      g_message = "library: expected a path, got a null pointer";
      return TENSMITH_BAD_ARGUMENT;
    }
    tensmith::LoadOptions options;
    if (prefix) options.prefix = prefix;
    tensmith::Result<tensmith::Module> module = tensmith::Module::load(path, options);
    if (!module) {
      g_message = module.failure().message;
      return TENSMITH_CANNOT_LOAD;
    }
    *library = new tensmith_library{std::move(module).value()};
    return TENSMITH_OK;
  });
}

void tensmith_library_close(tensmith_library* library) {
  guarded([&]() -> int32_t {
    delete library;
    return TENSMITH_OK;
  });
}

const tensmith_api* tensmith_library_api(const tensmith_library* library) {
  return library ? library->module.api() : nullptr;
}

int32_t tensmith_library_create(const tensmith_library* library, int32_t num_threads, tensmith_instance** instance) {
  return guarded([&]() -> int32_t {
    if (!library || !instance) return TENSMITH_BAD_ARGUMENT;
    char error[512] = "";
    tensmith_options options = {};
    options.size = sizeof options;
    options.num_threads = num_threads;
    options.error = error;
    options.error_bytes = sizeof error;
    const int32_t code = library->module.api()->create(&options, instance);
    g_message = error;
    return code;
  });
}

}  // extern "C"
