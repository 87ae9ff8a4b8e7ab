#include "tests/fuzz/engine/plain_ops.h"

#include <cmath>

namespace npumesh::fuzz {

const PlainTensor* PlainCall::find(std::string_view port) const {
  const int index = node.FindInput(port);
  return index < 0 ? nullptr : inputs[static_cast<size_t>(index)];
}

std::vector<const PlainTensor*> PlainCall::list(std::string_view port) const {
  std::vector<const PlainTensor*> found;
  while (const PlainTensor* next = find(std::string(port) + std::to_string(found.size()))) {
    found.push_back(next);
  }
  return found;
}

std::vector<int64_t> PlainCall::ints(std::string_view port) const {
  std::vector<int64_t> values;
  for (const Number x : in(port).v) values.push_back(static_cast<int64_t>(x));
  return values;
}

void ExactSum::Add(Number x) {
  sum_ += x;
  size_ += std::fabs(x);
  whole_ = whole_ && std::floor(x * 8) == x * 8;
}

bool ExactSum::exact() const {
  return whole_ && size_ < (1 << 20);
}

PlainTensor Arranged(const PlainTensor& x, Extents dims,
                     const std::function<int64_t(const Extents& at)>& source, Number other) {
  PlainTensor made{x.dtype, std::move(dims), {}};
  ForEachPosition(made.dims, [&](const Extents& at) {
    const int64_t offset = source(at);
    made.v.push_back(offset < 0 ? other : x.at(offset));
  });
  return made;
}

const PlainOpTable& PlainOps() {
  static const PlainOpTable table = [] {
    PlainOpTable made;
    AddPointwiseOps(made);
    AddReduceOps(made);
    AddProductOps(made);
    AddLayoutOps(made);
    AddShapingOps(made);
    AddGatherOps(made);
    AddScatterOps(made);
    return made;
  }();
  return table;
}

}  // namespace npumesh::fuzz
