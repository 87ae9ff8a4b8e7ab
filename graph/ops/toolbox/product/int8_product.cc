#include "graph/ops/toolbox/product/int8_product.h"

#include <algorithm>

#include "graph/ops/core/scratch.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kInt8Product = "the 8-bit product";
// Rows of x that are multiplied at once.
constexpr int64_t kRows = 256;

// The instruction sets that add products of 8 bits in 32 bits.
bool HasExactProducts() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:
    case dnnl::cpu_isa::avx2_vnni:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<Int8Product::Made> Int8Product::Make(const std::string& who, const Tensor& weight,
                                            const Sizes& sizes, int threads,
                                            PackedWeights* shared) {
  if (sizes.m == 0 || sizes.n == 0 || sizes.k == 0) return Made{nullptr, "it has no elements"};
  if (!HasExactProducts()) return Made{nullptr, "this processor has no exact 8-bit products"};
  Made made;
  NPUMESH_RETURN_IF_ERROR(Guarded(who, kInt8Product, [&] {
    made.product.reset(new Int8Product(who, sizes, threads));
    if (!made.product->Prepare(weight, shared)) {
      made = {nullptr, "oneDNN has no packed product on this processor"};
    }
    return Status();
  }));
  return made;
}

bool Int8Product::Choose(int64_t rows, const memory::desc& weights, Rows& to) {
  const memory::desc x({rows, sizes_.k}, memory::data_type::s8, memory::format_tag::ab);
  const memory::desc y({rows, sizes_.n}, memory::data_type::s32, memory::format_tag::ab);
  to.count = rows;
  return to.Choose({x, weights, y}, engine_, false);
}

bool Int8Product::Prepare(const Tensor& weight, PackedWeights* shared) {
  const ThreadCount threads(threads_);
  constexpr auto kType = memory::data_type::s8;
  const memory::dims dims = {sizes_.k, sizes_.n};
  const memory::desc any(dims, kType, memory::format_tag::any);
  const int64_t rows = std::min(kRows, sizes_.m);
  if (!Choose(rows, any, whole_)) return false;
  const memory::desc arranged = whole_.chosen.weights_desc();
  if (!Choose((sizes_.m - 1) % rows + 1, arranged, tail_)) return false;
  const memory::desc stored(dims, kType,
                            sizes_.transposed ? memory::format_tag::ba : memory::format_tag::ab);
  weights_ = PackWeight(weight, stored, arranged, engine_, stream_, shared);
  Scratch scratch;
  scratch.Take<int32_t>(rows * sizes_.n);
  scratchpad_at_ = scratch.bytes();
  scratch.Take<std::byte>(static_cast<int64_t>(std::max(
      whole_.chosen.scratchpad_desc().get_size(), tail_.chosen.scratchpad_desc().get_size())));
  scratch_bytes_ = scratch.bytes();
  return true;
}

Status Int8Product::Run(const void* x, void* scratch, const TakeRow& take) {
  return Guarded(who_, kInt8Product, [&] {
    const ThreadCount threads(threads_);
    const auto* from = static_cast<const int8_t*>(x);
    const auto* sums = static_cast<const int32_t*>(scratch);
    void* const scratchpad = static_cast<std::byte*>(scratch) + scratchpad_at_;
    for (int64_t row = 0; row < sizes_.m;) {
      Rows& rows = sizes_.m - row > whole_.count ? whole_ : tail_;
      rows.Run(stream_, from + row * sizes_.k, *weights_, scratch, scratchpad);
      for (int64_t r = 0; r < rows.count; ++r) take(row + r, sums + r * sizes_.n);
      row += rows.count;
    }
    return Status();
  });
}

}  // namespace npumesh
