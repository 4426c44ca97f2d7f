/// Decisions that led to a schedule: named, typed, plain values that print, save and replay.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tensmith {

/// What was decided: a number (an extent, a count, 0 or 1 for no or yes) or a word (the name of a rule, of a loop).
using ChoiceValue = std::variant<int64_t, std::string>;
std::string to_string(const ChoiceValue& value);

/// Names with what was decided, in the order in which the rules asked. Names are `STAGE.WHAT`, each once.
class Decisions {
 public:
  /// Sets a decision, at its old place when it has one.
  void set(const std::string& name, ChoiceValue value);
  /// Null when nothing was decided under that name.
  const ChoiceValue* find(std::string_view name) const;
  const std::vector<std::pair<std::string, ChoiceValue>>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  /// The same on every platform.
  uint64_t hash() const;

  friend bool operator==(const Decisions&, const Decisions&) = default;

 private:
  std::vector<std::pair<std::string, ChoiceValue>> items_;
};

/// One decision a line: `C.tile.rows = 14`.
std::string to_string(const Decisions& decisions);
/// `{"C.tile.rows": 14, "R.rule": "tile-epilogue"}`.
Json to_json(const Decisions& decisions);
/// Reads what `to_json` gave; it may come from anywhere. Errors: bad-decisions.
Result<Decisions> decisions_from_json(const Json& json);

}  // namespace tensmith
