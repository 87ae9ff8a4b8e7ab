#include "graph/aclnn/calls/view.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace npumesh {
namespace {

// Copies an array of elements from one view to another, of the same dimensions.
struct StridedCopy {
  const std::vector<int64_t>& dims;
  const std::vector<int64_t>& to_strides;
  const std::vector<int64_t>& from_strides;
  size_t element;

  void Run(std::byte* to, const std::byte* from, size_t axis = 0) const {
    if (axis == dims.size()) {
      std::memcpy(to, from, element);
      return;
    }
    const int64_t count = dims[axis];
    if (axis + 1 == dims.size() && to_strides[axis] == 1 && from_strides[axis] == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * element);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      Run(to + i * to_strides[axis] * static_cast<int64_t>(element),
          from + i * from_strides[axis] * static_cast<int64_t>(element), axis + 1);
    }
  }
};

// The same for elements of four bits, of which a byte has the first one in its lower half.
struct NibbleCopy {
  const std::vector<int64_t>& dims;
  const std::vector<int64_t>& to_strides;
  const std::vector<int64_t>& from_strides;
  std::byte* to;
  const std::byte* from;

  void Run(int64_t to_at, int64_t from_at, size_t axis = 0) const {
    if (axis == dims.size()) return Move(to_at, from_at);
    for (int64_t i = 0; i < dims[axis]; ++i) {
      Run(to_at + i * to_strides[axis], from_at + i * from_strides[axis], axis + 1);
    }
  }

 private:
  void Move(int64_t to_at, int64_t from_at) const {
    constexpr std::byte kLower{0x0f};
    const std::byte nibble = from[from_at / 2] >> (from_at % 2 * 4) & kLower;
    std::byte& both = to[to_at / 2];
    both = to_at % 2 == 0 ? (both & ~kLower) | nibble : (both & kLower) | nibble << 4;
  }
};

size_t ElementBytes(const AclnnView& view) {
  return static_cast<size_t>(BitsOf(view.type.dtype)) / 8;
}

bool IsPacked(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return true;
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return true;
}

// Of the plain tensor behind blocks.
struct Plain {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // those of the view

  explicit Plain(const AclnnView& view) {
    std::vector<size_t> axes(view.strides.size());
    std::iota(axes.begin(), axes.end(), size_t{0});
    // Of equal strides that of a dimension of 1 is the inner one: a column that is seen as a row.
    const auto& sizes = view.type.shape.dims();
    std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
      if (view.strides[a] != view.strides[b]) return view.strides[a] > view.strides[b];
      return sizes[a] > sizes[b];
    });
    for (const size_t axis : axes) {
      dims.push_back(view.type.shape.dims()[axis]);
      strides.push_back(view.strides[axis]);
    }
  }
};

bool IsNibbles(const AclnnView& view) {
  return BitsOf(view.type.dtype) == 4;
}

void CopyOut(const AclnnView& view, const std::byte* plain, void* packed) {
  const auto strides = PackedStrides(view.type.shape.dims());
  StridedCopy{view.type.shape.dims(), strides, view.strides, ElementBytes(view)}.Run(
      static_cast<std::byte*>(packed), plain);
}

void CopyIn(const AclnnView& view, const void* packed, std::byte* plain) {
  const auto strides = PackedStrides(view.type.shape.dims());
  StridedCopy{view.type.shape.dims(), view.strides, strides, ElementBytes(view)}.Run(
      plain, static_cast<const std::byte*>(packed));
}

uint64_t PlainExtent(const AclnnView& view) {
  int64_t last = view.offset;
  for (size_t i = 0; i < view.strides.size(); ++i) {
    if (view.type.shape.dims()[i] == 0) return 0;
    last += (view.type.shape.dims()[i] - 1) * view.strides[i];
  }
  return BytesOf(view.type.dtype, static_cast<uint64_t>(last + 1)).value_or(0);
}

uint64_t ExtentIn(const AclnnView& view) {
  if (!view.layout.is_private()) return PlainExtent(view);
  const Result<BlockedTensor> blocks = BlocksOf(view);
  return blocks.ok() ? TensorType{view.type.dtype, blocks->storage_shape()}.bytes() : 0;
}

}  // namespace

std::vector<int64_t> PackedStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(1, dims[i]);
  }
  return strides;
}

AclnnView AclnnView::Written() const {
  AclnnView written = *this;
  if (becomes.is_private()) written.layout = becomes;
  return written;
}

bool AclnnView::packed() const {
  const bool whole_bytes = BitsOf(type.dtype) >= 8 || offset % 2 == 0;
  return !layout.is_private() && whole_bytes && IsPacked(type.shape.dims(), strides);
}

uint64_t AclnnView::extent() const {
  return becomes.is_private() ? std::max(ExtentIn(*this), ExtentIn(Written())) : ExtentIn(*this);
}

uint64_t AclnnView::scratch_bytes() const {
  return layout.is_private() && !IsPacked(type.shape.dims(), strides) ? type.bytes() : 0;
}

Status AclnnView::Check() const {
  const AclnnView written = Written();
  if (written.layout.is_private() && IsNibbles(*this)) {
    return Error(Code::kInvalidArgument, "elements of four bits are taken in ND alone");
  }
  if (layout.is_private()) NPUMESH_RETURN_IF_ERROR(BlocksOf(*this).status());
  return written.layout.is_private() ? BlocksOf(written).status() : Status();
}

Result<BlockedTensor> BlocksOf(const AclnnView& view) {
  const Plain plain(view);
  if (view.offset != 0 || !IsPacked(plain.dims, plain.strides)) {
    return Error(Code::kInvalidArgument,
                 "a tensor in a private format begins at its address and has no gaps");
  }
  const bool matrix = view.layout.layout == Layout::kFractalNz;
  return BlockedTensor::Create({matrix ? Layout::kNd : Layout::kNchw}, Shape(plain.dims),
                               view.layout, view.type.dtype, 1);
}

void Gather(const AclnnView& view, const void* tensor, void* packed, void* scratch) {
  const std::vector<int64_t>& dims = view.type.shape.dims();
  if (IsNibbles(view)) {
    const std::vector<int64_t> packed_strides = PackedStrides(dims);
    const NibbleCopy copy{dims, packed_strides, view.strides, static_cast<std::byte*>(packed),
                          static_cast<const std::byte*>(tensor)};
    return copy.Run(0, view.offset);
  }
  if (!view.layout.is_private()) {
    const auto skipped = view.offset * static_cast<int64_t>(ElementBytes(view));
    CopyOut(view, static_cast<const std::byte*>(tensor) + skipped, packed);
    return;
  }
  void* const plain = view.scratch_bytes() > 0 ? scratch : packed;
  ConvertLayout(*BlocksOf(view), Direction::kToPlain, ElementBytes(view), tensor, plain);
  if (plain == scratch) CopyOut(view, static_cast<const std::byte*>(scratch), packed);
}

void Scatter(const AclnnView& view, const void* packed, void* tensor, void* scratch) {
  const std::vector<int64_t>& dims = view.type.shape.dims();
  if (IsNibbles(view)) {
    const std::vector<int64_t> packed_strides = PackedStrides(dims);
    const NibbleCopy copy{dims, view.strides, packed_strides, static_cast<std::byte*>(tensor),
                          static_cast<const std::byte*>(packed)};
    return copy.Run(view.offset, 0);
  }
  if (!view.layout.is_private()) {
    const auto skipped = view.offset * static_cast<int64_t>(ElementBytes(view));
    CopyIn(view, packed, static_cast<std::byte*>(tensor) + skipped);
    return;
  }
  const void* plain = packed;
  if (view.scratch_bytes() > 0) {
    CopyIn(view, packed, static_cast<std::byte*>(scratch));
    plain = scratch;
  }
  ConvertLayout(*BlocksOf(view), Direction::kToPrivate, ElementBytes(view), plain, tensor);
}

}  // namespace npumesh
