#include "graph/ops/convolution.h"

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

class ConvolutionKernel final : public Kernel {
 public:
  explicit ConvolutionKernel(Convolution plan)
      : plan_(std::move(plan)), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // Throws what oneDNN throws.
  void Prepare() {
    const ThreadCount threads(plan_.threads);
    x_ = Describe(plan_.x, true);
    filter_ = Describe(plan_.filter, true);
    y_ = Describe(plan_.y, false);
    if (plan_.bias.slot >= 0) bias_ = Describe(plan_.bias, true);
    memory::dims dilates = plan_.dilations;
    for (memory::dim& dilate : dilates) --dilate;  // oneDNN counts the gaps
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
    Bind(x_, args);
    Bind(filter_, args);
    if (plan_.bias.slot >= 0) Bind(bias_, args);
    y_.bound.set_data_handle(y_.wide.empty() ? args.out[0] : y_.wide.data());
    NPUMESH_RETURN_IF_ERROR(Guarded(plan_.who, kWhat, [&] {
      primitive_.execute(stream_, arguments_);
      stream_.wait();
      return Status();
    }));
    if (!y_.wide.empty()) y_.convert(y_.wide.data(), args.out[0], y_.wide.size());
    return Status();
  }

 private:
  Side Describe(const ConvolutionTensor& tensor, bool input) const {
    Side side;
    side.tensor = tensor;
    side.bound = memory({tensor.dims, memory::data_type::f32, tensor.strides}, engine_, nullptr);
    if (tensor.dtype == DataType::kFloat) return side;
    side.wide.resize(static_cast<size_t>(tensor.elements));
    side.convert = input ? FindConvert(tensor.dtype, DataType::kFloat)
                         : FindConvert(DataType::kFloat, tensor.dtype);
    return side;
  }

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

  static dnnl::primitive_attr Strict() {
    dnnl::primitive_attr attr;
    attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
    return attr;
  }

  static void Bind(Side& side, const KernelArgs& args) {
    const void* data = args.in[side.tensor.slot];
    if (side.wide.empty()) {
      side.bound.set_data_handle(const_cast<void*>(data));  // NOLINT: oneDNN only reads it
      return;
    }
    side.convert(data, side.wide.data(), side.wide.size());
    side.bound.set_data_handle(side.wide.data());
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

}  // namespace

Result<std::unique_ptr<Kernel>> MakeConvolution(Convolution plan) {
  if (plan.y.elements == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  const std::string who = plan.who;
  std::unique_ptr<ConvolutionKernel> kernel;
  NPUMESH_RETURN_IF_ERROR(Guarded(who, kWhat, [&] {
    kernel = std::make_unique<ConvolutionKernel>(std::move(plan));
    kernel->Prepare();
    return Status();
  }));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace npumesh
