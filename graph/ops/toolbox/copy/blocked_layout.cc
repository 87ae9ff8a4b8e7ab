#include "graph/ops/toolbox/copy/blocked_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

constexpr int64_t kRows = 16;  // of a block: M0 and N0

constexpr std::pair<std::string_view, LayoutSpec> kLayouts[] = {
    {"ND", {Layout::kNd}},
    {"NCHW", {Layout::kNchw}},
    {"NHWC", {Layout::kNhwc}},
    {"HWCN", {Layout::kHwcn}},
    {"FRACTAL_NZ", {Layout::kFractalNz}},
    {"FRACTAL_NZ_C0_2", {Layout::kFractalNz, 2}},
    {"FRACTAL_NZ_C0_4", {Layout::kFractalNz, 4}},
    {"FRACTAL_NZ_C0_8", {Layout::kFractalNz, 8}},
    {"FRACTAL_NZ_C0_16", {Layout::kFractalNz, 16}},
    {"FRACTAL_NZ_C0_32", {Layout::kFractalNz, 32}},
    {"NC1HWC0", {Layout::kNc1hwc0}},
    {"NC1HWC0_C04", {Layout::kNc1hwc0, 4}},
    {"FRACTAL_Z", {Layout::kFractalZ}},
};

template <size_t kBytes>
void CopyRun(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
             int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride * kBytes, from + i * from_stride * kBytes, kBytes);
  }
}

}  // namespace

std::optional<LayoutSpec> LayoutSpecOf(std::string_view name) {
  const std::string_view primary = name.substr(0, name.find(':'));
  for (const auto& [known, spec] : kLayouts) {
    if (known == primary) return spec;
  }
  return std::nullopt;
}

int64_t InnerBlock(const LayoutSpec& spec, DataType dtype) {
  if (spec.c0 != 0) return spec.c0;
  const int bits = BitsOf(dtype);
  if (bits == 8) return 32;
  return bits == 4 ? 64 : 16;
}

Result<BlockedTensor> BlockedTensor::Create(const LayoutSpec& plain, const Shape& plain_shape,
                                            const LayoutSpec& blocked, DataType dtype,
                                            int64_t groups) {
  BlockedTensor tensor;
  tensor.layout_ = blocked.layout;
  tensor.c0_ = InnerBlock(blocked, dtype);
  tensor.plain_shape_ = plain_shape;
  NPUMESH_RETURN_IF_ERROR(plain_shape.Check());
  if (!plain_shape.is_static()) {
    return Error(Code::kInvalidArgument, "shape {} has unknown dimensions", plain_shape.ToString());
  }
  if (blocked.layout == Layout::kFractalNz) {
    if (plain_shape.rank() < 1) {
      return Error(Code::kInvalidArgument, "a scalar has no form in FRACTAL_NZ");
    }
    tensor.PlanNz();
  } else {
    NPUMESH_RETURN_IF_ERROR(tensor.SetImage(plain.layout));
    if (blocked.layout == Layout::kNc1hwc0) {
      tensor.PlanNc1hwc0();
    } else {
      NPUMESH_RETURN_IF_ERROR(tensor.PlanFractalZ(groups));
    }
  }
  NPUMESH_RETURN_IF_ERROR(tensor.storage_shape_.Check());
  return tensor;
}

Status BlockedTensor::SetImage(Layout plain) {
  if (plain_shape_.rank() != 4) {
    return Error(Code::kInvalidArgument, "shape {}; expected the four dimensions of an image",
                 plain_shape_.ToString());
  }
  std::array<Axis*, 4> order = {&n_, &c_, &h_, &w_};
  if (plain == Layout::kNhwc) order = {&n_, &h_, &w_, &c_};
  if (plain == Layout::kHwcn) order = {&h_, &w_, &c_, &n_};
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {
    *order[static_cast<size_t>(i)] = {plain_shape_[i], stride};
    stride *= plain_shape_[i];
  }
  return Status();
}

void BlockedTensor::PlanNz() {
  const std::vector<int64_t>& dims = plain_shape_.dims();
  const size_t rank = dims.size();
  c_ = {dims[rank - 1], 1};
  h_ = {rank > 1 ? dims[rank - 2] : 1, c_.size};  // a vector is one row
  std::vector<int64_t> storage(dims.begin(), rank > 1 ? dims.end() - 2 : dims.begin());
  n_ = {Shape(storage).elements(), h_.size * c_.size};
  column_rows_ = RoundedUp(h_.size, kRows);
  storage.insert(storage.end(), {CeilDiv(c_.size, c0_), CeilDiv(h_.size, kRows), kRows, c0_});
  storage_shape_ = Shape(std::move(storage));
}

void BlockedTensor::PlanNc1hwc0() {
  column_rows_ = h_.size;
  storage_shape_ = Shape({n_.size, CeilDiv(c_.size, c0_), h_.size, w_.size, c0_});
}

Status BlockedTensor::PlanFractalZ(int64_t groups) {
  groups_ = groups;
  if (groups < 1 || n_.size % groups != 0) {
    return Error(Code::kInvalidArgument, "{} output channels in {} groups", n_.size, groups);
  }
  const int64_t in = c_.size;
  const int64_t out = n_.size / groups;
  if (in > 0 && out > 0 && groups > 1) {
    // As many as fill whole blocks: lcm(in, C0) / in is C0 / gcd(in, C0).
    const int64_t fill = std::lcm(c0_ / std::gcd(in, c0_), kRows / std::gcd(out, kRows));
    together_ = std::min(fill, groups);
  }
  channel_blocks_ = CeilDiv(together_ * in, c0_);
  out_channels_ = RoundedUp(together_ * out, kRows);
  storage_shape_ = Shape({CeilDiv(groups, together_) * channel_blocks_ * h_.size * w_.size,
                          out_channels_ / kRows, kRows, c0_});
  return Status();
}

void BlockedTensor::ForEachRun(const std::function<void(const ElementRun&)>& visit) const {
  layout_ == Layout::kFractalZ ? VisitFractalZ(visit) : VisitColumns(visit);
}

void BlockedTensor::VisitColumns(const std::function<void(const ElementRun&)>& visit) const {
  int64_t column = 0;  // of the storage
  for (int64_t n = 0; n < n_.size; ++n) {
    for (int64_t c = 0; c < c_.size; c += c0_, column += column_rows_ * w_.size * c0_) {
      int64_t storage = column;
      for (int64_t h = 0; h < h_.size; ++h) {
        for (int64_t w = 0; w < w_.size; ++w, storage += c0_) {
          const int64_t plain = n * n_.stride + c * c_.stride + h * h_.stride + w * w_.stride;
          visit({plain, c_.stride, storage, std::min(c0_, c_.size - c)});
        }
      }
    }
  }
}

void BlockedTensor::VisitFractalZ(const std::function<void(const ElementRun&)>& visit) const {
  const int64_t in = c_.size;
  const int64_t out = n_.size / groups_;
  for (int64_t n = 0; n < n_.size; ++n) {
    const int64_t group = n / out;
    const int64_t place = group % together_;  // on the diagonal
    const int64_t co = place * out + n % out;
    for (int64_t h = 0; h < h_.size; ++h) {
      for (int64_t w = 0; w < w_.size; ++w) {
        for (int64_t c = 0; c < in;) {
          const int64_t ci = place * in + c;
          const int64_t count = std::min(in - c, c0_ - ci % c0_);
          const int64_t block =
              ((group / together_ * channel_blocks_ + ci / c0_) * h_.size + h) * w_.size + w;
          visit({n * n_.stride + c * c_.stride + h * h_.stride + w * w_.stride, c_.stride,
                 (block * out_channels_ + co) * c0_ + ci % c0_, count});
          c += count;
        }
      }
    }
  }
}

void ConvertLayout(const BlockedTensor& tensor, Direction direction, size_t element_bytes,
                   const void* from, void* to) {
  const bool to_private = direction == Direction::kToPrivate;
  const auto width = static_cast<int64_t>(element_bytes);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (to_private) {
    std::memset(to, 0, static_cast<size_t>(tensor.storage_shape().elements()) * element_bytes);
  }
  const auto copy = ByWidth(element_bytes, [](auto element) { return CopyRun<sizeof(element)>; });
  tensor.ForEachRun([&](const ElementRun& run) {
    const int64_t plain = run.plain_first * width;
    const int64_t storage = run.storage_first * width;
    const std::byte* const run_from = source + (to_private ? plain : storage);
    std::byte* const run_to = target + (to_private ? storage : plain);
    if (run.plain_stride == 1) {
      std::memcpy(run_to, run_from, static_cast<size_t>(run.count * width));
    } else {
      copy(run_from, to_private ? run.plain_stride : 1, run_to, to_private ? 1 : run.plain_stride,
           run.count);
    }
  });
}

}  // namespace npumesh
