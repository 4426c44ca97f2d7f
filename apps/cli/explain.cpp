#include <algorithm>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/explanations.h"
#include "runtime/base/config.h"
#include "runtime/base/error.h"
#include "schedule/primitive_def.h"

namespace tensmith::cli {

namespace {

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

/// A primitive of schedules as its definition says it.
void print_primitive(const PrimitiveDef& def) {
  std::cout << def.name << "\n  " << indented(def.doc) << "\n";
  for (const ArgSpec& arg : def.args) {
    std::cout << "  " << arg.name << ": " << arg.doc;
    std::string choices;
    for (const std::string& choice : arg.allowed) choices += (choices.empty() ? "" : ", ") + choice;
    if (!choices.empty()) std::cout << " (" << choices << ")";
    if (arg.default_text && *arg.default_text) std::cout << "; " << arg.default_text << " when left out";
    else if (arg.default_text) std::cout << "; may be left out";
    std::cout << "\n";
  }
  std::cout << "  Halide: " << def.halide << "; TVM: " << def.tvm << "\n  example: " << def.samples[0].steps.back()
            << "\n";
}

void print_primitives() {
  for (const PrimitiveDef* def : all_primitives())
    std::cout << def->name << std::string(std::max<size_t>(26, def->name.size() + 1) - def->name.size(), ' ')
              << "Halide: " << def->halide << "; TVM: " << def->tvm << "\n";
  std::cout << "\nknown elsewhere by another name\n";
  for (const OtherName& other : other_names())
    std::cout << other.name << std::string(std::max<size_t>(26, other.name.size() + 1) - other.name.size(), ' ')
              << other.here << "\n";
}

}  // namespace

int explain(const Options& options) {
  if (options.id == "primitives") {
    print_primitives();
    return 0;
  }
  if (const PrimitiveDef* def = find_primitive(options.id)) {
    print_primitive(*def);
    return 0;
  }
  for (const OtherName& other : other_names())
    if (options.id == other.name) {
      std::cout << other.name << "\n  here: " << other.here << "\n";
      return 0;
    }
  if (options.id.empty()) {
    for (const Explanation& e : explanations()) std::cout << e.id << "\n";
    return 0;
  }
  for (const Explanation& e : explanations())
    if (options.id == e.id) {
      std::cout << e.id << "\n  means:   " << e.meaning << "\n  way out: " << e.way_out << "\n";
      return 0;
    }
  std::vector<std::string> ids;
  for (const Explanation& e : explanations()) ids.push_back(e.id);
  for (const PrimitiveDef* def : all_primitives()) ids.push_back(def->name);
  const std::string near = nearest_word(options.id, ids);
  throw UserError("unknown-error-id", "explain " + options.id + ": expected an error id or a primitive, got '" +
                                          options.id + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                          "; tensmith explain and tensmith explain primitives list them");
}

}  // namespace tensmith::cli
