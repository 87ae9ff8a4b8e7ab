#include "graph/ops/toolbox/copy/mapped_copy.h"

#include <cstring>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/values/copy_element.h"

namespace npumesh {

MappedCopy::MappedCopy(const Shape& x, std::vector<std::vector<int64_t>> sources,
                       size_t element_bytes)
    : sources_(std::move(sources)), from_(ByteStrides(x, element_bytes)), element_(element_bytes) {
  to_ = ByteStrides(shape(), element_bytes);
  if (sources_.empty()) return;
  for (const int64_t source : sources_.back()) {
    const bool first = runs_.empty();
    const bool filled = !first && source == kFilled && runs_.back().source == kFilled;
    const bool next = !first && source != kFilled && runs_.back().source != kFilled &&
                      source == runs_.back().source + static_cast<int64_t>(runs_.back().count);
    if (filled || next) {
      ++runs_.back().count;
    } else {
      runs_.push_back({source, 1});
    }
  }
}

Shape MappedCopy::shape() const {
  std::vector<int64_t> dims;
  for (const std::vector<int64_t>& list : sources_) {
    dims.push_back(static_cast<int64_t>(list.size()));
  }
  return Shape(std::move(dims));
}

void MappedCopy::Run(const void* x, const void* fill, void* y) const {
  if (sources_.empty()) {
    if (element_ > 0) std::memcpy(y, x, element_);
    return;
  }
  for (const std::vector<int64_t>& list : sources_) {
    if (list.empty()) return;
  }
  Walk(0, static_cast<const std::byte*>(x), static_cast<const std::byte*>(fill),
       static_cast<std::byte*>(y));
}

void MappedCopy::Walk(size_t dim, const std::byte* x, const std::byte* fill, std::byte* y) const {
  if (dim + 1 == sources_.size()) return CopyRow(x, fill, y);
  for (const int64_t source : sources_[dim]) {
    if (source == kFilled) {
      FillElements(fill, element_, y, static_cast<size_t>(to_[dim]));
    } else {
      Walk(dim + 1, x + source * from_[dim], fill, y);
    }
    y += to_[dim];
  }
}

void MappedCopy::CopyRow(const std::byte* x, const std::byte* fill, std::byte* y) const {
  for (const Stretch& run : runs_) {
    const size_t bytes = run.count * element_;
    if (run.source == kFilled) {
      FillElements(fill, element_, y, bytes);
    } else {
      CopyElement(x + static_cast<size_t>(run.source) * element_, bytes, y);
    }
    y += bytes;
  }
}

}  // namespace npumesh
