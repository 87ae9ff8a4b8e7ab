// The product of int8 by oneDNN, and which product is taken.
#include "graph/ops/toolbox/product/int8_product.h"

#include <algorithm>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/onednn_call.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kInt8Product = "the 8-bit product";
constexpr const char* kNoPackedProduct = "it has no packed product on this processor";
// Rows of x that are multiplied at once.
constexpr int64_t kRows = 256;

// A class, because the primitives are bound anew in every run.
//
// VNNI multiplies uint8 by int8. For int8 by int8 oneDNN 2.6 adds 128 to x and takes what that adds
// out of the sums in float32, which is exact below 2^24 only; so this is done here, in integers.
// Its products by AMX, which it takes for large shapes only, are of both kinds.
class OneDnnInt8Product final : public Int8Product {
 public:
  explicit OneDnnInt8Product(const Int8Form& form) : form_(form) {}

  // Throws what oneDNN throws, as does Prepare.
  std::string WhyNot() {
    if (!HasExactByteProducts()) return "this processor has no exact 8-bit products";
    const ThreadCount threads(form_.threads);
    if (form_.x_unsigned) return ChooseBoth(memory::data_type::u8) ? "" : kNoPackedProduct;
    moves_ = !ChooseBoth(memory::data_type::s8) || !whole_.ByAmx() || !tail_.ByAmx();
    return !moves_ || ChooseBoth(memory::data_type::u8) ? "" : kNoPackedProduct;
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
    moved_at_ = scratch.bytes();
    if (moves_) scratch.Take<uint8_t>(whole_.count * form_.k);
    scratch_bytes_ = scratch.bytes();
    if (moves_) {
      added_.resize(static_cast<size_t>(form_.n));
      SumColumns(reinterpret_cast<const int8_t*>(form_.weight->data()), form_.k, form_.n,
                 form_.transposed, added_.data());
    }
  }

  Status Run(const void* x, void* scratch, const TakeRow& take) override {
    return Guarded(form_.who, kInt8Product, [&] {
      const ThreadCount threads(form_.threads);
      const auto* from = static_cast<const int8_t*>(x);
      const auto* sums = static_cast<const int32_t*>(scratch);
      void* const scratchpad = static_cast<std::byte*>(scratch) + scratchpad_at_;
      for (int64_t row = 0; row < form_.m;) {
        Rows& rows = form_.m - row > whole_.count ? whole_ : tail_;
        const void* const x_rows = moves_ ? Moved(from + row * form_.k, rows.count, scratch)
                                          : static_cast<const void*>(from + row * form_.k);
        rows.Run(stream_, x_rows, *weights_, scratch, scratchpad);
        if (moves_) TakeOut(static_cast<int32_t*>(scratch), rows.count);
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

    bool ByAmx() const {
      return std::string_view(chosen.impl_info_str()).find("amx") != std::string_view::npos;
    }
  };

  // Products of all rows of x, of this type; false: oneDNN has no good implementation.
  bool ChooseBoth(memory::data_type x_type) {
    const memory::desc any({form_.k, form_.n}, memory::data_type::s8, memory::format_tag::any);
    const int64_t rows = std::min(kRows, form_.m);
    return Choose(rows, x_type, any, whole_) &&
           Choose((form_.m - 1) % rows + 1, x_type, whole_.chosen.weights_desc(), tail_);
  }

  // Rows of x plus 128.
  const uint8_t* Moved(const int8_t* x, int64_t rows, void* scratch) const {
    auto* const to = static_cast<uint8_t*>(scratch) + moved_at_;
    FlipSigns(x, rows * form_.k, to);
    return to;
  }

  void TakeOut(int32_t* sums, int64_t rows) const {
    for (int64_t row = 0; row < rows; ++row) {
      for (const int32_t added : added_) {
        *sums = static_cast<int32_t>(static_cast<uint32_t>(*sums) -
                                     128U * static_cast<uint32_t>(added));
        ++sums;
      }
    }
  }

  bool Choose(int64_t rows, memory::data_type x_type, const memory::desc& weights, Rows& to) {
    const memory::desc x({rows, form_.k}, x_type, memory::format_tag::ab);
    const memory::desc y({rows, form_.n}, memory::data_type::s32, memory::format_tag::ab);
    to.count = rows;
    return to.BoundProduct::Choose(x, weights, y, engine_);
  }

  const Int8Form form_;
  bool moves_ = false;          // x to uint8
  std::vector<int32_t> added_;  // 128 of them to the sums of each column, where x is moved
  uint64_t moved_at_ = 0;       // in the scratch memory
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

void SumColumns(const int8_t* w, int64_t k, int64_t n, bool transposed, int32_t* sums) {
  std::fill_n(sums, n, 0);
  for (int64_t line = 0; line < (transposed ? n : k); ++line) {
    for (int64_t i = 0; i < (transposed ? k : n); ++i, ++w) {
      int32_t& sum = sums[transposed ? line : i];
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(int32_t{*w}));
    }
  }
}

void FlipSigns(const void* from, int64_t count, void* to) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  auto* const flipped = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i) flipped[i] = bytes[i] ^ 0x80;
}

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
