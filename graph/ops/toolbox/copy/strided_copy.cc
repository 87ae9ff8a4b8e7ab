#include "graph/ops/toolbox/copy/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// Side of a transposition block: 32 x 32 items of 4 bytes on both sides fit the first-level cache.
constexpr int64_t kBlock = 32;
// Lines of the source so far apart, or a multiple of it, push each other out of the first cache:
// they are read in one go.
constexpr int64_t kColliding = 2048;
// Lines that are shorter are not worth another order of the axes.
constexpr int64_t kShortLine = 8;

// Without unit axes, and with neighbours that form one longer axis on both sides joined.
std::vector<CopyAxis> Merged(const std::vector<CopyAxis>& axes) {
  std::vector<CopyAxis> merged;
  for (const CopyAxis& axis : axes) {
    if (axis.extent == 1) continue;
    CopyAxis* outer = merged.empty() ? nullptr : &merged.back();
    if (outer != nullptr && outer->from == axis.from * axis.extent &&
        outer->to == axis.to * axis.extent) {
      *outer = {outer->extent * axis.extent, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

}  // namespace

StridedCopy::StridedCopy(const std::vector<CopyAxis>& axes, size_t element_bytes) {
  for (const CopyAxis& axis : axes) {
    if (axis.extent == 0) return;
  }
  axes_ = Merged(axes);
  item_ = element_bytes;
  const auto item = static_cast<int64_t>(item_);
  if (!axes_.empty() && axes_.back().from == item && axes_.back().to == item) {
    item_ *= static_cast<size_t>(axes_.back().extent);
    axes_.pop_back();
  }
  ChooseInner();
}

void StridedCopy::ChooseInner() {
  const bool fixed = item_ == 1 || item_ == 2 || item_ == 4 || item_ == 8 || item_ == 16;
  const auto item = static_cast<int64_t>(item_);
  outer_ = axes_.empty() ? 0 : axes_.size() - 1;
  if (axes_.empty() || !fixed) {
    inner_ = InnerRuns;
    return;
  }
  // A transposition: lines that are contiguous in `to` are columns of `from`.
  const auto line = std::find_if(axes_.begin(), axes_.end(),
                                 [item](const CopyAxis& axis) { return axis.to == item; });
  const auto column = std::find_if(axes_.begin(), axes_.end(),
                                   [item](const CopyAxis& axis) { return axis.from == item; });
  if (line != axes_.end() && column != axes_.end() && line != column &&
      (line == axes_.end() - 1 || line->extent >= kShortLine)) {
    const CopyAxis inner[] = {*column, *line};
    axes_.erase(std::max(line, column));
    axes_.erase(std::min(line, column));
    axes_.insert(axes_.end(), std::begin(inner), std::end(inner));
    outer_ = axes_.size() - 2;
    const bool staged = axes_.back().from % kColliding == 0;
    inner_ = ByWidth(item_, [staged](auto item) -> Inner {
      return staged ? InnerBlock<sizeof(item), true> : InnerBlock<sizeof(item), false>;
    });
    return;
  }
  inner_ = ByWidth(item_, [](auto item) -> Inner { return InnerLine<sizeof(item)>; });
}

void StridedCopy::Run(const void* from, void* to) const {
  if (inner_ == nullptr) return;
  Walk(0, static_cast<const std::byte*>(from), static_cast<std::byte*>(to));
}

void StridedCopy::Walk(size_t depth, const std::byte* from, std::byte* to) const {
  if (depth == outer_) {
    inner_(*this, from, to);
    return;
  }
  const CopyAxis& axis = axes_[depth];
  for (int64_t i = 0; i < axis.extent; ++i) {
    Walk(depth + 1, from + i * axis.from, to + i * axis.to);
  }
}

template <size_t kItem>
void StridedCopy::InnerLine(const StridedCopy& copy, const std::byte* from, std::byte* to) {
  const CopyAxis axis = copy.axes_.back();
  for (int64_t i = 0; i < axis.extent; ++i) {
    std::memcpy(to + i * axis.to, from + i * axis.from, kItem);
  }
}

template <size_t kItem, bool kStaged>
void StridedCopy::InnerBlock(const StridedCopy& copy, const std::byte* from, std::byte* to) {
  const CopyAxis column = copy.axes_[copy.outer_], line = copy.axes_[copy.outer_ + 1];
  constexpr auto kStep = static_cast<int64_t>(kItem);
  std::byte stage[kStaged ? kBlock * kBlock * kItem : 1];
  const int64_t apart = kStaged ? kBlock * kStep : line.from;  // of lines where they are read
  for (int64_t c0 = 0; c0 < column.extent; c0 += kBlock) {
    const int64_t columns = std::min(kBlock, column.extent - c0);
    for (int64_t l0 = 0; l0 < line.extent; l0 += kBlock) {
      const int64_t lines = std::min(kBlock, line.extent - l0);
      const std::byte* block = from + l0 * line.from + c0 * kStep;
      if constexpr (kStaged) {
        for (int64_t l = 0; l < lines; ++l) {
          std::memcpy(stage + l * apart, block + l * line.from,
                      static_cast<size_t>(columns) * kItem);
        }
        block = stage;
      }
      for (int64_t c = 0; c < columns; ++c) {
        const std::byte* source = block + c * kStep;
        std::byte* target = to + (c0 + c) * column.to + l0 * kStep;
        for (int64_t l = 0; l < lines; ++l) {
          std::memcpy(target + l * kStep, source + l * apart, kItem);
        }
      }
    }
  }
}

void StridedCopy::InnerRuns(const StridedCopy& copy, const std::byte* from, std::byte* to) {
  if (copy.axes_.empty()) {
    std::memcpy(to, from, copy.item_);
    return;
  }
  const CopyAxis axis = copy.axes_.back();
  for (int64_t i = 0; i < axis.extent; ++i) {
    std::memcpy(to + i * axis.to, from + i * axis.from, copy.item_);
  }
}

}  // namespace npumesh
