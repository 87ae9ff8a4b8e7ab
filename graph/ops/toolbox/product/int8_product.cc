#include "graph/ops/toolbox/product/int8_product.h"

#include <algorithm>
#include <array>

#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/product/onednn_pack.h"
#include "graph/ops/toolbox/product/packed_memory.h"

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

uint64_t RoundedUp(uint64_t bytes) {
  return (bytes + kPackedLine - 1) / kPackedLine * kPackedLine;
}

}  // namespace

Int8Product::Int8Product(std::string who, const Sizes& sizes, int threads)
    : who_(std::move(who)),
      sizes_(sizes),
      threads_(threads),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {}

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
  to.chosen = dnnl::matmul::primitive_desc({x, weights, y}, OurAttributes(), engine_, true);
  if (!to.chosen || std::string_view(to.chosen.impl_info_str()).substr(0, 3) == "ref") return false;
  to.primitive = dnnl::matmul(to.chosen);
  to.x = memory(x, engine_, nullptr);
  to.y = memory(y, engine_, nullptr);
  to.scratchpad = memory(to.chosen.scratchpad_desc(), engine_, nullptr);
  return true;
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
  scratchpad_at_ = RoundedUp(static_cast<uint64_t>(rows * sizes_.n) * sizeof(int32_t));
  scratch_bytes_ = scratchpad_at_ + RoundedUp(std::max(whole_.chosen.scratchpad_desc().get_size(),
                                                       tail_.chosen.scratchpad_desc().get_size()));
  return true;
}

void Int8Product::Multiply(Rows& rows, const int8_t* x, void* scratch) {
  rows.x.set_data_handle(const_cast<int8_t*>(x));  // NOLINT: oneDNN only reads it
  rows.y.set_data_handle(scratch);
  rows.scratchpad.set_data_handle(static_cast<std::byte*>(scratch) + scratchpad_at_);
  const std::array<dnnl_exec_arg_t, 4> list = {{{DNNL_ARG_SRC, rows.x.get()},
                                                {DNNL_ARG_WEIGHTS, weights_->get()},
                                                {DNNL_ARG_DST, rows.y.get()},
                                                {DNNL_ARG_SCRATCHPAD, rows.scratchpad.get()}}};
  ExecuteAndWait(rows.primitive, stream_, list);
}

Status Int8Product::Run(const void* x, void* scratch, const TakeRow& take) {
  return Guarded(who_, kInt8Product, [&] {
    const ThreadCount threads(threads_);
    const auto* from = static_cast<const int8_t*>(x);
    const auto* sums = static_cast<const int32_t*>(scratch);
    for (int64_t row = 0; row < sizes_.m;) {
      Rows& rows = sizes_.m - row > whole_.count ? whole_ : tail_;
      Multiply(rows, from + row * sizes_.k, scratch);
      for (int64_t r = 0; r < rows.count; ++r) take(row + r, sums + r * sizes_.n);
      row += rows.count;
    }
    return Status();
  });
}

}  // namespace npumesh
