#include "graph/ops/toolbox/copy/broadcast.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

enum Category { kBoolean, kWhole, kReal, kOther };

Category CategoryOf(DataType dtype) {
  if (dtype == DataType::kBool) return kBoolean;
  if (IsInteger(dtype)) return kWhole;
  return IsFloating(dtype) ? kReal : kOther;
}

DataType WidenWhole(DataType a, DataType b) {
  if (IsSignedInteger(a) == IsSignedInteger(b)) return BitsOf(a) >= BitsOf(b) ? a : b;
  const DataType with_sign = IsSignedInteger(a) ? a : b;
  const DataType without = IsSignedInteger(a) ? b : a;
  if (BitsOf(with_sign) > BitsOf(without)) return with_sign;
  if (BitsOf(without) <= 8) return DataType::kInt16;
  return BitsOf(without) <= 16 ? DataType::kInt32 : DataType::kInt64;
}

DataType PromoteTwo(DataType a, DataType b) {
  if (a == b || b == DataType::kUndefined) return a;
  if (a == DataType::kUndefined) return b;
  const Category category = CategoryOf(a);
  if (category != CategoryOf(b)) return category > CategoryOf(b) ? a : b;
  if (category != kReal) return WidenWhole(a, b);
  if (a == DataType::kDouble || b == DataType::kDouble) return DataType::kDouble;
  return DataType::kFloat;  // two different ones of 16 bits, or one of 32
}

}  // namespace

DataType Promote(std::span<const TensorType> operands) {
  if (operands.empty()) return DataType::kUndefined;
  const auto other = [&](const TensorType& each) { return each.dtype != operands[0].dtype; };
  if (std::ranges::none_of(operands, other)) return operands[0].dtype;
  DataType tensors = DataType::kUndefined;
  DataType scalars = DataType::kUndefined;
  for (const TensorType& operand : operands) {
    if (CategoryOf(operand.dtype) == kOther) return DataType::kUndefined;
    DataType& group = operand.shape.rank() == 0 ? scalars : tensors;
    group = PromoteTwo(group, operand.dtype);
  }
  if (tensors == DataType::kUndefined) return scalars;
  if (scalars == DataType::kUndefined || CategoryOf(scalars) <= CategoryOf(tensors)) return tensors;
  return PromoteTwo(tensors, scalars);
}

BroadcastPlan::BroadcastPlan(const Shape& from, const Shape& to, size_t element_bytes)
    : element_bytes_(element_bytes) {
  assert(to.rank() <= kMaxRank && from.rank() <= to.rank());
  int64_t stride = 1;
  for (int i = 1; i <= to.rank(); ++i) {  // from the right
    const int64_t size = to[to.rank() - i];
    const int64_t own = i <= from.rank() ? from[from.rank() - i] : 1;
    if (size == 1) continue;
    const Dim dim{size, own == 1 ? 0 : stride};
    stride *= own;
    const bool alike =
        !dims_.empty() &&
        (dims_.back().stride == 0 ? dim.stride == 0
                                  : dim.stride == dims_.back().stride * dims_.back().size);
    if (alike) {
      dims_.back().size *= size;
    } else {
      dims_.push_back(dim);
    }
  }
  if (dims_.empty()) dims_.push_back({1, 1});
  std::reverse(dims_.begin(), dims_.end());
  direct_ = dims_.size() == 1 && dims_[0].stride == 1;
  scalar_ = from.elements() == 1;
}

template <typename Element>
void BroadcastPlan::GatherAs(const Element* from, int64_t begin, size_t count, Element* to) const {
  std::array<int64_t, kMaxRank> index;
  int64_t offset = 0;
  for (size_t i = dims_.size(); i-- > 0;) {
    index[i] = begin % dims_[i].size;
    begin /= dims_[i].size;
    offset += index[i] * dims_[i].stride;
  }
  const size_t inner = dims_.size() - 1;
  while (count > 0) {
    const int64_t left = dims_[inner].size - index[inner];
    const size_t run = std::min(count, static_cast<size_t>(left));
    if (dims_[inner].stride == 0) {
      std::fill_n(to, run, from[offset]);
    } else {
      std::copy_n(from + offset, run, to);
    }
    to += run;
    count -= run;
    index[inner] += static_cast<int64_t>(run);
    offset += static_cast<int64_t>(run) * dims_[inner].stride;
    for (size_t i = inner; i > 0 && index[i] == dims_[i].size; --i) {
      offset += dims_[i - 1].stride - dims_[i].size * dims_[i].stride;
      index[i] = 0;
      ++index[i - 1];
    }
  }
}

void BroadcastPlan::Gather(const void* from, int64_t begin, size_t count, void* to) const {
  ByWidth(element_bytes_, [&](auto element) {
    using Element = decltype(element);
    GatherAs(static_cast<const Element*>(from), begin, count, static_cast<Element*>(to));
  });
}

}  // namespace npumesh
