/// Figures of the auto-scheduler; apps/bench/tuning makes one table of them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/bench/tuning_program/parts.h"
#include "apps/driver/op_graph.h"
#include "runtime/base/error.h"

namespace tensmith::bench {
namespace {

constexpr char kUsage[] =
    "usage: tensmith_bench_tuning quality|exhaustive|draw|judge|speed|warm-start OP[@THREADS][,OP...] [--data FILE] "
    "[--first OP,...] [--model FILE] [--threads N] [--trials N] [--seeds N] [--rounds N] [--points N] [--count N]";

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

int main_with(int argc, char** argv) {
  const auto refuse = [](const std::string& what) {
    std::fprintf(stderr, "tuning: command line: %s; %s\n", what.c_str(), kUsage);
    return 2;
  };
  if (argc < 3) return refuse("expected a part and an operator");
  PartOptions options;
  std::string data;
  options.ops = split(argv[2]);
  for (int k = 3; k < argc; ++k) {
    const std::string flag = argv[k];
    if (k + 1 >= argc) return refuse("expected a value behind " + flag);
    const std::string text = argv[++k];
    const int64_t value = std::strtoll(text.c_str(), nullptr, 10);
    if (flag == "--first") options.first = split(text);
    else if (flag == "--data") data = text;
    else if (flag == "--model") options.model = text;
    else if (value <= 0) return refuse(flag + ": expected a number above 0, got '" + text + "'");
    else if (flag == "--threads") options.threads = static_cast<int>(value);
    else if (flag == "--trials") options.trials = value;
    else if (flag == "--seeds") options.seeds = static_cast<int>(value);
    else if (flag == "--rounds") options.rounds = static_cast<int>(value);
    else if (flag == "--points") options.points = value;
    else if (flag == "--count") options.count = static_cast<int>(value);
    else return refuse("unexpected " + flag);
  }
  const std::string part = argv[1];
  Json json;
  Result<CostStore> opened = CostStore::open(data);
  if (!opened) throw UserError(opened.failure().id, opened.failure().message);
  CostStore store = std::move(opened).value();
  if (part == "quality") json = quality(options, store);
  else if (part == "exhaustive") json = exhaustive(options, store);
  else if (part == "draw") json = draw(options, store);
  else if (part == "judge") json = judge(options, store);
  else if (part == "speed") json = speed(options);
  else if (part == "warm-start") json = warm_start(options, store);
  else return refuse("unknown part '" + part + "'");
  std::fputs(json_text(json).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace tensmith::bench

int main(int argc, char** argv) {
  try {
    return tensmith::bench::main_with(argc, argv);
  } catch (const tensmith::Error& e) {
    std::fprintf(stderr, "tuning: %s\n", e.what());
    return tensmith::exit_code(e.kind());
  }
}
