#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "tensor/interpreter/run.h"

namespace tensmith::interp {

namespace {

/// What an uninitialised element holds, so that a program that reads one is found out.
Cell poison(DType type) {
  Cell cell;
  if (type.is_float()) cell.f = std::numeric_limits<double>::quiet_NaN();
  else cell.i = wrap_int(type, static_cast<int64_t>(0xa5a5a5a5a5a5a5a5u));
  return cell;
}

}  // namespace

std::nullopt_t Machine::fail(const char* id, const Frame& frame, const std::string& message) {
  failure_ = {id, frame.code->function->name + ": " + message};
  return std::nullopt;
}

std::nullopt_t Machine::too_many_steps(const Frame& frame) {
  return fail("interp-limit", frame, "expected at most " + std::to_string(max_steps_) + " steps, got more");
}

std::nullopt_t Machine::bad_index(const Frame& frame, int32_t buffer, const std::string& index) {
  const BufferInfo& info = frame.code->buffers[static_cast<size_t>(buffer)];
  const View& view = frame.views[static_cast<size_t>(buffer)];
  std::string shape;
  for (size_t d = 0; d < info.node->shape.size(); ++d) shape += (d > 0 ? ", " : "") + std::to_string(view.geometry[d]);
  return fail("interp-bounds", frame,
              "expected an index inside " + info.node->name + "[" + shape + "], got [" + index + "]");
}

std::nullopt_t Machine::bad_index(const Frame& frame, int32_t buffer, int64_t element) {
  return bad_index(frame, buffer, std::to_string(element));
}

std::nullopt_t Machine::bad_index(const Frame& frame, int32_t buffer, int64_t first, int64_t second) {
  return bad_index(frame, buffer, std::to_string(first) + ", " + std::to_string(second));
}

std::nullopt_t Machine::bad_index(const Frame& frame, const Access& access, int lane) {
  std::string text;
  for (int32_t d = 0; d < access.rank; ++d)
    text += (d > 0 ? ", " : "") +
            std::to_string(frame.r[frame.code->operands[static_cast<size_t>(access.first + d)] + lane].i);
  return bad_index(frame, access.buffer, text);
}

bool Machine::load_masked(Frame& frame, const Inst& inst) {
  const Access& access = frame.code->accesses[static_cast<size_t>(inst.a)];
  const View& view = frame.views[static_cast<size_t>(access.buffer)];
  for (int k = 0; k < inst.lanes; ++k) {
    Cell& to = frame.r[inst.dst + k];
    int64_t element;
    if (!frame.r[inst.b + k].i) {
      to.i = 0;  // also the bits of 0.0
    } else if (find(view, access, frame.code->operands.data() + access.first, frame.r + k, &element)) {
      to = view.base[element * view.scale];
    } else {
      bad_index(frame, access, k);
      return false;
    }
  }
  return true;
}

bool Machine::store_masked(Frame& frame, const Inst& inst) {
  const Access& access = frame.code->accesses[static_cast<size_t>(inst.a)];
  const View& view = frame.views[static_cast<size_t>(access.buffer)];
  if (++steps_ > max_steps_) {
    too_many_steps(frame);
    return false;
  }
  for (int k = 0; k < inst.lanes; ++k) {
    if (!frame.r[inst.c + k].i) continue;
    int64_t element;
    if (!find(view, access, frame.code->operands.data() + access.first, frame.r + k, &element)) {
      bad_index(frame, access, k);
      return false;
    }
    view.base[element * view.scale] = frame.r[inst.b + k];
  }
  return true;
}

bool Machine::address(Frame& frame, const Inst& inst) {
  const Access& access = frame.code->accesses[static_cast<size_t>(inst.a)];
  const View& view = frame.views[static_cast<size_t>(access.buffer)];
  const int32_t* index = frame.code->operands.data() + access.first;
  // The address right behind the last element is one too (of an empty sub-buffer).
  uint64_t element = 0;
  for (int32_t d = 0; d < access.rank; ++d)
    element += static_cast<uint64_t>(frame.r[index[d]].i) *
               static_cast<uint64_t>(access.flat ? 1 : view.geometry[access.rank + d]);
  if (element > static_cast<uint64_t>(view.size)) {
    bad_index(frame, access, 0);
    return false;
  }
  frame.r[inst.dst].i = handle(view.memory, view.offset + static_cast<int64_t>(element) * view.scale);
  return true;
}

bool Machine::shape(Frame& frame, int32_t buffer, int64_t* elements) {
  const BufferInfo& info = frame.code->buffers[static_cast<size_t>(buffer)];
  View& view = frame.views[static_cast<size_t>(buffer)];
  const auto rank = static_cast<int32_t>(info.node->shape.size());
  int64_t* geometry = frame.geometry.data() + info.first_geometry;
  view.geometry = geometry;
  *elements = 1;
  for (int32_t d = rank; d-- > 0;) {
    const int64_t extent = frame.r[frame.code->operands[static_cast<size_t>(info.first_extent + d)]].i;
    geometry[d] = extent;
    geometry[rank + d] = *elements;
    if (extent < 0 || __builtin_mul_overflow(*elements, extent, elements)) {
      fail("interp-bounds", frame,
           "expected extents of " + info.node->name + " from 0 to 2^63 elements in all, got extent " +
               std::to_string(extent));
      return false;
    }
  }
  view.size = *elements;
  return true;
}

bool Machine::bind(Frame& frame, int32_t buffer) {
  int64_t elements;
  if (!shape(frame, buffer, &elements)) return false;
  const View& view = frame.views[static_cast<size_t>(buffer)];
  const Memory& memory = memories_[static_cast<size_t>(view.memory)];
  const int64_t room = (memory.cells - view.offset) / view.scale;
  if (elements <= room) return true;
  const std::string& name = frame.code->buffers[static_cast<size_t>(buffer)].node->name;
  fail("interp-bounds", frame,
       "expected " + std::to_string(elements) + " elements for " + name + ", got " + std::to_string(room));
  return false;
}

bool Machine::allocate(Frame& frame, int32_t buffer) {
  int64_t elements;
  if (!shape(frame, buffer, &elements)) return false;
  const BufferInfo& info = frame.code->buffers[static_cast<size_t>(buffer)];
  if (elements > kMaxCells - cells_) {
    fail("interp-limit", frame,
         "expected at most " + std::to_string(kMaxCells) + " allocated elements, got " + std::to_string(elements) +
             " more for " + info.node->name);
    return false;
  }
  Memory memory;
  memory.dtype = info.node->dtype;
  memory.cells = elements;
  // An allocation in a loop finds the storage of the turn before.
  if (!spare_.empty() && spare_.back().first >= elements && spare_.back().first <= 2 * elements + 64) {
    memory.capacity = spare_.back().first;
    memory.owned = std::move(spare_.back().second);
    spare_.pop_back();
  } else {
    memory.capacity = elements;
    memory.owned.reset(new (std::nothrow) Cell[static_cast<size_t>(elements)]);
    if (!memory.owned) {
      fail("interp-limit", frame,
           "expected memory for " + std::to_string(elements) + " elements of " + info.node->name + ", got none");
      return false;
    }
  }
  std::fill_n(memory.owned.get(), elements, poison(info.node->dtype));
  memory.base = memory.owned.get();
  View& view = frame.views[static_cast<size_t>(buffer)];
  view.base = memory.base;
  view.scale = 1;
  view.offset = 0;
  view.memory = add_memory(std::move(memory));
  if (view.memory >> (63 - kOffsetBits) != 0) {
    fail("interp-limit", frame, "expected less buffers at a time");
    return false;
  }
  cells_ += elements;
  return true;
}

void Machine::free() {
  Memory& memory = memories_.back();
  if (memory.owned) {
    cells_ -= memory.cells;
    if (spare_.size() < 8) spare_.emplace_back(memory.capacity, std::move(memory.owned));
  }
  memories_.pop_back();
}

int64_t Machine::add_memory(Memory memory) {
  memories_.push_back(std::move(memory));
  return static_cast<int64_t>(memories_.size()) - 1;
}

std::optional<int> Machine::call(int function, const std::vector<Cell>& arguments) {
  const Code& code = codes_[static_cast<size_t>(function)];
  const LoopFunction& f = *code.function;
  Frame frame;
  frame.code = &code;
  if (calls_ >= kMaxCalls)
    return fail("interp-limit", frame,
                "expected at most " + std::to_string(kMaxCalls) + " calls inside each other, got more");
  std::vector<Cell> cells(code.constants.size() + static_cast<size_t>(code.cells));
  std::reverse_copy(code.constants.begin(), code.constants.end(), cells.begin());
  frame.r = cells.data() + code.constants.size();
  frame.views.resize(code.buffers.size());
  frame.geometry.resize(static_cast<size_t>(code.geometry));
  for (size_t k = 0; k < f.buffers.size(); ++k) {
    View& view = frame.views[k];
    view.memory = arguments[k].i >> kOffsetBits;
    view.offset = arguments[k].i & ((int64_t{1} << kOffsetBits) - 1);
    const Buffer& buffer = f.buffers[k];
    if (view.memory <= 0 || view.memory >= static_cast<int64_t>(memories_.size()) ||
        view.offset > memories_[static_cast<size_t>(view.memory)].cells)
      return fail("interp-arguments", frame, "expected the address of a living buffer for " + buffer->name);
    const Memory& memory = memories_[static_cast<size_t>(view.memory)];
    // Memory of a smaller type serves as an arena; of the same size it must be the same type, or every read would give
    // nonsense.
    if (memory.dtype != buffer->dtype) {
      if (buffer->dtype.bytes() % memory.dtype.bytes() != 0 || memory.dtype.bytes() != 1)
        return fail("interp-arguments", frame,
                    "expected memory of " + to_string(buffer->dtype) + " or of bytes for " + buffer->name + ", got " +
                        to_string(memory.dtype));
      view.scale = buffer->dtype.bytes();
    }
    view.base = memory.base + view.offset;
  }
  for (size_t k = 0; k < f.scalars.size(); ++k)
    frame.r[code.first_scalar + static_cast<int32_t>(k)] = arguments[f.buffers.size() + k];
  const size_t memories = memories_.size();
  ++calls_;
  const std::optional<int> result = run(frame);
  --calls_;
  while (memories_.size() > memories) free();  // a function that an assertion ended has not freed its own
  return result;
}

}  // namespace tensmith::interp
