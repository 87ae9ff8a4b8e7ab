#include "graph/ops/image/convolution.h"

#include <utility>

#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kWhat = "the convolution";

// A tensor as the primitive sees it: where it is, or widened in scratch, and in the layout that it
// has or, where oneDNN computes those only by its reference, in one that oneDNN likes.
struct Side {
  ConvolutionTensor tensor;
  memory bound;
  ConvertFn convert = nullptr;  // null for float32
  Workspace<float> wide;
  // As the primitive wants it, and how it becomes so, or comes back; empty: as it is.
  memory arranged;
  dnnl::reorder rearrange;
  Workspace<std::byte> place;

  const memory& operand() const { return arranged ? arranged : bound; }
};

Side DescribeSide(const ConvolutionTensor& tensor, const dnnl::engine& engine, bool input,
                  Scratch& scratch) {
  Side side;
  side.tensor = tensor;
  side.bound = memory({tensor.dims, memory::data_type::f32, tensor.strides}, engine, nullptr);
  if (tensor.dtype == DataType::kFloat) return side;
  side.wide = scratch.Floats(tensor.elements);
  side.convert = input ? FindConvert(tensor.dtype, DataType::kFloat)
                       : FindConvert(DataType::kFloat, tensor.dtype);
  return side;
}

void BindInput(Side& side, const KernelArgs& args) {
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
    x_ = DescribeSide(plan_.x, engine_, true, scratch_);
    filter_ = DescribeSide(plan_.filter, engine_, !of_filter, scratch_);
    y_ = DescribeSide(plan_.y, engine_, of_filter, scratch_);
    if (plan_.bias) bias_ = DescribeSide(*plan_.bias, engine_, true, scratch_);
    inputs_ = {&x_, of_filter ? &y_ : &filter_};
    output_ = of_filter ? &filter_ : &y_;
    if (plan_.bias) inputs_.push_back(&bias_);
    if (of_filter) return MakeFilterGradient();
    if (plan_.transposed) {
      return MakeForward<dnnl::deconvolution_forward>(dnnl::algorithm::deconvolution_direct);
    }
    MakeForward<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct);
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }

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
  // `Forward` is oneDNN's convolution or deconvolution, which take the same arguments.
  template <typename Forward>
  void MakeForward(dnnl::algorithm direct) {
    const auto as_it_is = [](const Side& side) { return side.bound.get_desc(); };
    const auto as_it_likes = [](const Side& side) {
      return memory::desc(side.tensor.dims, memory::data_type::f32, memory::format_tag::any);
    };
    const auto plain = [&] { return Describe<Forward>(direct, as_it_is); };
    const auto arranged = [&] { return Describe<Forward>(direct, as_it_likes); };
    const bool arranges =
        IsReference(FirstImplementation(plain)) && !IsReference(FirstImplementation(arranged));
    if (arranges) {
      const auto chosen = Take<Forward>(arranged);
      Arrange(x_, chosen.src_desc(), true);
      Arrange(filter_, chosen.weights_desc(), true);
      Arrange(y_, chosen.dst_desc(), false);
    } else {
      Take<Forward>(plain);
    }
    Bind(DNNL_ARG_SRC, x_.operand());
    Bind(DNNL_ARG_WEIGHTS, filter_.operand());
    Bind(DNNL_ARG_DST, y_.operand());
    if (plan_.bias) Bind(DNNL_ARG_BIAS, bias_.bound);
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

}  // namespace

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
