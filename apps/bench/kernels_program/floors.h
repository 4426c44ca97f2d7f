/// Floors: the least part of the yardstick that a class of kernels must reach on a kind of CPU.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/bench/kernels_program/items.h"
#include "runtime/base/result.h"
#include "runtime/base/target.h"

namespace tensmith::bench {

/// The class of a kernel: `convolution 3x3, blocks`, `matmul, few rows`.
std::string kernel_class(const Item& item);
/// Whether its floor is of what peak and caches allow together rather than of the peak alone: what the caches bound.
bool class_is_bandwidth_bound(const std::string& name);

/// `512 bits, 2 ports`: what decides which floors hold.
std::string cpu_kind(const Target& target);

/// Least medians by class. A file has lines KIND: CLASS: NUMBER, and comments behind #.
using Floors = std::map<std::string, double>;
/// Those of one kind of CPU. Errors: cannot-read; bad-usage, naming the line, or that the file has none for the kind.
Result<Floors> read_floors(const std::string& path, const std::string& kind);

/// Compares medians of classes with floors and prints a table. Gives how many classes with members fall below theirs or
/// have none.
int classes_below(const Floors& floors, const std::map<std::string, std::vector<double>>& reached);

}  // namespace tensmith::bench
