#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "apps/cli/repro.h"
#include "apps/driver/observer.h"
#include "runtime/base/config.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/time_line.h"

namespace {

using tensmith::cli::Options;

/// CLI11 takes `-O2` for the short flag -O with a value; our levels are flags of their own, rewritten to long ones.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> words;
  for (int k = 1; k < argc; ++k) {
    std::string word = argv[k];
    if (word.size() == 3 && word[0] == '-' && word[1] == 'O' && word[2] >= '0' && word[2] <= '3')
      word = "--O" + word.substr(2);
    words.push_back(word);
  }
  return words;
}

/// Takes the switches of `--help-debug` out of the arguments.
std::vector<std::string> take_switches(const std::vector<std::string>& words) {
  tensmith::Result<tensmith::Config> environment = tensmith::Config::from_environment();
  if (!environment) throw tensmith::UserError(environment.failure().id, environment.failure().message);
  tensmith::Config config = std::move(environment).value();
  std::vector<std::string> rest;
  for (const std::string& word : words) {
    // Threads have a flag of the sub-commands too, which checks the number; `tune` has one for the seed.
    const auto is_flag = [&](const std::string& flag) { return word == flag || word.rfind(flag + "=", 0) == 0; };
    const bool own = is_flag("--threads") || (words[0] == "tune" && is_flag("--seed"));
    tensmith::Result<bool> taken =
        !own && word.rfind("--", 0) == 0 ? config.set_flag(word) : tensmith::Result<bool>(false);
    if (!taken) throw tensmith::UserError(taken.failure().id, taken.failure().message);
    if (!*taken) rest.push_back(word);
  }
  if (const std::string wrong = tensmith::set_log_rules(config.log); !wrong.empty())
    throw tensmith::UserError("bad-switch",
                              "option --log: expected a level (error, warning, info, debug, trace) or "
                              "FILE=LEVEL, got '" +
                                  wrong + "'");
  tensmith::set_log_json(config.log_json);
  if (!config.dump.empty()) {
    std::error_code error;
    std::filesystem::create_directories(config.dump, error);
    if (!std::filesystem::is_directory(config.dump))
      throw tensmith::UserError(
          "cannot-write", "option --dump: expected a folder that exists or can be made, got '" + config.dump + "'");
  }
  tensmith::set_config(config);
  // Read by scripts around the program, not by it.
  static constexpr const char* kOfScripts[] = {"TENSMITH_HOME",        "TENSMITH_VENV",    "TENSMITH_SHARED",
                                               "TENSMITH_JOBS",        "TENSMITH_MODELS",  "TENSMITH_BENCH_KERNELS",
                                               "TENSMITH_BENCH_AGAIN", "TENSMITH_TVM_VENV"};
  for (const std::string& name : tensmith::unknown_environment_names())
    if (std::none_of(std::begin(kOfScripts), std::end(kOfScripts), [&](const char* known) { return name == known; }))
      std::cerr << "note: environment variable " << name << " is no switch; --help-debug lists them\n";
  return rest;
}

/// Refuses an unknown command and an unknown level by name, which CLI11 does not.
void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  std::string list;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  if (words[0][0] != '-' && std::find(names.begin(), names.end(), words[0]) == names.end()) {
    const std::string near = tensmith::nearest_word(words[0], names);
    throw tensmith::UserError("bad-usage", "command line: expected one of the commands " + list + "; got '" + words[0] +
                                               "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  for (const std::string& word : words)
    if (word.rfind("-O", 0) == 0)
      throw tensmith::UserError("bad-usage", "option " + word + ": expected -O0, -O1, -O2 or -O3");
}

/// Refuses a flag that the command does not have, with the nearest that it has.
void check_flags(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = words[0][0] == '-' ? nullptr : app.get_subcommand(words[0]);
  std::vector<std::string> names;
  for (const tensmith::Switch& known : tensmith::switches()) names.emplace_back(known.name);
  for (const CLI::App* owner : {&app, command})
    for (const CLI::Option* option : owner ? owner->get_options() : std::vector<const CLI::Option*>())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  for (const std::string& word : words) {
    if (word == "--") return;
    if (word.rfind("--", 0) != 0) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = tensmith::nearest_word(name, names);
    throw tensmith::UserError(
        "bad-usage",
        "option --" + name + ": expected a flag of " + (command ? command->get_name() : "tensmith") + ", got none" +
            (near.empty() ? "" : "; did you mean '--" + near + "'?") +
            (near.empty() ? "; run tensmith " + (command ? command->get_name() + " " : "") + "--help" : ""));
  }
}

/// `--json` may stand with or without a file, so a model behind it would be taken for the file and be overwritten.
void check_json_file(const Options& o) {
  static constexpr const char* kModels[] = {".onnx", ".so", ".graph", ".a", ".o"};
  const std::string suffix = std::filesystem::path(o.json_file).extension().string();
  const bool is_model = std::any_of(std::begin(kModels), std::end(kModels), [&](const char* s) { return suffix == s; });
  if (!is_model && (!o.model.empty() || !o.batch.empty() || o.json_file.empty() || o.json_file == "-")) return;
  throw tensmith::UserError("bad-usage", "option --json: expected a file to write, got '" + o.json_file + "'" +
                                             (o.model.empty() ? " and no model" : "") +
                                             "; write --json=FILE, or put the model in front of --json");
}

/// The words as a shell would take them.
std::string command_line(int argc, char** argv) {
  std::string line;
  for (int k = 0; k < argc; ++k) {
    std::string word = argv[k];
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@,+") !=
            std::string::npos ||
        word.empty()) {
      for (size_t at = 0; (at = word.find('\'', at)) != std::string::npos; at += 4) word.replace(at, 1, "'\\''");
      word = "'" + word + "'";
    }
    line += (k ? " " : "") + word;
  }
  return line;
}

int run(int argc, char** argv) {
  Options o;
  o.command_line = command_line(argc, argv);
  CLI::App app{"Compiles neural networks to fast native code.", "tensmith"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("tensmith ") + tensmith::tool_version());
  bool help_debug = false;
  app.add_flag("--help-debug", help_debug, "list the switches for seeing inside");
  int (*command)(const Options&) = nullptr;
  const auto sub = [&](const char* name, const char* text, int (*fn)(const Options&)) {
    CLI::App* s = app.add_subcommand(name, text);
    s->callback([&command, fn] { command = fn; });
    return s;
  };
  const auto levels = [&](CLI::App* s) {
    for (int level = 0; level <= 3; ++level)
      s->add_flag_callback(
          "--O" + std::to_string(level), [&o, level] { o.opt_level = level; },
          "optimisation level (also -O" + std::to_string(level) + ")");
  };
  // One value each time that it is given, so that what follows is the model.
  const auto repeatable = [](CLI::App* s, const char* name, std::vector<std::string>& values, const char* text) {
    return s->add_option(name, values, text)->expected(1)->take_all()->allow_extra_args(false);
  };
  const auto with_model = [&](CLI::App* s) {
    s->add_option("model", o.model, "ONNX model, or an exported library where that makes sense");
    repeatable(s, "--dim", o.dims, "size of a symbolic dim: NAME=N or INPUT.AXIS=N (repeatable)")->type_name("NAME=N");
    s->add_option("--target", o.target,
                  "host, x86-64-v2, -v3, -v4, a CPU kind such as znver3, aarch64; options after commas");
    s->add_option("--threads", o.threads, "threads, the caller included (default: usable cores)")
        ->check(CLI::Range(0, 1024));
    levels(s);
  };
  const CLI::Validator tolerance(
      [](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return end != text.c_str() && *end == 0 && value >= 0 ? std::string()
                                                              : "expected a number from 0 on, got '" + text + "'";
      },
      "NUMBER");
  const auto with_records = [&](CLI::App* s) {
    repeatable(s, "--records", o.records, "file of tuning records whose schedules are taken (repeatable)")
        ->type_name("R.jsonl");
    s->add_flag("--require-tuned", o.require_tuned, "refuse kernels that no record fits");
    s->add_flag("--any-build", o.any_build, "take records of other builds of this version where this one has none");
  };
  const auto with_inputs = [&](CLI::App* s) {
    repeatable(s, "--input", o.inputs,
               "NAME=@FILE.npy, NAME=random:SEED, NAME=zeros or NAME=ones (repeatable; default random:0)");
  };

  CLI::App* check =
      sub("check", "tells whether a model can be compiled; lists all that is unsupported", tensmith::cli::check);
  with_model(check);
  check->add_flag("--json", o.json, "print JSON");

  CLI::App* compile = sub("compile", "compiles a model to one library with a C header", tensmith::cli::compile);
  with_model(compile);
  with_records(compile);
  compile->add_option("-o,--output", o.output, "OUT.so, OUT.a or OUT.o")->required();
  compile->add_option("--weights", o.weights, "embed, file or auto")->check(CLI::IsMember({"embed", "file", "auto"}));

  CLI::App* run = sub("run", "runs a model or library once", tensmith::cli::run);
  with_model(run);
  with_records(run);
  with_inputs(run);
  repeatable(run, "--output", o.outputs, "NAME=@FILE.npy (repeatable)");
  run->add_option("--print-top", o.print_top, "print the N largest elements of each output")
      ->check(CLI::Range(0, 1000));

  run->add_flag("--interpret", o.interpret, "by the interpreter of the graph, in float64 throughout (minutes)");

  CLI::App* verify = sub("verify", "compares a compiled model with a reference", tensmith::cli::verify);
  with_model(verify);
  with_records(verify);
  with_inputs(verify);
  verify->add_option("--ref", o.reference, "interp, onnxruntime, or a folder with arrays");
  verify->add_option("--rtol", o.rtol, "relative tolerance")->check(tolerance);
  verify->add_option("--atol", o.atol, "absolute tolerance in units of the largest element of the output")
      ->check(tolerance);
  verify->add_flag("--per-node", o.per_node, "compare every intermediate value");
  verify->add_option("--batch", o.batch, "list of models and arrays; answers go to --json FILE");
  verify->add_option("--json", o.json_file, "with --batch: file for the answers; else print JSON")
      ->expected(0, 1)
      ->default_str("-");

  CLI::App* bench = sub("bench", "times a model or library", tensmith::cli::bench);
  with_model(bench);
  with_records(bench);
  with_inputs(bench);
  bench->add_option("--compare", o.compare, "onnxruntime: time it in turns");
  bench->add_option("--rounds", o.rounds, "timed runs")->check(CLI::Range(1, 1000000));
  bench->add_option("--json", o.json_file, "write JSON to FILE, or print it")->expected(0, 1)->default_str("-");
  bench->add_flag("--serve", o.serve, "answer requests on standard input (see apps/bench)");

  CLI::App* profile = sub("profile", "times every kernel", tensmith::cli::profile);
  with_model(profile);
  with_records(profile);
  with_inputs(profile);
  profile->add_option("--trace", o.trace, "write a Chrome trace to FILE");
  profile->add_option("--rounds", o.rounds, "timed runs")->check(CLI::Range(1, 1000000));
  profile->add_flag("--json", o.json, "print JSON");
  profile->add_flag("--bound", o.bound, "each kernel beside what the machine allows; the largest gaps first");

  CLI::App* inspect = sub("inspect", "shows kernels, schedules, loops and assembly", tensmith::cli::inspect);
  with_model(inspect);
  with_records(inspect);
  inspect->add_flag("--json", o.json, "print JSON");
  inspect->add_option("--schedule", o.schedule, "kernels whose name contains this: workload, reasons, steps, loops");
  inspect->add_option("--asm", o.assembly, "the same with assembly");

  CLI::App* records = sub("records", "lists, merges and checks records of tuning", tensmith::cli::records);
  records->add_option("action", o.action, "ls, best, merge, prune, verify or export")
      ->required()
      ->check(CLI::IsMember({"ls", "best", "merge", "prune", "verify", "export"}));
  records->add_option("files", o.files, "files of records")->required();
  records->add_option("-o,--output", o.output, "merge, prune, export: the result");
  records->add_flag("--json", o.json, "ls, best: print JSON");
  records->add_flag("--replay", o.replay, "verify: lower each schedule and check it");

  CLI::App* tune = sub("tune", "searches faster schedules and records them", tensmith::cli::tune);
  with_model(tune);
  tune->add_option("--op", o.op, "a single operator instead of a model: matmul:512x512x512:f32 and the like");
  tune->add_option("-o,--output", o.output, "file of records, made or gone on with");
  repeatable(tune, "--records", o.records,
             "records of other models, to start from: they teach the cost model and give first candidates "
             "(repeatable)");
  tune->add_option("--trials", o.trials, "candidates to measure at most, of all tasks together")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  tune->add_option("--timeout", o.timeout, "time to spend: 90s, 10m, 1h (default: 5m without --trials)");
  tune->add_option("--tasks", o.tasks, "list, or the numbers of those to tune: 0,2-5");
  tune->add_option("--seed", o.seed, "of the search");
  tune->add_flag("--dry-run", o.dry_run, "print each task's rules, decisions and size of its space");
  tune->add_flag("--choices,!--no-choices", o.choices,
                 "first try other algorithms, layouts and fusions than the estimates say, in the whole model "
                 "(default; not with --tasks)");
  tune->add_option("--progress", o.progress, "auto, bar, plain, jsonl or none");
  tune->add_option("--cost-model", o.cost_model, "xgb, analytic, random, or a file of a trained one");
  tune->add_option("--save-cost-model", o.save_cost_model, "file for the model that was trained");
  tune->add_option("--search", o.search, "evolve, random, grid or anneal");
  tune->add_option("--workers", o.workers, "processes that build (default: one less than the cores)")
      ->check(CLI::Range(0, 256));
  tune->add_option("--cpus", o.cpus, "CPUs of the workers: 0-1");
  tune->add_option("--runner", o.runner, "local, or cmd:COMMAND that starts a worker elsewhere");

  CLI::App* report = sub("report", "makes a page of curves and tables from tuning records", tensmith::cli::report);
  report->add_option("files", o.files, "files of records")->required();
  report->add_option("-o,--output", o.output, "report.html");

  CLI::App* worker = sub("worker", "builds and measures candidates for a tuner", tensmith::cli::worker);
  worker->add_flag("--stdio", o.stdio, "requests on standard input, answers on standard output");

  CLI::App* explain = sub("explain", "explains an error id or a schedule primitive", tensmith::cli::explain);
  explain->add_option("id", o.id,
                      "the id in brackets at the end of a message; a primitive's name; primitives: lists these");

  CLI::App* target = sub("target", "describes the machine or a target", tensmith::cli::target);
  target->add_option("--target", o.target, "the target");
  target->add_flag("--json", o.json, "print JSON");

  std::vector<std::string> words = take_switches(arguments(argc, argv));
  if (std::find(words.begin(), words.end(), "--help-debug") != words.end()) {
    std::cout << tensmith::help_debug();
    return 0;
  }
  if (words.empty() || words[0] == "help") {
    std::cout << app.help();
    return words.empty() ? 2 : 0;
  }
  check_command(app, words);
  check_flags(app, words);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string text = e.what();
    if (!text.empty() && text.back() == '.') text.pop_back();
    throw tensmith::UserError("bad-usage",
                              "command line: " + text + "; run tensmith --help, or tensmith COMMAND --help");
  }
  check_json_file(o);
  if (o.threads == 0) o.threads = static_cast<int>(std::min<int64_t>(tensmith::config()->threads, 1024));
  // `--json` without a file prints.
  if (o.json_file == "-" || (o.json_file.empty() && (verify->count("--json") || bench->count("--json")))) {
    o.json = true;
    o.json_file.clear();
  }
  const bool needs_model = command != tensmith::cli::explain && command != tensmith::cli::target &&
                           command != tensmith::cli::records && command != tensmith::cli::report &&
                           command != tensmith::cli::worker && !(command == tensmith::cli::tune && !o.op.empty());
  if (needs_model && o.model.empty() && o.batch.empty())
    throw tensmith::UserError("bad-usage", "command line: expected a model, got none; run tensmith COMMAND MODEL");
  int code = 0;
  try {
    code = command(o);
  } catch (const tensmith::CompilationStopped& stopped) {
    std::cout << stopped.text();
  } catch (const tensmith::ReproducibleError& e) {
    throw tensmith::InternalError(e.message() + "; this is our fault; " + tensmith::cli::save_reproducer(o, e.files()));
  } catch (const tensmith::InternalError& e) {
    throw tensmith::InternalError(e.message() + "; this is our fault; " +
                                  tensmith::cli::save_reproducer(o, {{"error.txt", e.message() + "\n"}}));
  }
  if (const tensmith::TimeLine* line = tensmith::process_time_line())
    if (const auto ok = tensmith::write_json(
            tensmith::config()->profile, line->chrome_json(tensmith::cli::file_provenance("tensmith.profile/1", o)));
        !ok)
      throw tensmith::UserError(ok.failure().id, "option --profile: " + ok.failure().message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::ios::sync_with_stdio(false);
    const int code = run(argc, argv);
    std::cout.flush();
    if (!std::cout) {
      std::cerr << "tensmith: standard output cannot be written [cannot-write]\n";
      return 1;
    }
    return code;
  } catch (const tensmith::Error& e) {
    std::cout.flush();
    std::cerr << "tensmith: " << e.what() << "\n";
    return tensmith::exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    std::cerr << "tensmith: out of memory [out-of-memory]\n";
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "tensmith: " << e.what() << " [internal-error]\n";
    return 1;
  }
}
