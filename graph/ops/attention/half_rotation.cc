#include "graph/ops/attention/half_rotation.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "graph/ops/attention/rotate_rows.h"

namespace npumesh {
namespace {

// Of the strides of x, cos, sin and y.
constexpr size_t kOfX = 0, kOfY = 3, kRotated = 4;

class HalfRotationKernel final : public Kernel {
 public:
  explicit HalfRotationKernel(const HalfRotation& rotation)
      : dtype_(rotation.y.dtype),
        width_(rotation.y.shape.dims().back()),
        element_(BitsOf(rotation.y.dtype) / 8) {
    std::vector<RowAxis> axes;
    int64_t stride = width_;  // of y
    for (int i = rotation.y.shape.rank() - 1; i-- > 0; stride *= rotation.y.shape[i]) {
      const auto at = static_cast<size_t>(i);
      axes.push_back(
          {rotation.y.shape[i], {rotation.x[at], rotation.cos[at], rotation.sin[at], stride}});
    }
    // In the order in which x lies in memory: rows that a Transpose takes apart share pages.
    std::stable_sort(axes.begin(), axes.end(), [](const RowAxis& a, const RowAxis& b) {
      return a.strides[kOfX] < b.strides[kOfX];
    });
    for (size_t i = axes.size(); i-- > 0;) AddAxis(axes[i]);
    if (!axes_.empty()) {
      inner_ = axes_.back();
      axes_.pop_back();
    }
    for (const RowAxis& axis : axes_) runs_ *= axis.extent;
  }

  Status Run(const KernelArgs& args) override {
    for (int64_t run = 0; run < runs_; ++run) {
      const std::array<int64_t, kRotated> first = FirstOf(run);
      const auto at = [&](size_t slot) {
        return static_cast<const std::byte*>(args.in[slot]) + first[slot] * element_;
      };
      const auto& [extent, strides] = inner_;
      auto* const y = static_cast<std::byte*>(args.out[0]) + first[kOfY] * element_;
      RotateRows(dtype_,
                 {at(0), at(1), at(2), extent, strides[0], strides[1], strides[2], strides[kOfY]},
                 width_, y);
    }
    return Status();
  }

 private:
  struct RowAxis {
    int64_t extent = 1;
    std::array<int64_t, kRotated> strides = {};
  };

  // Inside of the axes before it, or as one with the last of them where that walks the same rows.
  void AddAxis(const RowAxis& axis) {
    if (axis.extent == 1) return;
    bool joins = !axes_.empty();
    for (size_t i = 0; joins && i < kRotated; ++i) {
      joins = axes_.back().strides[i] == axis.strides[i] * axis.extent;
    }
    if (!joins) return axes_.push_back(axis);
    axes_.back() = {axes_.back().extent * axis.extent, axis.strides};
  }

  // The elements of operands and result at which a run of the innermost axis begins.
  std::array<int64_t, kRotated> FirstOf(int64_t run) const {
    std::array<int64_t, kRotated> first = {};
    for (size_t i = axes_.size(); i-- > 0;) {
      const int64_t index = run % axes_[i].extent;
      for (size_t slot = 0; slot < kRotated; ++slot) first[slot] += index * axes_[i].strides[slot];
      run /= axes_[i].extent;
    }
    return first;
  }

  DataType dtype_;
  int64_t width_;
  int64_t element_;            // bytes
  std::vector<RowAxis> axes_;  // but the innermost, outermost first
  RowAxis inner_;
  int64_t runs_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> MakeHalfRotation(const HalfRotation& rotation) {
  return std::make_unique<HalfRotationKernel>(rotation);
}

}  // namespace npumesh
