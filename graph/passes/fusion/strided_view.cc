#include "graph/passes/fusion/strided_view.h"

#include <algorithm>

namespace npumesh {

using Factor = StridedView::Factor;
using FactorList = StridedView::Factors;

void AppendFactor(FactorList& list, Factor factor) {
  if (factor.extent == 1) return;
  if (!list.empty() && list.back().stride == factor.stride * factor.extent) {
    list.back() = {list.back().extent * factor.extent, factor.stride};
    return;
  }
  list.push_back(factor);
}

std::optional<std::vector<FactorList>> CutFactors(FactorList list,
                                                  const std::vector<int64_t>& extents) {
  std::vector<FactorList> parts(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    FactorList inner_first;
    for (int64_t missing = extents[i]; missing > 1;) {
      if (list.empty()) return std::nullopt;
      Factor& last = list.back();
      if (missing % last.extent == 0) {
        missing /= last.extent;
        inner_first.push_back(last);
        list.pop_back();
      } else if (last.extent % missing == 0) {
        inner_first.push_back({missing, last.stride});
        last = {last.extent / missing, last.stride * missing};
        missing = 1;
      } else {
        return std::nullopt;
      }
    }
    for (size_t f = inner_first.size(); f-- > 0;) AppendFactor(parts[i], inner_first[f]);
  }
  if (!list.empty()) return std::nullopt;
  return parts;
}

StridedView::StridedView(const Shape& shape) : dims_(static_cast<size_t>(shape.rank())) {
  int64_t stride = 1;
  for (int i = shape.rank(); i-- > 0;) {
    AppendFactor(dims_[static_cast<size_t>(i)], {shape[i], stride});
    stride *= shape[i];
  }
}

int64_t StridedView::extent(int i) const {
  int64_t extent = 1;
  for (const Factor& factor : dim(i)) extent *= factor.extent;
  return extent;
}

std::optional<int64_t> StridedView::stride(int i) const {
  const FactorList& factors = dim(i);
  if (factors.empty()) return 0;
  if (factors.size() > 1) return std::nullopt;
  return factors[0].stride;
}

void StridedView::Permute(const std::vector<int64_t>& order) {
  std::vector<FactorList> dims;
  for (const int64_t from : order) dims.push_back(dims_[static_cast<size_t>(from)]);
  dims_ = std::move(dims);
}

bool StridedView::Broadcast(const Shape& shape) {
  const int added = shape.rank() - rank();
  if (added < 0) return false;
  std::vector<FactorList> dims(static_cast<size_t>(added));
  dims.insert(dims.end(), dims_.begin(), dims_.end());
  for (int i = 0; i < shape.rank(); ++i) {
    FactorList& factors = dims[static_cast<size_t>(i)];
    const int64_t before = i < added ? 1 : extent(i - added);
    if (before == shape[i]) continue;
    if (before != 1) return false;
    AppendFactor(factors, {shape[i], 0});
  }
  dims_ = std::move(dims);
  return true;
}

bool StridedView::Reshape(const Shape& shape) {
  FactorList all;
  for (const FactorList& factors : dims_) {
    for (const Factor& factor : factors) AppendFactor(all, factor);
  }
  std::optional<std::vector<FactorList>> dims = CutFactors(std::move(all), shape.dims());
  if (!dims) return false;
  dims_ = std::move(*dims);
  return true;
}

}  // namespace npumesh
