#include "tensor/layout.h"

#include <charconv>

namespace tensmith {

Layout::Layout(std::vector<LayoutDim> dims, std::vector<int64_t> before, std::vector<int64_t> after)
    : dims_(std::move(dims)), before_(std::move(before)), after_(std::move(after)) {}

Layout Layout::row_major(int rank) {
  std::vector<int> order(rank);
  for (int d = 0; d < rank; ++d) order[d] = d;
  return permuted(order);
}

Layout Layout::permuted(const std::vector<int>& order) {
  std::vector<LayoutDim> dims;
  for (int d : order) dims.push_back({d});
  return Layout(std::move(dims), std::vector<int64_t>(order.size()), std::vector<int64_t>(order.size()));
}

Layout Layout::blocked(const std::vector<int>& order, int dim, int64_t block) {
  Layout layout = permuted(order);
  for (LayoutDim& d : layout.dims_)
    if (d.dim == dim) d.div = block;
  layout.dims_.push_back({dim, 1, block});
  return layout;
}

bool Layout::is_row_major() const { return *this == row_major(rank()); }

std::string Layout::text() const {
  std::string text;
  for (const LayoutDim& d : dims_) {
    if (!text.empty()) text += ",";
    text += std::to_string(d.dim);
    if (d.div != 1) text += "/" + std::to_string(d.div);
    if (d.mod != 0) text += "%" + std::to_string(d.mod);
  }
  bool first = true;
  for (int d = 0; d < rank(); ++d) {
    if (before_[d] == 0 && after_[d] == 0) continue;
    text += (first ? ";halo " : " ") + std::to_string(d) + ":" + std::to_string(before_[d]) + "+" +
            std::to_string(after_[d]);
    first = false;
  }
  return text;
}

Result<Layout> Layout::parse(std::string_view text, int rank) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const auto fail = [&](const char* expected) {
    return Failure{"bad-layout", "layout '" + std::string(text) + "': at character " + std::to_string(p - text.data()) +
                                     ": expected " + expected};
  };
  const auto number = [&](int64_t* value, int64_t low, int64_t high) {
    const auto [next, error] = std::from_chars(p, end, *value);
    if (error != std::errc() || *value < low || *value > high) return false;
    p = next;
    return true;
  };
  Layout layout;
  layout.before_.resize(rank);
  layout.after_.resize(rank);
  std::vector<int> seen(rank);
  while (p < end && *p != ';') {
    if (!layout.dims_.empty()) {
      if (*p != ',') return fail("','");
      ++p;
    }
    int64_t dim, factor;
    if (!number(&dim, 0, rank - 1)) return fail("a dim number below the rank");
    LayoutDim d{static_cast<int>(dim)};
    seen[dim] = 1;
    if (p < end && *p == '/') {
      ++p;
      if (!number(&factor, 1, int64_t{1} << 30)) return fail("a positive factor");
      d.div = factor;
    }
    if (p < end && *p == '%') {
      ++p;
      if (!number(&factor, 1, int64_t{1} << 30)) return fail("a positive factor");
      d.mod = factor;
    }
    layout.dims_.push_back(d);
  }
  for (int d = 0; d < rank; ++d)
    if (!seen[d]) return fail("every logical dim at least once");
  if (p < end) {
    constexpr std::string_view kHalo = ";halo ";
    if (std::string_view(p, end - p).substr(0, kHalo.size()) != kHalo) return fail("';halo '");
    p += kHalo.size();
    while (p < end) {
      int64_t dim, before, after;
      if (!number(&dim, 0, rank - 1) || p == end || *p++ != ':') return fail("dim:before+after");
      if (!number(&before, 0, 1 << 20) || p == end || *p++ != '+' || !number(&after, 0, 1 << 20))
        return fail("before+after");
      layout.before_[dim] = before;
      layout.after_[dim] = after;
      if (p < end && *p++ != ' ') return fail("a blank");
    }
  }
  return layout;
}

std::vector<Expr> Layout::physical_shape(const std::vector<Expr>& shape) const {
  std::vector<Expr> physical;
  for (const LayoutDim& d : dims_) {
    if (d.mod) physical.push_back(Expr(d.mod));
    else physical.push_back(ceil_div(shape.at(d.dim) + (before_[d.dim] + after_[d.dim]), Expr(d.div)));
  }
  return physical;
}

std::vector<Expr> Layout::physical_index(const std::vector<Expr>& index) const {
  std::vector<Expr> physical;
  for (const LayoutDim& d : dims_) {
    Expr i = floor_div(index.at(d.dim) + before_[d.dim], Expr(d.div));
    physical.push_back(d.mod ? floor_mod(i, Expr(d.mod)) : i);
  }
  return physical;
}

std::vector<int64_t> Layout::physical_shape(const std::vector<int64_t>& shape) const {
  std::vector<int64_t> physical;
  for (const LayoutDim& d : dims_)
    physical.push_back(d.mod ? d.mod : (shape.at(d.dim) + before_[d.dim] + after_[d.dim] + d.div - 1) / d.div);
  return physical;
}

std::vector<int64_t> Layout::physical_index(const std::vector<int64_t>& index) const {
  std::vector<int64_t> physical;
  for (const LayoutDim& d : dims_) {
    const int64_t i = (index.at(d.dim) + before_[d.dim]) / d.div;
    physical.push_back(d.mod ? i % d.mod : i);
  }
  return physical;
}

}  // namespace tensmith
