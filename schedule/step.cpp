#include "schedule/step.h"

#include <sstream>

namespace tensmith {

namespace {

struct Printer {
  std::ostringstream& out;
  void operator()(int64_t value) const { out << value; }
  void operator()(const std::string& value) const { out << value; }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    for (size_t k = 0; k < values.size(); ++k) out << (k ? "," : "") << values[k];
  }
};

}  // namespace

std::string to_string(const Step& step) {
  std::ostringstream out;
  out << step.primitive;
  for (const auto& [name, value] : step.args) {
    out << " " << name << "=";
    std::visit(Printer{out}, value);
  }
  return out.str();
}

}  // namespace tensmith
