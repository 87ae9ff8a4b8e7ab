#include "graph/ops/toolbox/copy/mapped_copy.h"

#include <cstring>

#include "graph/ops/core/infer_checks.h"

namespace npumesh {

MappedCopy::MappedCopy(const Shape& x, std::vector<std::vector<int64_t>> sources,
                       size_t element_bytes)
    : sources_(std::move(sources)), from_(ByteStrides(x, element_bytes)), element_(element_bytes) {
  to_ = ByteStrides(shape(), element_bytes);
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
      Fill(fill, y, static_cast<size_t>(to_[dim]));
    } else {
      Walk(dim + 1, x + source * from_[dim], fill, y);
    }
    y += to_[dim];
  }
}

// Neighbours of x that stay neighbours are copied at once.
void MappedCopy::CopyRow(const std::byte* x, const std::byte* fill, std::byte* y) const {
  const std::vector<int64_t>& list = sources_.back();
  for (size_t i = 0; i < list.size();) {
    size_t run = 1;
    if (list[i] == kFilled) {
      while (i + run < list.size() && list[i + run] == kFilled) ++run;
      Fill(fill, y, run * element_);
    } else {
      while (i + run < list.size() && list[i + run] == list[i] + static_cast<int64_t>(run)) ++run;
      std::memcpy(y, x + static_cast<size_t>(list[i]) * element_, run * element_);
    }
    y += run * element_;
    i += run;
  }
}

void MappedCopy::Fill(const std::byte* fill, std::byte* y, size_t bytes) const {
  for (size_t at = 0; at < bytes; at += element_) std::memcpy(y + at, fill, element_);
}

}  // namespace npumesh
