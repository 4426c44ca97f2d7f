#include "apps/bench/kernels_program/floors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "runtime/base/files.h"
#include "runtime/base/quantile.h"

namespace tensmith::bench {

namespace {

std::string strip(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

}  // namespace

std::string kernel_class(const Item& item) {
  const bool blocks = item.name.ends_with(" blocks");
  const std::string layout = blocks ? ", blocks" : ", channels last";
  if (item.group == "matmul") {
    const long rows = std::strtol(item.name.c_str(), nullptr, 10);
    return rows == 1 ? "matmul, one row" : rows < 32 ? "matmul, few rows" : "matmul";
  }
  if (item.group == "convolution") return item.group + " " + item.name.substr(0, item.name.find(' ')) + layout;
  if (item.group == "depthwise") return item.group + layout;
  return item.group;
}

bool class_is_bandwidth_bound(const std::string& name) {
  return name.starts_with("depthwise") || name == "matmul, one row" || name == "matmul, few rows";
}

std::string cpu_kind(const Target& target) {
  return std::to_string(target.vector_bits) + " bits, " + std::to_string(target.fma_ports) + " ports";
}

Result<Floors> read_floors(const std::string& path, const std::string& kind) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.failure();
  Floors floors;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = strip(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t first = line.find(':'), last = line.rfind(':');
    char* end = nullptr;
    const std::string value = last == std::string::npos ? "" : strip(line.substr(last + 1));
    const double least = std::strtod(value.c_str(), &end);
    if (first == last || value.empty() || *end != 0 || !(least > 0))
      return Failure{"bad-usage", path + ": line " + std::to_string(number) +
                                      ": expected KIND: CLASS: NUMBER above 0, got '" + line + "'"};
    if (strip(line.substr(0, first)) == kind) floors[strip(line.substr(first + 1, last - first - 1))] = least;
  }
  if (floors.empty())
    return Failure{"bad-usage", path + ": expected floors for a CPU of " + kind + ", got none; measure and add them"};
  return floors;
}

int classes_below(const Floors& floors, const std::map<std::string, std::vector<double>>& reached) {
  int below = 0;
  std::printf("\n%-32s %8s %8s %8s\n", "class", "kernels", "median", "floor");
  for (const auto& [name, figures] : reached) {
    std::vector<double> sorted = figures;
    std::sort(sorted.begin(), sorted.end());
    const double median = quantile(sorted, 0.5);
    const auto floor = floors.find(name);
    const bool is_below = floor == floors.end() || median < floor->second;
    below += is_below;
    std::printf("%-32s %8zu %8.3f %8.3f%s\n", name.c_str(), sorted.size(), median,
                floor == floors.end() ? 0.0 : floor->second,
                floor == floors.end() ? "  no floor"
                : is_below            ? "  BELOW"
                                      : "");
  }
  std::printf("%d of %zu classes below their floors\n", below, reached.size());
  return below;
}

}  // namespace tensmith::bench
