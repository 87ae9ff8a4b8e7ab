#include "graph/ops/image/convolution.h"

#include <algorithm>
#include <utility>

#include "graph/ops/image/blocked_image.h"
#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kWhat = "the convolution";

// A tensor as the primitive sees it: where it is, or widened in scratch, and in the layout that it
// has or in one that oneDNN likes.
struct Side {
  ConvolutionTensor tensor;
  memory bound;
  ConvertFn convert = nullptr;  // null for float32
  Workspace<float> wide;
  // As the primitive wants it, and how it becomes so, or comes back; empty: as it is.
  memory arranged;
  dnnl::reorder rearrange;
  Workspace<std::byte> place;
  // A constant in the layout that the primitive wants: no run looks at the input. `holder` keeps
  // its bytes.
  memory packed;
  std::shared_ptr<const void> holder;

  const memory& operand() const { return packed ? packed : arranged ? arranged : bound; }
};

memory::format_tag BlockedTag() {
  return ImageBlock() == 16 ? memory::format_tag::nChw16c : memory::format_tag::nChw8c;
}

Side DescribeSide(const ConvolutionTensor& tensor, const dnnl::engine& engine, bool input,
                  Scratch& scratch) {
  constexpr auto kFloat32 = memory::data_type::f32;
  Side side;
  side.tensor = tensor;
  side.bound = tensor.in_blocks ? memory({tensor.dims, kFloat32, BlockedTag()}, engine, nullptr)
                                : memory({tensor.dims, kFloat32, tensor.strides}, engine, nullptr);
  if (tensor.dtype == DataType::kFloat) return side;
  side.wide = scratch.Floats(tensor.elements);
  side.convert = input ? FindConvert(tensor.dtype, DataType::kFloat)
                       : FindConvert(DataType::kFloat, tensor.dtype);
  return side;
}

void BindInput(Side& side, const KernelArgs& args) {
  if (side.packed) return;
  const void* data = args.in[*side.tensor.slot];
  if (side.convert == nullptr) {
    side.bound.set_data_handle(const_cast<void*>(data));  // NOLINT: oneDNN only reads it
    return;
  }
  side.convert(data, side.wide(args), static_cast<size_t>(side.tensor.elements));
  side.bound.set_data_handle(side.wide(args));
}

void BindOutput(Side& side, const KernelArgs& args) {
  side.bound.set_data_handle(side.convert == nullptr ? args.out[0] : side.wide(args));
}

// Rounds what was computed beside the output.
void StoreOutput(const Side& side, const KernelArgs& args) {
  if (side.convert == nullptr) return;
  side.convert(side.wide(args), args.out[0], static_cast<size_t>(side.tensor.elements));
}

// A constant of floats as float32.
std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> floats(static_cast<size_t>(tensor.elements()));
  FindConvert(tensor.dtype(), DataType::kFloat)(tensor.data(), floats.data(), floats.size());
  return floats;
}

// The filter with the filters of each output channel multiplied by its factor.
Tensor ScaledFilter(const Convolution& plan) {
  const std::vector<int64_t>&dims = plan.filter.dims, &strides = plan.filter.strides;
  std::vector<float> scaled = Floats(*plan.filter_value);
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < plan.filter.elements; ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) place += at[d] * strides[d];
    float& weight = scaled[static_cast<size_t>(place)];
    const auto output = static_cast<size_t>(at[0] * dims[1] + at[1]);
    weight = static_cast<float>(double{weight} * plan.scale->factor[output]);
    for (size_t d = dims.size(); d-- > 0 && ++at[d] == dims[d];) at[d] = 0;
  }
  return Tensor::FromVector({DataType::kFloat, plan.filter_value->shape()}, scaled);
}

std::vector<float> ScaledBias(const Convolution& plan) {
  const auto& [factor, summand] = *plan.scale;
  const std::vector<float> own = plan.bias ? Floats(*plan.bias_value) : std::vector<float>();
  std::vector<float> bias;
  for (size_t c = 0; c < factor.size(); ++c) {
    const double scaled = own.empty() ? 0 : double{own[c]} * factor[c];
    bias.push_back(static_cast<float>(scaled + summand[c]));
  }
  return bias;
}

// oneDNN counts the gaps.
memory::dims Gaps(const Convolution& plan) {
  memory::dims gaps = plan.dilations;
  for (memory::dim& gap : gaps) --gap;
  return gaps;
}

std::string WhyNotNative(const Convolution& plan) {
  if (plan.x.dtype == DataType::kFloat) return "";
  return fmt::format("{} is computed in float32", Name(plan.x.dtype));
}

// Whether oneDNN reads and writes the tensors as they are.
constexpr Candidate<const Convolution> kKernels[] = {{"native", WhyNotNative}, {"widened"}};

// Whether an implementation unfolds the image and multiplies matrices.
template <typename Description>
bool MultipliesMatrices(const Description& chosen) {
  const std::string_view name = chosen.impl_info_str();
  return name.starts_with("gemm:") || name.find(":gemm:") != std::string_view::npos;
}

// A filter of one pixel that joins all channels: a product of matrices, whatever the layout.
bool IsProduct(const Convolution& plan) {
  const std::vector<int64_t>& filter = plan.filter.dims;
  const auto one = [](int64_t n) { return n == 1; };
  return filter[0] == 1 && std::all_of(filter.begin() + 3, filter.end(), one) &&
         std::all_of(plan.strides.begin(), plan.strides.end(), one);
}

// Stateful: every run binds the addresses of its operands to the memory objects of oneDNN.
class ConvolutionKernel final : public Kernel {
 public:
  explicit ConvolutionKernel(Convolution plan)
      : plan_(std::move(plan)), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // Chooses the primitive, for y or for the gradient of the filter. Throws what oneDNN throws.
  void Prepare() {
    set_choice(Choose(kKernels, std::as_const(plan_)));
    const ThreadCount threads(plan_.threads);
    const bool of_filter = plan_.of_filter;
    DescribeSides();
    if (plan_.scale) KeepScaledBias();
    inputs_ = {&x_, of_filter ? &y_ : &filter_};
    output_ = of_filter ? &filter_ : &y_;
    if (plan_.bias) inputs_.push_back(&bias_);
    if (of_filter) return MakeFilterGradient();
    if (plan_.transposed) {
      return MakeForward<dnnl::deconvolution_forward>(dnnl::algorithm::deconvolution_direct);
    }
    MakeForward<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct);
  }

  // Whether oneDNN computes images in blocks by more than references and products of matrices.
  bool KnowsBlocks();

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }

  bool reads(int slot) const override {
    return std::none_of(inputs_.begin(), inputs_.end(), [slot](const Side* side) {
      return side->packed && side->tensor.slot == slot;
    });
  }

  Status Run(const KernelArgs& args) override {
    const ThreadCount threads(plan_.threads);
    for (Side* input : inputs_) BindInput(*input, args);
    BindOutput(*output_, args);
    for (Side* side : {&x_, &filter_, &y_}) {
      if (side->arranged) side->arranged.set_data_handle(side->place(args));
    }
    scratchpad_.set_data_handle(scratchpad_at_(args));
    NPUMESH_RETURN_IF_ERROR(Guarded(plan_.who, kWhat, [&] {
      for (Side* side : {&x_, &filter_}) {
        if (side->arranged) side->rearrange.execute(stream_, side->bound, side->arranged);
      }
      ExecuteAndWait(primitive_, stream_, arguments_);
      if (y_.arranged) {
        y_.rearrange.execute(stream_, y_.arranged, y_.bound);
        stream_.wait();
      }
      return Status();
    }));
    StoreOutput(*output_, args);
    return Status();
  }

 private:
  void DescribeSides() {
    x_ = DescribeSide(plan_.x, engine_, true, scratch_);
    filter_ = DescribeSide(plan_.filter, engine_, !plan_.of_filter, scratch_);
    y_ = DescribeSide(plan_.y, engine_, plan_.of_filter, scratch_);
    if (plan_.bias) bias_ = DescribeSide(*plan_.bias, engine_, true, scratch_);
  }

  static memory::desc AsItLikes(const Side& side) {
    if (side.tensor.in_blocks) return side.bound.get_desc();
    return {side.tensor.dims, memory::data_type::f32, memory::format_tag::any};
  }

  // `Forward` is oneDNN's convolution or deconvolution, which take the same arguments.
  template <typename Forward>
  void MakeForward(dnnl::algorithm direct) {
    const auto as_it_is = [](const Side& side) { return side.bound.get_desc(); };
    const auto plain = [&] { return Describe<Forward>(direct, as_it_is); };
    const auto arranged = [&] { return Describe<Forward>(direct, AsItLikes); };
    if (Arranges(plain, arranged)) {
      const auto chosen = Take<Forward>(arranged);
      Arrange(x_, chosen.src_desc(), true);
      ArrangeFilter(chosen.weights_desc());
      Arrange(y_, chosen.dst_desc(), false);
    } else {
      Take<Forward>(plain);
      if (plan_.scale) ArrangeFilter(filter_.bound.get_desc());
    }
    Bind(DNNL_ARG_SRC, x_.operand());
    Bind(DNNL_ARG_WEIGHTS, filter_.operand());
    Bind(DNNL_ARG_DST, y_.operand());
    if (plan_.bias) Bind(DNNL_ARG_BIAS, bias_.operand());
  }

  // Whether the tensors come into the layouts that oneDNN likes. To bring an image there and back
  // in every run costs less than to unfold it, unless the convolution is a product anyway.
  template <typename Plain, typename Arranged>
  bool Arranges(Plain plain, Arranged arranged) const {
    if (plan_.x.in_blocks || plan_.y.in_blocks) return true;
    const auto as_it_is = FirstImplementation(plain);
    const bool slow = IsReference(as_it_is) || (MultipliesMatrices(as_it_is) && !IsProduct(plan_));
    if (!slow) return false;
    const auto as_it_likes = FirstImplementation(arranged);
    return !IsReference(as_it_likes) && !MultipliesMatrices(as_it_likes);
  }

  // The primitive for tensors as `desc` has them.
  template <typename Forward, typename Desc>
  auto Describe(dnnl::algorithm direct, Desc desc) const {
    const auto describe = [&](const auto&... tensors) {
      return DescribePrimitive<Forward>(engine_, OurAttributes(), /*allow_empty=*/false,
                                        dnnl::prop_kind::forward_inference, direct, tensors...,
                                        plan_.strides, Gaps(plan_), plan_.before, plan_.behind);
    };
    const memory::desc x = desc(x_), filter = desc(filter_), y = desc(y_);
    return plan_.bias ? describe(x, filter, bias_.bound.get_desc(), y) : describe(x, filter, y);
  }

  void Arrange(Side& side, const memory::desc& wanted, bool input) {
    if (wanted == side.bound.get_desc()) return;
    side.arranged = memory(wanted, engine_, nullptr);
    side.place = scratch_.Take<std::byte>(static_cast<int64_t>(wanted.get_size()));
    side.rearrange =
        input ? dnnl::reorder(side.bound, side.arranged) : dnnl::reorder(side.arranged, side.bound);
  }

  // A constant filter is packed here, once for all plans of the model.
  void ArrangeFilter(const memory::desc& wanted) {
    const Tensor* const value = plan_.filter_value;
    if (value == nullptr) return Arrange(filter_, wanted, true);
    const memory::desc from = filter_.bound.get_desc();
    const std::shared_ptr<const memory> packed =
        plan_.scale ? PackWeight(ScaledFilter(plan_), from, wanted, engine_, stream_, nullptr)
                    : PackWeight(*value, from, wanted, engine_, stream_, plan_.packed);
    filter_.packed = *packed;
    filter_.holder = packed;
  }

  void KeepScaledBias() {
    const auto bias = std::make_shared<std::vector<float>>(ScaledBias(plan_));
    const auto outputs = static_cast<int64_t>(bias->size());
    if (!plan_.bias)
      plan_.bias = ConvolutionTensor{std::nullopt, DataType::kFloat, {}, {}, outputs};
    bias_.tensor = *plan_.bias;
    bias_.packed =
        memory({{outputs}, memory::data_type::f32, memory::format_tag::x}, engine_, bias->data());
    bias_.bound = bias_.packed;
    bias_.holder = bias;
  }

  void MakeFilterGradient() {
    using Forward = dnnl::convolution_forward;
    using Backward = dnnl::convolution_backward_weights;
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const memory::desc x = x_.bound.get_desc(), w = filter_.bound.get_desc(),
                       y = y_.bound.get_desc();
    const memory::dims gaps = Gaps(plan_);
    const auto hint = DescribePrimitive<Forward>(
        engine_, OurAttributes(), /*allow_empty=*/false, dnnl::prop_kind::forward_training, kDirect,
        x, w, y, plan_.strides, gaps, plan_.before, plan_.behind);
    Take<Backward>([&] {
      return DescribeGradient<Backward>(engine_, OurAttributes(), hint, kDirect, x, w, y,
                                        plan_.strides, gaps, plan_.before, plan_.behind);
    });
    Bind(DNNL_ARG_SRC, x_.bound);
    Bind(DNNL_ARG_DIFF_DST, y_.bound);
    Bind(DNNL_ARG_DIFF_WEIGHTS, filter_.bound);
  }

  template <typename Primitive, typename Make>
  typename Primitive::primitive_desc Take(Make make) {
    const typename Primitive::primitive_desc chosen = TunedImplementation(plan_.tuning, make);
    KernelChoice all = choice();
    all.Decide(fmt::format("oneDNN {}", chosen.impl_info_str()), "");
    set_choice(std::move(all));
    primitive_ = Primitive(chosen);
    const memory::desc scratchpad = chosen.scratchpad_desc();
    scratchpad_ = memory(scratchpad, engine_, nullptr);
    scratchpad_at_ = scratch_.Take<std::byte>(static_cast<int64_t>(scratchpad.get_size()));
    Bind(DNNL_ARG_SCRATCHPAD, scratchpad_);
    return chosen;
  }

  void Bind(int argument, const memory& value) { arguments_.push_back({argument, value.get()}); }

  Convolution plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Side x_, filter_, bias_, y_;
  std::vector<Side*> inputs_;
  Side* output_ = nullptr;
  dnnl::primitive primitive_;
  memory scratchpad_;
  std::vector<dnnl_exec_arg_t> arguments_;
  Scratch scratch_;
  Workspace<std::byte> scratchpad_at_;
};

bool ConvolutionKernel::KnowsBlocks() {
  DescribeSides();
  const auto chosen = FirstImplementation([this] {
    return Describe<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct, AsItLikes);
  });
  return !IsReference(chosen) && !MultipliesMatrices(chosen);
}

}  // namespace

bool ChooseBlocks(Convolution& plan) {
  const auto plain = [](const ConvolutionTensor& image) {
    return image.dtype == DataType::kFloat && image.strides.back() == 1 && image.elements > 0;
  };
  if (plan.filter_value == nullptr || !plain(plan.x) || !plain(plan.y)) return false;
  if (!plan.x.in_blocks) {
    if (IsProduct(plan)) return false;
    plan.x.in_blocks = 2 * plan.x.dims[1] >= ImageBlock();  // few channels are no block
  }
  bool knows = false;
  const Status described = Guarded(plan.who, kWhat, [&] {
    knows = ConvolutionKernel(plan).KnowsBlocks();
    return Status();
  });
  return described.ok() && knows;
}

Result<std::unique_ptr<Kernel>> MakeConvolution(Convolution plan) {
  const bool sums = plan.x.elements > 0 && plan.filter.elements > 0;
  if (plan.y.elements > 0 && (sums || !plan.of_filter)) {
    std::unique_ptr<ConvolutionKernel> kernel;
    NPUMESH_RETURN_IF_ERROR(Guarded(std::string(plan.who), kWhat, [&] {
      kernel = std::make_unique<ConvolutionKernel>(std::move(plan));
      kernel->Prepare();
      return Status();
    }));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }
  // An empty y, or the gradient of a sum without elements.
  return MakeKernel([plan = std::move(plan)](const KernelArgs& args) {
    ClearOutput(plan, args, 0);
    return Status();
  });
}

}  // namespace npumesh
