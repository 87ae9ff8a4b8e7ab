// Private formats: how FRACTAL_NZ, NC1HWC0 and FRACTAL_Z lay a tensor out in blocks of 16 x C0
// elements, padded with zeros (docs/private_formats.md).
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BLOCKED_LAYOUT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BLOCKED_LAYOUT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "graph/ir/shape.h"
#include "runtime/base/status.h"

namespace npumesh {

// The layouts that are converted. ND of four dimensions is NCHW.
enum class Layout : uint8_t {
  kNd,
  kNchw,
  kNhwc,
  kHwcn,
  kFractalNz,
  kNc1hwc0,
  kFractalZ,
};

struct LayoutSpec {
  Layout layout = Layout::kNd;
  int64_t c0 = 0;  // that the name fixes, as FRACTAL_NZ_C0_2 does; 0: by the dtype

  bool is_private() const { return layout >= Layout::kFractalNz; }
};
// By its name, with or without a sub-format ("FRACTAL_Z:32"). nullopt: not one of those above.
std::optional<LayoutSpec> LayoutSpecOf(std::string_view name);

// The inner block of a dtype: 32 for 8 bits, 64 for 4 bits, 16 otherwise. What the Ascend 910
// tables say of 32 bits; other tables differ.
int64_t InnerBlock(const LayoutSpec& spec, DataType dtype);

// Elements that lie together: the i-th of `count` is plain[plain_first + i * plain_stride] and
// storage[storage_first + i].
struct ElementRun {
  int64_t plain_first = 0, plain_stride = 1, storage_first = 0, count = 0;
};

// One tensor in both layouts.
class BlockedTensor {
 public:
  // `plain_shape` is in the layout `plain`. `groups` are those of a FRACTAL_Z, at least 1. Errors
  // (kInvalidArgument): a rank that does not fit, dimensions that the groups do not divide, too
  // many elements.
  static Result<BlockedTensor> Create(const LayoutSpec& plain, const Shape& plain_shape,
                                      const LayoutSpec& blocked, DataType dtype, int64_t groups);

  const Shape& plain_shape() const { return plain_shape_; }
  const Shape& storage_shape() const { return storage_shape_; }
  // Calls `visit` for runs that together are all elements of the plain tensor. What no run names in
  // the storage is padding.
  void ForEachRun(const std::function<void(const ElementRun&)>& visit) const;

 private:
  struct Axis {
    int64_t size = 1;
    int64_t stride = 1;  // in the plain tensor
  };

  Status SetImage(Layout plain);
  void PlanNz();
  void PlanNc1hwc0();
  Status PlanFractalZ(int64_t groups);
  void VisitColumns(const std::function<void(const ElementRun&)>& visit) const;
  void VisitFractalZ(const std::function<void(const ElementRun&)>& visit) const;

  Layout layout_ = Layout::kFractalNz;
  int64_t c0_ = 16;
  Shape plain_shape_, storage_shape_;
  // FRACTAL_NZ: c_ is the last dimension, h_ the one before, n_ all others.
  Axis n_, c_, h_, w_;
  int64_t column_rows_ = 1;  // of a block of columns or channels, h_.size and more
  // FRACTAL_Z: groups in the tensor, and those that lie block-diagonally in one.
  int64_t groups_ = 1, together_ = 1;
  int64_t channel_blocks_ = 1;  // C1
  int64_t out_channels_ = 16;   // cout', a multiple of 16
};

// Copies a tensor from its plain layout to its private one, padding with zeros, or back. Elements
// of 1, 2, 4, 8 or 16 bytes; the buffers have the sizes of the two shapes.
enum class Direction : bool { kToPrivate, kToPlain };
void ConvertLayout(const BlockedTensor& tensor, Direction direction, size_t element_bytes,
                   const void* from, void* to);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BLOCKED_LAYOUT_H_
