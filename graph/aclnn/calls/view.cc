#include "graph/aclnn/calls/view.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/toolbox/copy/strided_copy.h"

namespace npumesh {
namespace {

// StridedCopy for elements of four bits, of which a byte has the first one in its lower half.
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

size_t ElementBytes(const TensorType& type) {
  return static_cast<size_t>(BitsOf(type.dtype)) / 8;
}

bool IsNibbles(const TensorType& type) {
  return BitsOf(type.dtype) == 4;
}

// Where the elements of a tensor lie, in elements from `data` on.
template <typename Byte>
struct Strided {
  Byte* data = nullptr;
  std::vector<int64_t> strides;
  int64_t first = 0;
};

void Copy(const TensorType& type, const Strided<const std::byte>& from,
          const Strided<std::byte>& to) {
  const std::vector<int64_t>& dims = type.shape.dims();
  if (IsNibbles(type)) {
    return NibbleCopy{dims, to.strides, from.strides, to.data, from.data}.Run(to.first, from.first);
  }
  const auto bytes = static_cast<int64_t>(ElementBytes(type));
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    // One position has no neighbour: its stride may be a huge one.
    const int64_t step = dims[i] > 1 ? bytes : 0;
    axes.push_back({dims[i], from.strides[i] * step, to.strides[i] * step});
  }
  StridedCopy(axes, ElementBytes(type))
      .Run(from.data + from.first * bytes, to.data + to.first * bytes);
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
      dims.push_back(sizes[axis]);
      strides.push_back(view.strides[axis]);
    }
  }
};

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
  if (written.layout.is_private() && IsNibbles(type)) {
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
  const Strided<std::byte> to{static_cast<std::byte*>(packed),
                              PackedStrides(view.type.shape.dims())};
  if (!view.layout.is_private()) {
    return Copy(view.type, {static_cast<const std::byte*>(tensor), view.strides, view.offset}, to);
  }
  void* const plain = view.scratch_bytes() > 0 ? scratch : packed;
  ConvertLayout(*BlocksOf(view), Direction::kToPlain, ElementBytes(view.type), tensor, plain);
  if (plain != packed) Copy(view.type, {static_cast<const std::byte*>(plain), view.strides}, to);
}

void Scatter(const AclnnView& view, const void* packed, void* tensor, void* scratch) {
  const Strided<const std::byte> from{static_cast<const std::byte*>(packed),
                                      PackedStrides(view.type.shape.dims())};
  if (!view.layout.is_private()) {
    return Copy(view.type, from, {static_cast<std::byte*>(tensor), view.strides, view.offset});
  }
  const void* plain = packed;
  if (view.scratch_bytes() > 0) {
    Copy(view.type, from, {static_cast<std::byte*>(scratch), view.strides});
    plain = scratch;
  }
  ConvertLayout(*BlocksOf(view), Direction::kToPrivate, ElementBytes(view.type), plain, tensor);
}

}  // namespace npumesh
