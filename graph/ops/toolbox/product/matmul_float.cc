// Which kernel computes a floating product, and the one that has oneDNN do it.
//
// Panels of our own (matmul_panels.cc) are the ordinary choice. bfloat16 goes to oneDNN as it is
// where the processor has instructions for it and panels do not take them: x2 is no constant, or
// there are tiles of matrices (AMX). What else goes there, because it was measured to be faster, is
// widened to float32, multiplied and rounded once. Everything that can be decided
// without addresses is decided then: Run sets addresses and executes.
#include <algorithm>
#include <array>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kFloatProduct = "the product";

// Reasons that stand in several places.
constexpr std::string_view kNoConstant = "x2 is no constant";
constexpr std::string_view kOverNothing = "it is over no elements";

memory::data_type NativeType(DataType dtype) {
  return dtype == DataType::kBfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// The rows of the table, at the end of the file, that are asked for.
constexpr std::string_view kPanelKernel = "panels";
constexpr std::string_view kWidenedKernel = "widened";

// Where the elements of an operand come from at run time.
enum class Source : uint8_t {
  kAbsent,
  kInput,    // the input itself
  kWidened,  // the input, as float32 in scratch
  kZeros,    // zeros in scratch, for a product over no elements
  kPacked,   // memory filled when the kernel was made
};

struct Operand {
  Source source = Source::kAbsent;
  int slot = -1;
  DataType dtype = DataType::kUndefined;
  memory::desc desc;  // in C order or transposed, as the input is stored
  memory bound;       // what the primitive reads
  Workspace<float> room;
  int64_t elements = 0;
};

// A class, because the primitive and what it reads are bound anew in every run.
class FloatMatmul final : public Kernel {
 public:
  explicit FloatMatmul(const Matmul& matmul)
      : plan_(matmul), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  std::string WhyNotPanels() const { return plan_.k == 0 ? std::string(kOverNothing) : ""; }
  // Throws what oneDNN throws, as do the next and Prepare.
  std::string WhyRatherNotPanels() {
    const bool native = plan_.x1.dtype == DataType::kBfloat16 && WhyNotNative().empty();
    if (!native) return "";
    if (ComputesBy(dnnl::cpu_isa::avx512_core_amx)) return "this processor has tiles (AMX)";
    const bool packed = plan_.x2_value != nullptr && plan_.x2.batch_is_one();
    return packed ? "" : "this processor multiplies bfloat16";
  }

  // Chooses an implementation that reads and writes 16-bit tensors as they are, or says why
  // it cannot.
  std::string WhyNotNative() {
    if (plan_.k == 0) return std::string(kOverNothing);
    if (plan_.x1.dtype == DataType::kFloat16) return "oneDNN multiplies no float16 here";
    if (plan_.y_dtype == DataType::kFloat16) return "oneDNN writes no float16 here";
    const ThreadCount threads(plan_.threads);
    if (MakePrimitive(false)) return "";
    return fmt::format("oneDNN multiplies no {} on this processor", Name(plan_.x1.dtype));
  }

  std::string WhyNotWidened() const {
    return plan_.x1.dtype == DataType::kFloat ? "it is of float32 already" : "";
  }

  // Packs constant weights. `choice` has decided whether 16-bit operands are widened.
  Status Prepare(KernelChoice choice) {
    const ThreadCount threads(plan_.threads);
    if (choice.name == kWidenedKernel) MakePrimitive(true);
    choice.Decide("packed", PackWeights());
    choice.Decide(fmt::format("oneDNN {}", chosen_.impl_info_str()), "");
    set_choice(std::move(choice));
    PlanScratch();
    return Status();
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }
  bool reads(int slot) const override { return slot != x2_.slot || x2_.source != Source::kPacked; }

  Status Run(const KernelArgs& args) override {
    return Guarded(plan_.who, kFloatProduct, [&] { return Execute(args); });
  }

 private:
  // Product dimensions; a product over no elements is one over a single zero.
  int64_t k() const { return plan_.k > 0 ? plan_.k : 1; }

  Operand Describe(const Matmul::Operand& from, int64_t rows, int64_t columns) const {
    Operand operand;
    if (from.slot < 0) return operand;
    operand.slot = from.slot;
    operand.dtype = from.dtype;
    operand.source = widened_ && from.dtype != DataType::kFloat ? Source::kWidened : Source::kInput;
    memory::dims dims = from.batch;
    dims.insert(dims.end(), {rows, columns});
    memory::dims strides(dims.size());
    int64_t stride = rows * columns;
    operand.elements = 1;
    for (const int64_t dim : dims) operand.elements *= dim;
    strides[dims.size() - 1] = from.transposed ? rows : 1;
    strides[dims.size() - 2] = from.transposed ? 1 : columns;
    for (size_t i = dims.size() - 2; i-- > 0;) {
      strides[i] = stride;
      stride *= dims[i];
    }
    const bool wide = operand.source == Source::kWidened;
    operand.desc =
        memory::desc(dims, wide ? memory::data_type::f32 : NativeType(from.dtype), strides);
    return operand;
  }

  // Makes the primitive on the dtypes as they are, or with every 16-bit operand widened. False when
  // oneDNN has no optimised implementation for the former.
  bool MakePrimitive(bool widened) {
    widened_ = widened;
    x1_ = Describe(plan_.x1, plan_.m, k());
    x2_ = Describe(plan_.x2, k(), plan_.n);
    bias_ = Describe(plan_.bias, 1, plan_.n);
    if (plan_.k == 0) x1_.source = x2_.source = Source::kZeros;
    // Described like an input: kInput stands for the output itself, kWidened for scratch.
    y_ = Describe({0, plan_.y_dtype, plan_.batch, false}, plan_.m, plan_.n);
    memory::desc weights = x2_.desc;
    if (plan_.x2_value != nullptr && plan_.k > 0) {
      weights = memory::desc(DimsOf(weights), ElementType(weights), memory::format_tag::any);
    }
    const dnnl::primitive_attr attr = OurAttributes();
    const auto describe = [&](const auto&... operands) {
      return DescribePrimitive<dnnl::matmul>(engine_, attr, /*allow_empty=*/!widened, operands...);
    };
    chosen_ = TunedImplementation(plan_.tuning, [&] {
      return bias_.source == Source::kAbsent ? describe(x1_.desc, weights, y_.desc)
                                             : describe(x1_.desc, weights, bias_.desc, y_.desc);
    });
    if (!chosen_) return false;
    if (!widened && plan_.x1.dtype == DataType::kBfloat16 && IsReference(chosen_)) return false;
    primitive_ = dnnl::matmul(chosen_);
    return true;
  }

  // Constant weights in the arrangement the primitive likes best, as wide as it wants them; or why
  // they stay where they are.
  std::string PackWeights() {
    if (plan_.x2_value == nullptr) return std::string(kNoConstant);
    if (plan_.k == 0) return std::string(kOverNothing);
    const bool arranged = chosen_.weights_desc() == x2_.desc;
    if (arranged && x2_.source == Source::kInput) return "oneDNN reads x2 as it lies";
    packed_ = PackWeight(*plan_.x2_value, x2_.desc, chosen_.weights_desc(), engine_, stream_,
                         plan_.packed);
    x2_.source = Source::kPacked;
    x2_.bound = *packed_;
    return "";
  }

  void PlanScratch() {
    for (Operand* operand : {&x1_, &x2_, &bias_, &y_}) {
      if (operand->source == Source::kAbsent || operand->source == Source::kPacked) continue;
      operand->bound = memory(operand->desc, engine_, nullptr);
      if (operand->source == Source::kInput) continue;
      operand->room = scratch_.Floats(operand->elements);
    }
    const memory::desc scratchpad = chosen_.scratchpad_desc();
    scratchpad_ = memory(scratchpad, engine_, nullptr);
    scratchpad_room_ = scratch_.Take<std::byte>(static_cast<int64_t>(scratchpad.get_size()));
  }

  // Sets the address of an operand, filling its scratch where it has some.
  void Bind(Operand& operand, const KernelArgs& args) {
    if (operand.source == Source::kAbsent || operand.source == Source::kPacked) return;
    if (operand.source == Source::kInput) {
      operand.bound.set_data_handle(const_cast<void*>(args.in[operand.slot]));
      return;
    }
    float* room = operand.room(args);
    const auto elements = static_cast<size_t>(operand.elements);
    if (operand.source == Source::kZeros) {
      std::fill_n(room, elements, 0.0f);
    } else {
      FindConvert(operand.dtype, DataType::kFloat)(args.in[operand.slot], room, elements);
    }
    operand.bound.set_data_handle(room);
  }

  Status Execute(const KernelArgs& args) {
    const ThreadCount threads(plan_.threads);
    const bool narrows = y_.source != Source::kInput;
    void* y = narrows ? y_.room(args) : args.out[0];
    Bind(x1_, args);
    Bind(x2_, args);
    Bind(bias_, args);
    y_.bound.set_data_handle(y);
    scratchpad_.set_data_handle(scratchpad_room_(args));
    const std::array<dnnl_exec_arg_t, 5> list = {{{DNNL_ARG_SRC, x1_.bound.get()},
                                                  {DNNL_ARG_WEIGHTS, x2_.bound.get()},
                                                  {DNNL_ARG_DST, y_.bound.get()},
                                                  {DNNL_ARG_SCRATCHPAD, scratchpad_.get()},
                                                  {DNNL_ARG_BIAS, bias_.bound.get(true)}}};
    const size_t count = bias_.source == Source::kAbsent ? 4 : 5;
    ExecuteAndWait(primitive_, stream_, std::span(list).first(count));
    if (narrows) {
      const ConvertFn narrow = FindConvert(DataType::kFloat, plan_.y_dtype);
      narrow(y, args.out[0], static_cast<size_t>(y_.elements));
    }
    if (plan_.residual >= 0) {
      float* const sums = static_cast<float*>(y);
      AddRow(sums, static_cast<const float*>(args.in[plan_.residual]), y_.elements, sums);
    }
    return Status();
  }

  const Matmul plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  bool widened_ = false;
  Operand x1_, x2_, bias_, y_;
  dnnl::matmul::primitive_desc chosen_;
  dnnl::matmul primitive_;
  std::shared_ptr<const memory> packed_;  // keeps the weights that others may share
  memory scratchpad_;
  Scratch scratch_;
  Workspace<std::byte> scratchpad_room_;
};

// "native": oneDNN reads and writes tensors as they are.
constexpr Candidate<FloatMatmul> kFloatKernels[] = {
    {kPanelKernel, [](FloatMatmul& kernel) { return kernel.WhyNotPanels(); },
     [](FloatMatmul& kernel) { return kernel.WhyRatherNotPanels(); }},
    {"native", [](FloatMatmul& kernel) { return kernel.WhyNotNative(); }},
    {kWidenedKernel, [](FloatMatmul& kernel) { return kernel.WhyNotWidened(); }}};

// The kernel by panels, which tells what was decided before it, too.
Result<std::unique_ptr<Kernel>> MakePanels(const Matmul& matmul, KernelChoice choice) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakePanelMatmul(matmul));
  choice.Join(kernel->choice());
  kernel->set_choice(std::move(choice));
  return kernel;
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeFloatMatmul(const Matmul& matmul) {
  std::unique_ptr<FloatMatmul> kernel;
  KernelChoice choice;
  NPUMESH_RETURN_IF_ERROR(Guarded(matmul.who, kFloatProduct, [&] {
    kernel = std::make_unique<FloatMatmul>(matmul);
    choice = Choose(kFloatKernels, *kernel, matmul.tuning, "product of floats");
    return choice.name == kPanelKernel ? Status() : kernel->Prepare(choice);
  }));
  if (choice.name == kPanelKernel) return MakePanels(matmul, std::move(choice));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace npumesh
