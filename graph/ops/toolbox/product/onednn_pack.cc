#include <algorithm>
#include <vector>

#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

using dnnl::memory;

// Bytes of the stored weight that are worked on at once.
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
// Pieces begin at multiples of oneDNN's blocks, which have 16, 32, 48 or 64 rows or columns.
constexpr int64_t kBlockMultiple = 192;

class Packing {
 public:
  Packing(const Tensor& weight, const memory::desc& from, const memory::desc& to,
          const dnnl::engine& engine, dnnl::stream& stream)
      : weight_(weight),
        from_(from),
        to_(to),
        engine_(engine),
        stream_(stream),
        dims_(DimsOf(from)),
        widens_(weight.dtype() != DataType::kFloat && ElementType(from) == memory::data_type::f32),
        packed_(std::make_shared<Packed>(to, engine)) {}

  std::shared_ptr<const memory> Run() {
    ChooseRows();
    const uint64_t row_bytes = weight_.bytes() / static_cast<uint64_t>(rows_);
    weight_.Stream(static_cast<uint64_t>(rows_at_once_) * row_bytes,
                   [&](uint64_t offset, uint64_t bytes) {
                     PackRows(static_cast<int64_t>(offset / row_bytes),
                              static_cast<int64_t>(bytes / row_bytes), offset);
                   });
    return {packed_, &packed_->weights};
  }

 private:
  struct Packed {
    Packed(const memory::desc& desc, const dnnl::engine& engine)
        : bytes(AllocatePacked(desc.get_size())), weights(desc, engine, bytes.get()) {}

    std::shared_ptr<std::byte> bytes;
    memory weights;
  };

  // Rows are what lies in memory one after the other: of the matrix, or of its transposition.
  void ChooseRows() {
    const memory::dims strides = StridesOf(from_);
    outer_ = dims_.size() == 2 && strides[0] < strides[1] ? 1 : 0;
    rows_ = dims_[outer_];
    const uint64_t row_bytes = weight_.bytes() / static_cast<uint64_t>(rows_);
    const auto fit = static_cast<int64_t>(kPieceBytes / std::max<uint64_t>(row_bytes, 1));
    rows_at_once_ = std::max(fit / kBlockMultiple, int64_t{1}) * kBlockMultiple;
    // What follows the elements belongs to all rows together.
    const bool divides =
        HoldsElementsOnly(to_) && dims_.size() == 2 && rows_at_once_ < rows_ && Divides();
    if (!divides) rows_at_once_ = rows_;
  }

  bool Divides() const {
    for (int64_t first = 0; first < rows_; first += rows_at_once_) {
      if (!Part(to_, first, std::min(rows_at_once_, rows_ - first))) return false;
    }
    return true;
  }

  // Rows [first, first + count) of `desc`; empty where oneDNN cannot describe them.
  memory::desc Part(const memory::desc& desc, int64_t first, int64_t count) const {
    if (count == rows_) return desc;
    memory::dims dims = dims_;
    memory::dims offsets(dims_.size(), 0);
    dims[outer_] = count;
    offsets[outer_] = first;
    return desc.submemory_desc(dims, offsets, /*allow_empty=*/true);
  }

  void PackRows(int64_t first, int64_t count, uint64_t offset) {
    const std::byte* data = weight_.data() + offset;
    const auto elements = static_cast<size_t>(weight_.elements() / rows_ * count);
    if (widens_) {
      wide_.resize(std::max(wide_.size(), elements));
      FindConvert(weight_.dtype(), DataType::kFloat)(data, wide_.data(), elements);
      data = reinterpret_cast<const std::byte*>(wide_.data());
    }
    // Rows of the source begin where `data` does: the part of the first rows has no offset.
    memory source(Part(from_, 0, count), engine_, const_cast<std::byte*>(data));
    memory target(Part(to_, first, count), engine_, packed_->bytes.get());
    dnnl::reorder(source, target).execute(stream_, source, target);
    stream_.wait();
  }

  const Tensor& weight_;
  const memory::desc& from_;
  const memory::desc& to_;
  const dnnl::engine& engine_;
  dnnl::stream& stream_;
  const memory::dims dims_;
  const bool widens_;
  std::shared_ptr<Packed> packed_;
  size_t outer_ = 0;  // the dimension of the rows
  int64_t rows_ = 1, rows_at_once_ = 1;
  std::vector<float> wide_;
};

}  // namespace

std::shared_ptr<const memory> PackWeight(const Tensor& weight, const memory::desc& from,
                                         const memory::desc& to, const dnnl::engine& engine,
                                         dnnl::stream& stream, PackedWeights* shared) {
  // Descriptors that are equal may differ in unused bytes; then a weight is packed twice.
  return PackOnce(shared, weight, BytesOf(from) + BytesOf(to),
                  [&] { return Packing(weight, from, to, engine, stream).Run(); });
}

}  // namespace npumesh
