#include "graph/ops/convolution.h"

#include <cstring>
#include <unordered_map>
#include <utility>

#include "graph/ops/cast.h"
#include "graph/ops/onednn_call.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kWhat = "the convolution";

// A tensor as the primitive sees it: where it is, or widened beside it.
struct Side {
  ConvolutionTensor tensor;
  memory bound;
  std::vector<float> wide;  // empty for float32
  ConvertFn convert = nullptr;
};

Side DescribeSide(const ConvolutionTensor& tensor, const dnnl::engine& engine, bool input) {
  Side side;
  side.tensor = tensor;
  side.bound = memory({tensor.dims, memory::data_type::f32, tensor.strides}, engine, nullptr);
  if (tensor.dtype == DataType::kFloat) return side;
  side.wide.resize(static_cast<size_t>(tensor.elements));
  side.convert = input ? FindConvert(tensor.dtype, DataType::kFloat)
                       : FindConvert(DataType::kFloat, tensor.dtype);
  return side;
}

void BindInput(Side& side, const KernelArgs& args) {
  const void* data = args.in[side.tensor.slot];
  if (side.wide.empty()) {
    side.bound.set_data_handle(const_cast<void*>(data));  // NOLINT: oneDNN only reads it
    return;
  }
  side.convert(data, side.wide.data(), side.wide.size());
  side.bound.set_data_handle(side.wide.data());
}

void BindOutput(Side& side, const KernelArgs& args) {
  side.bound.set_data_handle(side.wide.empty() ? args.out[0] : side.wide.data());
}

// Rounds what was computed beside the output.
void StoreOutput(const Side& side, const KernelArgs& args) {
  if (!side.wide.empty()) side.convert(side.wide.data(), args.out[0], side.wide.size());
}

dnnl::primitive_attr Strict() {
  dnnl::primitive_attr attr;
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attr;
}

// oneDNN counts the gaps.
memory::dims Gaps(const Convolution& plan) {
  memory::dims gaps = plan.dilations;
  for (memory::dim& gap : gaps) --gap;
  return gaps;
}

class ConvolutionKernel final : public Kernel {
 public:
  explicit ConvolutionKernel(Convolution plan)
      : plan_(std::move(plan)), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // Throws what oneDNN throws.
  void Prepare() {
    const ThreadCount threads(plan_.threads);
    x_ = DescribeSide(plan_.x, engine_, true);
    filter_ = DescribeSide(plan_.filter, engine_, true);
    y_ = DescribeSide(plan_.y, engine_, false);
    if (plan_.bias.slot >= 0) bias_ = DescribeSide(plan_.bias, engine_, true);
    const memory::dims dilates = Gaps(plan_);
    primitive_ =
        plan_.transposed
            ? Make<dnnl::deconvolution_forward>(dnnl::algorithm::deconvolution_direct, dilates)
            : Make<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct, dilates);
    arguments_ = {
        {DNNL_ARG_SRC, x_.bound}, {DNNL_ARG_WEIGHTS, filter_.bound}, {DNNL_ARG_DST, y_.bound}};
    if (plan_.bias.slot >= 0) arguments_.emplace(DNNL_ARG_BIAS, bias_.bound);
  }

  Status Run(const KernelArgs& args) override {
    if (plan_.y.elements == 0) return Status();
    const ThreadCount threads(plan_.threads);
    BindInput(x_, args);
    BindInput(filter_, args);
    if (plan_.bias.slot >= 0) BindInput(bias_, args);
    BindOutput(y_, args);
    NPUMESH_RETURN_IF_ERROR(Guarded(plan_.who, kWhat, [&] {
      primitive_.execute(stream_, arguments_);
      stream_.wait();
      return Status();
    }));
    StoreOutput(y_, args);
    return Status();
  }

 private:
  // `Forward` is oneDNN's convolution or deconvolution, which take the same arguments.
  template <typename Forward>
  dnnl::primitive Make(dnnl::algorithm direct, const memory::dims& dilates) const {
    constexpr auto kKind = dnnl::prop_kind::forward_inference;
    const memory::desc x = x_.bound.get_desc(), w = filter_.bound.get_desc(),
                       y = y_.bound.get_desc();
    const auto desc =
        plan_.bias.slot >= 0
            ? typename Forward::desc(kKind, direct, x, w, bias_.bound.get_desc(), y, plan_.strides,
                                     dilates, plan_.before, plan_.behind)
            : typename Forward::desc(kKind, direct, x, w, y, plan_.strides, dilates, plan_.before,
                                     plan_.behind);
    return Forward(typename Forward::primitive_desc(desc, Strict(), engine_));
  }

  Convolution plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Side x_;
  Side filter_;
  Side bias_;
  Side y_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

class FilterGradientKernel final : public Kernel {
 public:
  explicit FilterGradientKernel(Convolution plan)
      : plan_(std::move(plan)), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // Throws what oneDNN throws.
  void Prepare() {
    const ThreadCount threads(plan_.threads);
    x_ = DescribeSide(plan_.x, engine_, true);
    y_ = DescribeSide(plan_.y, engine_, true);
    filter_ = DescribeSide(plan_.filter, engine_, false);
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const memory::desc x = x_.bound.get_desc(), w = filter_.bound.get_desc(),
                       y = y_.bound.get_desc();
    const memory::dims gaps = Gaps(plan_);
    using Forward = dnnl::convolution_forward;
    const Forward::desc forward(dnnl::prop_kind::forward_training, kDirect, x, w, y, plan_.strides,
                                gaps, plan_.before, plan_.behind);
    using Backward = dnnl::convolution_backward_weights;
    const Backward::desc backward(kDirect, x, w, y, plan_.strides, gaps, plan_.before,
                                  plan_.behind);
    const Forward::primitive_desc hint(forward, Strict(), engine_);
    primitive_ = Backward(Backward::primitive_desc(backward, Strict(), engine_, hint));
    arguments_ = {{DNNL_ARG_SRC, x_.bound},
                  {DNNL_ARG_DIFF_DST, y_.bound},
                  {DNNL_ARG_DIFF_WEIGHTS, filter_.bound}};
  }

  Status Run(const KernelArgs& args) override {
    const ThreadCount threads(plan_.threads);
    BindInput(x_, args);
    BindInput(y_, args);
    BindOutput(filter_, args);
    NPUMESH_RETURN_IF_ERROR(Guarded(plan_.who, kWhat, [&] {
      primitive_.execute(stream_, arguments_);
      stream_.wait();
      return Status();
    }));
    StoreOutput(filter_, args);
    return Status();
  }

 private:
  Convolution plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Side x_;
  Side y_;
  Side filter_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

// Makes and prepares a kernel, with what oneDNN throws as an error.
template <typename Made>
Result<std::unique_ptr<Kernel>> Prepared(Convolution plan) {
  const std::string who = plan.who;
  std::unique_ptr<Made> kernel;
  NPUMESH_RETURN_IF_ERROR(Guarded(who, kWhat, [&] {
    kernel = std::make_unique<Made>(std::move(plan));
    kernel->Prepare();
    return Status();
  }));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeConvolution(Convolution plan) {
  if (plan.y.elements == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  return Prepared<ConvolutionKernel>(std::move(plan));
}

Result<std::unique_ptr<Kernel>> MakeFilterGradient(Convolution plan) {
  if (plan.filter.elements > 0 && plan.y.elements > 0 && plan.x.elements > 0) {
    return Prepared<FilterGradientKernel>(std::move(plan));
  }
  const auto bytes = static_cast<size_t>(plan.filter.elements * BitsOf(plan.filter.dtype) / 8);
  return MakeKernel([bytes](const KernelArgs& args) {
    if (bytes > 0) std::memset(args.out[0], 0, bytes);
    return Status();
  });
}

}  // namespace npumesh
