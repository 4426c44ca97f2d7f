#include "codegen/asm_guard.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>

namespace tensmith {

namespace {

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view strip(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

enum class Flow { kNext, kBranch, kJump, kReturn, kCall };

/// What one instruction is, whatever the machine.
struct Instruction {
  int line = 0;
  Flow flow = Flow::kNext;
  std::string_view target;  // of kBranch and kJump: a local label; of kCall: a name or operand
  int fma_bits = 0;         // width of a vector FMA or dot product
  int vector_bits = 0;      // widest vector register named
  bool scalar_fma = false, stack = false, gather = false, scatter = false;
};

/// Words that begin with one of the letters and go on with digits: `v12`, `z3`.
bool has_register(std::string_view operands, char letter) {
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    const bool starts = i == 0 || !(std::isalnum(static_cast<unsigned char>(operands[i - 1])) ||
                                    operands[i - 1] == '_' || operands[i - 1] == '.');
    if (starts && operands[i] == letter && std::isdigit(static_cast<unsigned char>(operands[i + 1]))) return true;
  }
  return false;
}

Instruction classify_x86(std::string_view name, std::string_view operands, bool has_frame_pointer) {
  Instruction result;
  result.vector_bits = contains(operands, "%zmm")   ? 512
                       : contains(operands, "%ymm") ? 256
                       : contains(operands, "%xmm") ? 128
                                                    : 0;
  result.stack = contains(operands, "(%rsp") || (has_frame_pointer && contains(operands, "(%rbp")) ||
                 starts_with_any(name, {"push", "pop"});
  result.gather = starts_with_any(name, {"vgather", "vpgather"});
  result.scatter = starts_with_any(name, {"vscatter", "vpscatter"});
  if (name.starts_with("call")) result.flow = Flow::kCall, result.target = operands;
  else if (name.starts_with("ret") || name == "ud2") result.flow = Flow::kReturn;
  else if (name.starts_with("j")) {
    result.flow = name.starts_with("jmp") ? Flow::kJump : Flow::kBranch;
    result.target = operands;
  }
  const bool fused = starts_with_any(name, {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub"});
  if (fused && (name.ends_with("ss") || name.ends_with("sd") || name.ends_with("sh"))) result.scalar_fma = true;
  else if (fused || starts_with_any(name, {"vpdpbusd", "vpdpbssd", "vpdpbuud", "vpdpwssd", "vdpbf16ps"}))
    result.fma_bits = result.vector_bits;
  return result;
}

Instruction classify_aarch64(std::string_view name, std::string_view operands, bool has_frame_pointer) {
  Instruction result;
  const bool sve = has_register(operands, 'z');
  result.vector_bits = sve || has_register(operands, 'v') || has_register(operands, 'q') ? 128 : 0;
  result.stack = contains(operands, "[sp") || (has_frame_pointer && contains(operands, "[x29"));
  const size_t bracket = operands.find('[');
  const bool vector_index = bracket != std::string_view::npos && has_register(operands.substr(bracket), 'z');
  result.gather = vector_index && name.starts_with("ld");
  result.scatter = vector_index && name.starts_with("st");
  const auto last_operand = [&] {
    return strip(operands.substr(operands.rfind(',') == std::string_view::npos ? 0 : operands.rfind(',') + 1));
  };
  if (name == "bl" || name == "blr") result.flow = Flow::kCall, result.target = operands;
  else if (name == "ret" || name == "br") result.flow = Flow::kReturn;
  else if (name == "b") result.flow = Flow::kJump, result.target = operands;
  else if (starts_with_any(name, {"b.", "bc.", "cbz", "cbnz", "tbz", "tbnz"}))
    result.flow = Flow::kBranch, result.target = last_operand();
  if (starts_with_any(name, {"fmadd", "fmsub", "fnmadd", "fnmsub"}) && result.vector_bits == 0)
    result.scalar_fma = true;
  else if (starts_with_any(name, {"fmla", "fmls", "fmad", "fmsb", "sdot", "udot", "usdot", "bfdot", "smmla", "ummla",
                                  "usmmla", "bfmmla"}) &&
           result.vector_bits)
    // Arrangements .2s, .4h and .8b fill half a register.
    result.fma_bits =
        starts_with_any(operands.substr(std::min(operands.find('.'), operands.size())), {".2s", ".4h", ".8b"}) ? 64
                                                                                                               : 128;
  return result;
}

/// One block of a function: straight code that ends at a label or a branch.
struct Block {
  std::string_view label;
  std::vector<Instruction> code;
  std::vector<int> next;
};

/// The text of one function, as blocks.
struct Function {
  std::string_view name;
  std::vector<Block> blocks{Block{}};
  std::map<std::string_view, int> block_of_label;

  void label(std::string_view name) {
    if (!blocks.back().code.empty()) blocks.emplace_back();
    if (blocks.back().label.empty()) blocks.back().label = name;
    block_of_label[name] = static_cast<int>(blocks.size()) - 1;
  }
  void add(const Instruction& instruction) {
    blocks.back().code.push_back(instruction);
    if (instruction.flow != Flow::kNext && instruction.flow != Flow::kCall) blocks.emplace_back();
  }
  void connect() {
    for (size_t i = 0; i < blocks.size(); ++i) {
      Flow flow = Flow::kNext;
      if (!blocks[i].code.empty()) {
        const Instruction& last = blocks[i].code.back();
        flow = last.flow;
        if (const auto found = block_of_label.find(last.target); found != block_of_label.end())
          blocks[i].next.push_back(found->second);
      }
      if (flow != Flow::kJump && flow != Flow::kReturn && i + 1 < blocks.size())
        blocks[i].next.push_back(static_cast<int>(i) + 1);
    }
  }
};

std::vector<Function> split_functions(std::string_view text) {
  // Every function of x86-64 as LLVM prints it holds one of these; AArch64 writes % only in comments and directives.
  const bool x86 = contains(text, "retq") || contains(text, "%rsp") || contains(text, "%rax") || contains(text, "mm0");
  std::vector<Function> functions;
  bool has_frame_pointer = false;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    line = line.substr(0, x86 ? line.find('#') : line.find("//"));
    line = strip(line);
    if (line.empty()) continue;
    if (line.ends_with(':')) {
      const std::string_view label = line.substr(0, line.size() - 1);
      if (!label.starts_with(".L")) {
        functions.emplace_back();
        functions.back().name = label;
        has_frame_pointer = false;
      } else if (!functions.empty()) {
        functions.back().label(label);
      }
      continue;
    }
    if (line.front() == '.' || functions.empty()) continue;
    size_t space = line.find_first_of(" \t");
    std::string_view name = line.substr(0, space);
    std::string_view operands = space == std::string_view::npos ? std::string_view{} : strip(line.substr(space));
    if (x86 && starts_with_any(name, {"rep", "lock", "{"}) && !operands.empty()) {
      space = operands.find_first_of(" \t");
      name = operands.substr(0, space);
      operands = space == std::string_view::npos ? std::string_view{} : strip(operands.substr(space));
    }
    if (x86 ? name == "movq" && operands == "%rsp, %rbp"
            : (name == "mov" && operands == "x29, sp") || (name == "add" && operands.starts_with("x29, sp")))
      has_frame_pointer = true;
    Instruction instruction =
        x86 ? classify_x86(name, operands, has_frame_pointer) : classify_aarch64(name, operands, has_frame_pointer);
    instruction.line = line_number;
    functions.back().add(instruction);
  }
  for (Function& function : functions) function.connect();
  return functions;
}

/// Headers of loops with the blocks that belong to each: those that reach a jump back to the header without passing it.
std::map<int, std::set<int>> find_loops(const std::vector<Block>& blocks) {
  std::vector<std::vector<int>> previous(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i)
    for (const int next : blocks[i].next) previous[next].push_back(static_cast<int>(i));
  std::map<int, std::set<int>> loops;
  const auto add_loop = [&](int latch, int header) {
    std::set<int>& body = loops[header];
    body.insert(header);
    std::vector<int> work{latch};
    while (!work.empty()) {
      const int block = work.back();
      work.pop_back();
      if (!body.insert(block).second) continue;
      work.insert(work.end(), previous[block].begin(), previous[block].end());
    }
  };
  // Depth first: an edge to a block that is still open leads back.
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> state(blocks.size(), State::kNew);
  std::vector<std::pair<int, size_t>> path{{0, 0}};
  state[0] = State::kOpen;
  while (!path.empty()) {
    auto& [block, at] = path.back();
    if (at == blocks[block].next.size()) {
      state[block] = State::kDone;
      path.pop_back();
      continue;
    }
    const int from = block, next = blocks[block].next[at++];
    if (state[next] == State::kOpen) add_loop(from, next);
    if (state[next] != State::kNew) continue;
    state[next] = State::kOpen;
    path.emplace_back(next, 0);
  }
  return loops;
}

AsmLoop summarise(const Function& function, int header, const std::set<int>& body) {
  AsmLoop loop;
  loop.label = function.blocks[header].label;
  std::map<int, int> fmas_of_width;
  int widest = 0;
  for (const int block : body) {
    for (const Instruction& instruction : function.blocks[block].code) {
      loop.first_line = loop.first_line ? std::min(loop.first_line, instruction.line) : instruction.line;
      loop.last_line = std::max(loop.last_line, instruction.line);
      ++loop.instructions;
      if (instruction.fma_bits) ++loop.fmas, ++fmas_of_width[instruction.fma_bits];
      loop.scalar_fmas += instruction.scalar_fma;
      loop.stack_references += instruction.stack;
      loop.vector_spills += instruction.stack && instruction.vector_bits > 0;
      loop.gathers += instruction.gather;
      loop.scatters += instruction.scatter;
      loop.calls += instruction.flow == Flow::kCall;
      widest = std::max(widest, instruction.vector_bits);
    }
  }
  const auto most = std::max_element(fmas_of_width.begin(), fmas_of_width.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  loop.vector_bits = most == fmas_of_width.end() ? widest : most->first;
  for (const auto& [bits, count] : fmas_of_width)
    if (bits < loop.vector_bits) loop.narrow_fmas += count;
  return loop;
}

}  // namespace

std::vector<AsmFunction> inspect_assembly(std::string_view text) {
  std::vector<AsmFunction> result;
  for (const Function& function : split_functions(text)) {
    AsmFunction report;
    report.name = function.name;
    bool has_code = false;
    std::set<std::string> callees;
    for (const Block& block : function.blocks)
      for (const Instruction& instruction : block.code) {
        has_code = true;
        if (instruction.flow != Flow::kCall) continue;
        ++report.calls;
        const std::string_view callee = instruction.target.substr(0, instruction.target.find('@'));
        if (!callee.empty() && (std::isalpha(static_cast<unsigned char>(callee[0])) || callee[0] == '_') &&
            callee.find_first_of(" ,(") == std::string_view::npos)
          callees.emplace(callee);
      }
    if (!has_code) continue;  // data
    report.callees.assign(callees.begin(), callees.end());
    const std::map<int, std::set<int>> loops = find_loops(function.blocks);
    for (const auto& [header, body] : loops) {
      const bool innermost = std::none_of(loops.begin(), loops.end(), [&](const auto& other) {
        return other.first != header && body.contains(other.first);
      });
      if (innermost) report.loops.push_back(summarise(function, header, body));
    }
    for (size_t i = 0; i < report.loops.size(); ++i) {
      const auto key = [&](size_t k) { return std::pair(report.loops[k].fmas, report.loops[k].instructions); };
      if (report.hot < 0 || key(i) > key(report.hot)) report.hot = static_cast<int>(i);
    }
    result.push_back(std::move(report));
  }
  return result;
}

std::vector<std::string> asm_problems(const AsmFunction& function, const AsmRequirements& requirements) {
  const AsmLoop* loop = function.hot_loop();
  if (loop == nullptr) return {"function " + function.name + ": loops: expected at least 1, got 0"};
  std::vector<std::string> problems;
  const auto problem = [&](const std::string& what, const std::string& expected, const std::string& got) {
    problems.push_back("hot loop " + loop->label + ": " + what + ": expected " + expected + ", got " + got);
  };
  const auto at_most = [&](const std::string& what, int count, int limit) {
    if (count > limit) problem(what, "at most " + std::to_string(limit), std::to_string(count));
  };
  at_most("stack references", loop->stack_references, requirements.max_stack_references);
  if (!requirements.allow_calls) at_most("calls", loop->calls, 0);
  if (!requirements.allow_gathers) at_most("gathers and scatters", loop->gathers + loop->scatters, 0);
  if (requirements.vector_bits) {
    if (loop->vector_bits < requirements.vector_bits)
      problem("vector width", std::to_string(requirements.vector_bits) + " bits", std::to_string(loop->vector_bits));
    at_most("narrower multiply-adds", loop->narrow_fmas, 0);
  }
  if (loop->fma_share() < requirements.min_fma_share) {
    const auto percent = [](double share) { return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %"; };
    problem("share of multiply-adds", "at least " + percent(requirements.min_fma_share),
            percent(loop->fma_share()) + " (" + std::to_string(loop->fmas) + " of " +
                std::to_string(loop->instructions) + ")");
  }
  return problems;
}

}  // namespace tensmith
