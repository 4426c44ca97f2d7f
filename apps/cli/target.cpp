#include <nlohmann/json.hpp>

#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "autotune/records/build_id.h"

namespace tensmith::cli {

int target(const Options& options) {
  const Target target = take(Target::parse(options.target));
  if (options.json) {
    Json json = json_header({"tensmith.target/1", to_string(target), 0, 0, {}});
    json["description"] = to_json(target);
    json["build"] = build_id();
    std::cout << json_text(json);
    return 0;
  }
  std::cout << to_string(target) << "\n"
            << "  cpu        " << host_cpu_model() << (options.target == "host" ? "" : " (this machine)") << "\n"
            << "  vectors    " << target.vector_bits << " bits, " << target.vector_registers << " registers, "
            << target.fma_ports << " FMA a cycle\n"
            << "  caches     L1 " << (target.l1_bytes >> 10) << " KiB, L2 " << (target.l2_bytes >> 10) << " KiB, L3 "
            << (target.l3_bytes >> 10) << " KiB\n"
            << "  threads    " << target.cores << "\n"
            << "  features  ";
  for (const std::string& name : target.feature_names) std::cout << " " << name;
  std::cout << "\n";
  if (const char* missing = target.missing_on_host()) std::cout << "  this machine lacks " << missing << "\n";
  return 0;
}

}  // namespace tensmith::cli
