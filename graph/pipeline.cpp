#include "graph/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>

#include "graph/passes/algebra.h"
#include "graph/passes/cancel_transpose_reshape.h"
#include "graph/passes/canonicalize.h"
#include "graph/passes/choose_algorithm.h"
#include "graph/passes/cse.h"
#include "graph/passes/decompose.h"
#include "graph/passes/flush_subnormals.h"
#include "graph/passes/fold.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/merge_products.h"
#include "graph/passes/narrow_weights.h"
#include "graph/passes/pad_planes.h"
#include "graph/passes/recompose.h"
#include "graph/passes/separate_rows.h"
#include "graph/passes/split_phases.h"
#include "runtime/base/files.h"

namespace tensmith::graph {

namespace {

constexpr GraphPass kPasses[] = {
    {"fold", "computes what does not depend on the inputs",
     "first, since shapes and masks that exporters compute hide everything else; sizes become numbers here", 0, true,
     fold},
    {"canonicalize", "writes what can be said in many ways in one", "before all passes that look for patterns", 1,
     false, canonicalize},
    {"cse", "merges nodes that compute the same",
     "patterns want x - mean(x) once, where exporters often write it twice", 1, false, eliminate_common},
    {"recompose", "finds normalisations, activations and softmax that were taken apart",
     "before algebra and batch norm folding move factors and terms of the patterns", 1, false, recompose},
    {"algebra", "applies identities of arithmetic that are exact but for the sign of a zero",
     "after canonicalize, which has put constants on the right", 1, false, simplify_algebra},
    {"fold-batch-norm", "moves factors and terms by channel into the weights in front",
     "after algebra, so that what is neutral is gone", 1, false, fold_batch_norm},
    {"cancel-moves", "cancels transposes and reshapes", "after batch norms are gone, which would hold transposes up", 1,
     false, cancel_transpose_reshape},
    {"fold-again", "computes what became constant",
     "constants that were moved through transposes and products of weights", 1, false, fold},
    {"canonicalize-again", "writes what can be said in many ways in one", "reshapes and transposes that met", 1, false,
     canonicalize},
    {"fold-batch-norm-again", "moves factors and terms by channel into the weights in front",
     "a term behind a convolution may have stood behind a transpose", 1, false, fold_batch_norm},
    {"fold-scale", "moves a number by which a product is multiplied into its weights",
     "after cancel-moves, which brings the number and the product together", 1, false, fold_scale},
    {"decompose", "replaces operators that are defined by simpler ones",
     "late, since composite operators are better patterns than their parts", 0, true, decompose},
    {"fold-decomposed", "computes what became constant", "decompositions compute with shapes", 0, true, fold},
    {"canonicalize-decomposed", "writes what can be said in many ways in one", "decompositions are not canonical", 1,
     false, canonicalize},
    {"cse-again", "merges nodes that compute the same", "all rewrites may have made equal nodes", 1, false,
     eliminate_common},
    {"merge-products", "makes one product of several with the same operand",
     "late: patterns before it look for single products, and equal ones are one by now", 1, false, merge_products},
    {"split-phases", "makes convolutions of transposed ones, for each phase of the output",
     "behind all passes that change weights by channel, before the choice among ways to compute a convolution", 1,
     false, split_phases},
    {"choose-algorithm", "picks among ways to compute a convolution by their cost on the target",
     "behind all passes that look for convolutions or change their weights", 2, false, choose_algorithm},
    {"flush-subnormals", "sets weights to zero that are too small to count",
     "behind all passes that make weights, once for each", 2, false, flush_subnormals},
    {"narrow-weights", "keeps weights that few rows meet in the narrowest type that holds them",
     "behind all passes that make weights or look for them", 2, false, narrow_weights},
    {"separate-rows", "copies where rows that the caller sees meet operators with channels",
     "behind all passes that would see a copy between two operators", 2, false, separate_rows},
    {"pad-planes", "pads the data of convolutions whose vectors run along rows of pixels before, not on the way",
     "behind separate-rows, which leaves those convolutions whose results stay planes", 1, false, pad_planes},
    {"dce", "removes nodes that no output needs", "last: nothing behind it makes dead nodes", 0, true, eliminate_dead},
};

bool is_pass(const std::string& name) {
  return std::any_of(std::begin(kPasses), std::end(kPasses), [&](const GraphPass& pass) { return name == pass.name; });
}

void check_pass_name(const std::string& name, const char* what) {
  std::string known;
  for (const GraphPass& pass : kPasses) known += (known.empty() ? "" : ", ") + std::string(pass.name);
  TS_USER_CHECK(is_pass(name), "unknown-pass") << what << " '" << name << "': expected one of " << known;
}

/// Prints and dumps as --print-graph and --dump ask.
struct Shower {
  std::string print, dump;
  int number = 0;

  void operator()(const GraphPass& pass, const Graph& graph, int changes, double) {
    const std::string name = pass.name;
    const bool before = changes < 0;
    if (before ? print == "before:" + name
               : print == "after-each" || print == "after:" + name || (print == "after-change" && changes > 0))
      std::cerr << "# graph " << (before ? "before " : "after ") << name << "\n" << to_string(graph);
    if (before || dump.empty() || changes == 0) return;
    const std::string digits = std::to_string(++number);
    const std::string file = "graph_" + std::string(digits.size() < 2 ? "0" : "") + digits + "_" + name + ".txt";
    if (const auto ok = write_file(dump + "/" + file, to_string(graph)); !ok)
      throw UserError(ok.failure().id, ok.failure().message);
  }
};

}  // namespace

std::span<const GraphPass> graph_passes() { return kPasses; }

PipelineOptions pipeline_options(const Config& config, int level) {
  PipelineOptions options;
  options.level = level;
  options.passes.constant_limit_bytes = config.constant_limit_mib << 20;
  options.passes.winograd = config.winograd;
  options.pass_limit = config.pass_limit;
  options.verify_each = config.verify_each;
  if (is_pass(config.stop_after)) options.stop_after = config.stop_after;  // else the name of a pass of another layer
  for (size_t start = 0; start < config.disable_pass.size();) {
    const size_t end = std::min(config.disable_pass.find(',', start), config.disable_pass.size());
    options.disabled.insert(config.disable_pass.substr(start, end - start));
    start = end + 1;
  }
  for (const std::string* print : {&config.print_graph})
    if (const size_t colon = print->find(':'); colon != std::string::npos)
      check_pass_name(print->substr(colon + 1), "print-graph");
  if (!config.print_graph.empty() || !config.dump.empty()) {
    // Copies of the observer share the counter of files.
    auto shower = std::make_shared<Shower>(Shower{config.print_graph, config.dump});
    options.observer = [shower](const GraphPass& pass, const Graph& graph, int changes, double ms) {
      (*shower)(pass, graph, changes, ms);
    };
  }
  return options;
}

std::vector<PassRecord> optimize(Graph& graph, const PipelineOptions& options) {
  std::vector<PassRecord> records;
  GraphEditor edit(graph);
  int64_t optional_left = options.pass_limit;
  for (const GraphPass& pass : kPasses) {
    const bool wanted =
        pass.required || (pass.level <= options.level && !options.disabled.count(pass.name) && optional_left != 0);
    if (wanted) {
      if (!pass.required && optional_left > 0) --optional_left;
      if (options.observer) options.observer(pass, graph, -1, 0);
      const auto start = std::chrono::steady_clock::now();
      const int changes = pass.run(edit, options.passes);
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      records.push_back({pass.name, changes, ms, graph.num_nodes()});
      if (options.observer) options.observer(pass, graph, changes, ms);
      if (options.verify_each && changes > 0)
        if (const auto ok = verify(graph); !ok)
          throw InternalError(std::string("graph does not verify after pass ") + pass.name + ": " +
                              ok.failure().message);
    }
    if (options.stop_after == pass.name) break;
  }
  return records;
}

std::string to_string(const std::vector<PassRecord>& records) {
  std::string text;
  for (const PassRecord& record : records) {
    char line[160];
    std::snprintf(line, sizeof line, "%-26s %6d changes %10.3f ms %7lld nodes\n", record.name.c_str(), record.changes,
                  record.milliseconds, static_cast<long long>(record.nodes_after));
    text += line;
  }
  return text;
}

}  // namespace tensmith::graph
