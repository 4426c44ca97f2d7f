/// What the command line says.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tensmith::cli {

/// The options of all sub-commands; each uses some of them.
struct Options {
  std::string model;  ///< MODEL or OUT.so
  std::string target = "host";
  int opt_level = 2;
  int threads = 0;                   ///< 0: the usable cores
  std::vector<std::string> dims;     ///< NAME=N
  std::vector<std::string> inputs;   ///< NAME=@FILE.npy | random:SEED | zeros | ones
  std::vector<std::string> outputs;  ///< NAME=@FILE.npy, or -o OUT for compile
  std::string output;                ///< compile: OUT.so|OUT.a|OUT.o
  std::string weights = "auto";      ///< compile: embed|file|auto
  bool json = false;                 ///< print JSON on stdout
  std::string json_file;             ///< write JSON to a file
  int print_top = 0;                 ///< run: the largest elements of each output
  bool interpret = false;            ///< run: by the interpreter of the graph, in float64
  std::string reference = "interp";  ///< verify: interp|onnxruntime|DIR
  double rtol = 1e-3, atol = 1e-4;   ///< verify; atol in units of the reference's largest element
  bool per_node = false;             ///< verify: compare after each kernel
  std::string batch;                 ///< verify: list of models
  std::string compare;               ///< bench: onnxruntime
  int rounds = 30;                   ///< bench
  bool serve = false;                ///< bench: protocol of apps/bench/contest.py
  std::string trace;                 ///< profile: Chrome trace
  bool bound = false;                ///< profile: beside what the machine allows
  std::string schedule, assembly;    ///< inspect: a kernel's name or part of it; "" none
  std::string id;                    ///< explain
  std::vector<std::string> records;  ///< compile, run, bench, verify: files of tuning records
  bool require_tuned = false;        ///< refuse kernels without a record
  bool any_build = false;            ///< take records of other builds of this version too
  std::string action;                ///< records: ls|best|merge|prune|verify|export
  std::vector<std::string> files;    ///< records
  bool replay = false;               ///< records verify: lower each schedule
  std::string op;                    ///< tune: a single operator instead of a model
  int64_t trials = 0;                ///< tune: 0 no limit
  std::string timeout;               ///< tune: 90s, 10m
  std::string tasks;                 ///< tune: list, or numbers
  int64_t seed = 0;                  ///< tune
  bool dry_run = false;              ///< tune
  bool choices = true;               ///< tune: try other ways of passes over the graph
  std::string progress = "auto";     ///< tune: auto|bar|plain|jsonl|none
  std::string cost_model = "xgb";    ///< tune: xgb|analytic|random|FILE
  std::string save_cost_model;       ///< tune: file for the trained model
  std::string search = "evolve";     ///< tune: evolve|random|grid|anneal
  int workers = 0;                   ///< tune: builders; 0 one less than the cores
  std::string cpus;                  ///< tune: 0-1
  std::string runner = "local";      ///< tune: local|cmd:COMMAND
  bool stdio = false;                ///< worker
  std::string command_line;          ///< as given, for reproducers
};

}  // namespace tensmith::cli
