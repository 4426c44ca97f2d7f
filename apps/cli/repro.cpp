#include "apps/cli/repro.h"

#include <nlohmann/json.hpp>

#include "apps/cli/model.h"
#include "runtime/base/config.h"

namespace tensmith::cli {

std::string save_reproducer(const Options& options, ReproducerFiles files) {
  files["command.txt"] = options.command_line + "\n";
  Json about = json_header(file_provenance("tensmith.repro/1", options));
  about["model"] = options.model;
  about["opt_level"] = options.opt_level;
  files["about.json"] = json_text(about);
  const Result<std::string> folder = write_reproducer(config()->repro, files);
  if (!folder) return "no reproducer was written: " + folder.failure().message;
  return "a reproducer is in " + *folder;
}

}  // namespace tensmith::cli
