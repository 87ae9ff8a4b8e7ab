// The product of int8 by oneDNN, and which product is taken.
#include "graph/ops/toolbox/product/int8_product.h"

#include <algorithm>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/onednn_call.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kInt8Product = "the 8-bit product";
// Rows of x that are multiplied at once.
constexpr int64_t kRows = 256;

// The instruction sets that add products of 8 bits in 32 bits.
bool HasExactProducts() {
  return ComputesBy(dnnl::cpu_isa::avx512_core_vnni) || ComputesBy(dnnl::cpu_isa::avx2_vnni);
}

// A class, because the primitives are bound anew in every run.
class OneDnnInt8Product final : public Int8Product {
 public:
  explicit OneDnnInt8Product(const Int8Form& form) : form_(form) {}

  // On a processor without VNNI or AMX 8-bit products saturate in 16 bits. Throws what oneDNN
  // throws, as does Prepare.
  std::string WhyNot() {
    if (!HasExactProducts()) return "this processor has no exact 8-bit products";
    const ThreadCount threads(form_.threads);
    const memory::desc any({form_.k, form_.n}, memory::data_type::s8, memory::format_tag::any);
    const int64_t rows = std::min(kRows, form_.m);
    const bool good = Choose(rows, any, whole_) &&
                      Choose((form_.m - 1) % rows + 1, whole_.chosen.weights_desc(), tail_);
    return good ? "" : "it has no packed product on this processor";
  }

  // Packs the weight. REQUIRES: WhyNot was asked and does not object.
  void Prepare() {
    const ThreadCount threads(form_.threads);
    const memory::desc stored({form_.k, form_.n}, memory::data_type::s8,
                              form_.transposed ? memory::format_tag::ba : memory::format_tag::ab);
    weights_ = PackWeight(*form_.weight, stored, whole_.chosen.weights_desc(), engine_, stream_,
                          form_.packed);
    Scratch scratch;
    scratch.Take<int32_t>(whole_.count * form_.n);
    scratchpad_at_ = scratch.bytes();
    scratch.Take<std::byte>(static_cast<int64_t>(std::max(
        whole_.chosen.scratchpad_desc().get_size(), tail_.chosen.scratchpad_desc().get_size())));
    scratch_bytes_ = scratch.bytes();
  }

  Status Run(const void* x, void* scratch, const TakeRow& take) override {
    return Guarded(form_.who, kInt8Product, [&] {
      const ThreadCount threads(form_.threads);
      const auto* from = static_cast<const int8_t*>(x);
      const auto* sums = static_cast<const int32_t*>(scratch);
      void* const scratchpad = static_cast<std::byte*>(scratch) + scratchpad_at_;
      for (int64_t row = 0; row < form_.m;) {
        Rows& rows = form_.m - row > whole_.count ? whole_ : tail_;
        rows.Run(stream_, from + row * form_.k, *weights_, scratch, scratchpad);
        for (int64_t r = 0; r < rows.count; ++r) take(row + r, sums + r * form_.n);
        row += rows.count;
      }
      return Status();
    });
  }

 private:
  // The product for a number of rows of x.
  struct Rows : BoundProduct {
    int64_t count = 0;
  };

  // False: oneDNN has no good implementation.
  bool Choose(int64_t rows, const memory::desc& weights, Rows& to) {
    const memory::desc x({rows, form_.k}, memory::data_type::s8, memory::format_tag::ab);
    const memory::desc y({rows, form_.n}, memory::data_type::s32, memory::format_tag::ab);
    to.count = rows;
    return to.BoundProduct::Choose(x, weights, y, engine_);
  }

  const Int8Form form_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::shared_ptr<const memory> weights_;
  Rows whole_;
  Rows tail_;  // the last rows
  uint64_t scratchpad_at_ = 0;
};

// All are exact. Blocks (blocked_product.h) are taken only where measuring prefers them.
constexpr std::string_view kOneDnnKernel = "oneDNN", kPanelsKernel = "panels";
constexpr Candidate<OneDnnInt8Product> kInt8Products[] = {
    {kOneDnnKernel, [](OneDnnInt8Product& product) { return product.WhyNot(); }},
    {kPanelsKernel},
    {"in blocks"}};

}  // namespace

Result<Int8Product::Made> Int8Product::Make(const Int8Form& form) {
  Made made;
  NPUMESH_RETURN_IF_ERROR(Guarded(form.who, kInt8Product, [&] {
    auto one_dnn = std::make_unique<OneDnnInt8Product>(form);
    made.choice = Choose(kInt8Products, *one_dnn, form.tuning, "integer sums");
    if (made.choice.name == kOneDnnKernel) {
      one_dnn->Prepare();
      made.product = std::move(one_dnn);
    } else if (made.choice.name == kPanelsKernel) {
      made.product = MakeInt8Panels(form);
    }
    return Status();
  }));
  return made;
}

}  // namespace npumesh
