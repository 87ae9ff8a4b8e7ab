// Floating products with constant weights of 16 bits for which processors lack instructions:
// float16, and bfloat16 where the processor lacks them.
//
// The weights stay in 16 bits (half_product.h). For few rows of x1, as in a decode step, they are
// widened in registers: reading them is what such a product costs. For more rows, groups of panels
// are widened into scratch that a core's cache holds, and multiplied by oneDNN. Everything is added
// in float32 and rounded once.
#include <algorithm>
#include <array>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/half_product.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kHalfProduct = "the product";
// Rows up to which widening in registers is the faster way, and up to which it is worth a trial.
constexpr int64_t kFewRows = 12;
constexpr int64_t kMostRows = 64;
// Of widened panels that are worked on at once.
constexpr int64_t kGroupFloats = int64_t{1} << 18;
constexpr std::array<int64_t, 5> kGroupsToTry = {kGroupFloats / 4, kGroupFloats / 2, kGroupFloats,
                                                 kGroupFloats * 2, kGroupFloats * 4};

// The rows of the table, at the end of the file, that are asked for.
constexpr std::string_view kInRegisters = "widened in registers";
constexpr std::string_view kInGroups = "widened in groups";

// y[m, columns] = x1 times a group of widened panels.
struct GroupProduct : BoundProduct {
  int64_t panels = 0;
  int64_t columns = 0;
  memory weights;
};

// A class, because the primitives and what they read are bound anew in every run.
class HalfWeightMatmul final : public Kernel {
 public:
  explicit HalfWeightMatmul(const Matmul& matmul)
      : plan_(matmul), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // These four in this order, with the threads of the plan; they throw what oneDNN throws.
  void PackWeights() {
    panels_ = PackHalves(*plan_.x2_value, plan_.k, plan_.n, plan_.x2.transposed, plan_.packed);
  }
  std::string WhyNotInRegisters() const {
    if (plan_.x1.transposed) return "x1 is transposed";
    return WhyNotRows(kMostRows);
  }
  std::string WhyRatherNotInRegisters() const { return WhyNotRows(kFewRows); }
  // Chooses oneDNN's implementation for groups of panels where it reads them as they are.
  std::string WhyNotInGroups() {
    const int64_t floats = TunedSize(plan_.tuning, "floats in a group", kGroupsToTry, kGroupFloats);
    const int64_t fit = floats / panel_elements();
    const int64_t group = std::clamp<int64_t>(fit, 1, panels_->panels);
    const bool blocked =
        MakePrimitive(group, true, whole_) && MakePrimitive(Tail(group), true, tail_);
    return blocked ? "" : "oneDNN does not read several panels as they lie";
  }
  void Prepare(KernelChoice choice) {
    few_ = choice.name == kInRegisters;
    x1_ = scratch_.Floats(plan_.m * plan_.k);
    bias_ = scratch_.Floats(plan_.bias.slot < 0 ? 0 : plan_.n);
    if (!few_) TakeGroups(choice.name == kInGroups);
    tile_ = scratch_.Floats(plan_.m * kPanelColumns * (few_ ? 1 : whole_.panels));
    set_choice(std::move(choice));
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }
  bool reads(int slot) const override { return slot != plan_.x2.slot; }

  Status Run(const KernelArgs& args) override {
    return Guarded(plan_.who, kHalfProduct, [&] {
      const ThreadCount threads(plan_.threads);
      const float* x1 = Load(args, plan_.x1, plan_.m * plan_.k, x1_);
      const float* bias = plan_.bias.slot < 0 ? nullptr : Load(args, plan_.bias, plan_.n, bias_);
      few_ ? RunFew(args, x1, bias) : RunGroups(args, x1, bias);
      return Status();
    });
  }

 private:
  std::string WhyNotRows(int64_t most) const {
    if (plan_.m <= most) return "";
    return fmt::format("x1 has {} rows, more than {}", plan_.m, most);
  }

  int64_t panel_elements() const { return panels_->rows * kPanelColumns; }

  // Room for the groups that were chosen, or that are of one panel.
  void TakeGroups(bool chosen) {
    if (!chosen) {
      MakePrimitive(1, false, whole_);
      MakePrimitive(1, false, tail_);
    }
    group_ = scratch_.Floats(whole_.panels * panel_elements());
    const size_t scratchpad = std::max(whole_.chosen.scratchpad_desc().get_size(),
                                       tail_.chosen.scratchpad_desc().get_size());
    scratchpad_ = scratch_.Take<std::byte>(static_cast<int64_t>(scratchpad));
  }

  // Panels of the last group.
  int64_t Tail(int64_t group) const { return (panels_->panels - 1) % group + 1; }

  // The product with `panels` panels: the last ones for the tail, else any. False when oneDNN has
  // no good one for this arrangement.
  bool MakePrimitive(int64_t panels, bool blocked, GroupProduct& product) {
    const bool last = &product == &tail_;
    const int64_t before = last ? (panels_->panels - panels) * kPanelColumns : 0;
    const int64_t columns = std::min(panels * kPanelColumns, plan_.n - before);
    constexpr auto kType = memory::data_type::f32;
    const memory::dims x1_strides =
        plan_.x1.transposed ? memory::dims{1, plan_.m} : memory::dims{plan_.k, 1};
    const memory::desc x1({plan_.m, plan_.k}, kType, x1_strides);
    const memory::desc weights =
        blocked ? memory::desc({plan_.k, columns}, kType, memory::format_tag::BA16a64b)
                : memory::desc({plan_.k, columns}, kType, {kPanelColumns, 1});
    const memory::desc y({plan_.m, columns}, kType, memory::format_tag::ab);
    product.panels = panels;
    product.columns = columns;
    if (!product.Choose({x1, weights, y}, engine_, !blocked)) return false;
    product.weights = memory(weights, engine_, nullptr);
    return true;
  }

  static const float* Load(const KernelArgs& args, const Matmul::Operand& from, int64_t count,
                           const Workspace<float>& room) {
    return LoadRow(from.dtype, args.in[from.slot], 0, count, room(args));
  }

  void RunFew(const KernelArgs& args, const float* x1, const float* bias) const {
    for (int64_t i = 0; i < panels_->panels; ++i) {
      MultiplyPanel(plan_.x2.dtype, x1, plan_.m, plan_.k, panels_->panel(i), tile_(args));
      const int64_t columns = std::min(kPanelColumns, plan_.n - i * kPanelColumns);
      Store(args, i * kPanelColumns, columns, kPanelColumns, bias);
    }
  }

  void RunGroups(const KernelArgs& args, const float* x1, const float* bias) {
    for (int64_t i = 0; i < panels_->panels;) {
      GroupProduct& product = panels_->panels - i > whole_.panels ? whole_ : tail_;
      float* weights = group_(args);
      WidenPanel(plan_.x2.dtype, panels_->panel(i), product.panels * panel_elements(), weights);
      product.weights.set_data_handle(weights);
      product.Run(stream_, x1, product.weights, tile_(args), scratchpad_(args));
      Store(args, i * kPanelColumns, product.columns, product.columns, bias);
      i += product.panels;
    }
  }

  // Columns [first, first + columns) of y, which lie in the tile in rows `stride` apart.
  void Store(const KernelArgs& args, int64_t first, int64_t columns, int64_t stride,
             const float* bias) const {
    float* row = tile_(args);
    for (int64_t r = 0; r < plan_.m; ++r, row += stride) {
      if (bias != nullptr) AddRow(row, bias + first, columns, row);
      StoreRow(plan_.y_dtype, row, args.out[0], r * plan_.n + first, columns);
    }
  }

  const Matmul plan_;
  bool few_ = false;  // few rows of x1: weights are widened in registers
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::shared_ptr<const HalfPanels> panels_;
  GroupProduct whole_;
  GroupProduct tail_;  // the last group
  Scratch scratch_;
  Workspace<float> x1_, bias_, group_, tile_;
  Workspace<std::byte> scratchpad_;
};

constexpr Candidate<HalfWeightMatmul> kHalfKernels[] = {
    {kInRegisters, [](HalfWeightMatmul& kernel) { return kernel.WhyNotInRegisters(); },
     [](HalfWeightMatmul& kernel) { return kernel.WhyRatherNotInRegisters(); }},
    {kInGroups, [](HalfWeightMatmul& kernel) { return kernel.WhyNotInGroups(); }},
    {"widened panel by panel"}};

}  // namespace

std::string WhyNotHalves(const Matmul& matmul) {
  const DataType x1 = matmul.x1.dtype, x2 = matmul.x2.dtype;
  const bool biases = matmul.bias.slot >= 0 && !matmul.bias.batch_is_one();
  if (x2 != DataType::kFloat16 && x2 != DataType::kBfloat16) {
    return fmt::format("x2 is {}", Name(x2));
  }
  if (matmul.x2_value == nullptr) return "x2 is no constant";
  if (matmul.k == 0) return "it is over no elements";
  if (x1 != x2) return fmt::format("x1 is {} and x2 {}", Name(x1), Name(x2));
  if (!matmul.x1.batch_is_one() || !matmul.x2.batch_is_one()) return "it is a batch of products";
  return biases ? "each product has a bias of its own" : "";
}

Result<std::unique_ptr<Kernel>> MakeHalfWeightMatmul(const Matmul& matmul) {
  std::unique_ptr<HalfWeightMatmul> kernel;
  NPUMESH_RETURN_IF_ERROR(Guarded(matmul.who, kHalfProduct, [&] {
    const ThreadCount threads(matmul.threads);
    kernel = std::make_unique<HalfWeightMatmul>(matmul);
    kernel->PackWeights();
    kernel->Prepare(Choose(kHalfKernels, *kernel, matmul.tuning, "16-bit weights"));
    return Status();
  }));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace npumesh
