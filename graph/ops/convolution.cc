#include "graph/ops/convolution.h"

#include <cstring>
#include <utility>

#include "graph/ops/cast.h"
#include "graph/ops/onednn_call.h"

namespace npumesh {
namespace {

using dnnl::memory;

constexpr std::string_view kWhat = "the convolution";

constexpr uint64_t kLine = 64;

// A tensor as the primitive sees it: where it is, or widened in scratch.
struct Side {
  ConvolutionTensor tensor;
  memory bound;
  ConvertFn convert = nullptr;  // null for float32
  uint64_t scratch = 0;
};

// What a kernel of this file needs beside its operands.
class Scratch {
 public:
  uint64_t bytes() const { return bytes_; }
  uint64_t Reserve(uint64_t bytes) {
    const uint64_t at = bytes_;
    bytes_ += (bytes + kLine - 1) / kLine * kLine;
    return at;
  }

 private:
  uint64_t bytes_ = 0;
};

Side DescribeSide(const ConvolutionTensor& tensor, const dnnl::engine& engine, bool input,
                  Scratch& scratch) {
  Side side;
  side.tensor = tensor;
  side.bound = memory({tensor.dims, memory::data_type::f32, tensor.strides}, engine, nullptr);
  if (tensor.dtype == DataType::kFloat) return side;
  side.scratch = scratch.Reserve(static_cast<uint64_t>(tensor.elements) * sizeof(float));
  side.convert = input ? FindConvert(tensor.dtype, DataType::kFloat)
                       : FindConvert(DataType::kFloat, tensor.dtype);
  return side;
}

void* WideOf(const Side& side, const KernelArgs& args) {
  return static_cast<std::byte*>(args.scratch) + side.scratch;
}

void BindInput(Side& side, const KernelArgs& args) {
  const void* data = args.in[side.tensor.slot];
  if (side.convert == nullptr) {
    side.bound.set_data_handle(const_cast<void*>(data));  // NOLINT: oneDNN only reads it
    return;
  }
  side.convert(data, WideOf(side, args), static_cast<size_t>(side.tensor.elements));
  side.bound.set_data_handle(WideOf(side, args));
}

void BindOutput(Side& side, const KernelArgs& args) {
  side.bound.set_data_handle(side.convert == nullptr ? args.out[0] : WideOf(side, args));
}

// Rounds what was computed beside the output.
void StoreOutput(const Side& side, const KernelArgs& args) {
  if (side.convert == nullptr) return;
  side.convert(WideOf(side, args), args.out[0], static_cast<size_t>(side.tensor.elements));
}

// A primitive with its scratchpad and, in `list`, the arguments that it is executed with.
struct Call {
  dnnl::primitive primitive;
  memory scratchpad;
  uint64_t scratchpad_at = 0;
  std::vector<dnnl_exec_arg_t> list;

  void Take(dnnl::primitive made, const memory::desc& scratchpad_desc, const dnnl::engine& engine,
            Scratch& scratch) {
    primitive = std::move(made);
    scratchpad = memory(scratchpad_desc, engine, nullptr);
    scratchpad_at = scratch.Reserve(scratchpad_desc.get_size());
    Add(DNNL_ARG_SCRATCHPAD, scratchpad);
  }
  void Add(int argument, const memory& value) { list.push_back({argument, value.get()}); }
  void Run(const KernelArgs& args, const dnnl::stream& stream) const {
    scratchpad.set_data_handle(static_cast<std::byte*>(args.scratch) + scratchpad_at);
    ExecuteAndWait(primitive, stream, list);
  }
};

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
    x_ = DescribeSide(plan_.x, engine_, true, scratch_);
    filter_ = DescribeSide(plan_.filter, engine_, true, scratch_);
    y_ = DescribeSide(plan_.y, engine_, false, scratch_);
    if (plan_.bias.slot >= 0) bias_ = DescribeSide(plan_.bias, engine_, true, scratch_);
    const memory::dims dilates = Gaps(plan_);
    if (plan_.transposed) {
      Make<dnnl::deconvolution_forward>(dnnl::algorithm::deconvolution_direct, dilates);
    } else {
      Make<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct, dilates);
    }
    call_.Add(DNNL_ARG_SRC, x_.bound);
    call_.Add(DNNL_ARG_WEIGHTS, filter_.bound);
    call_.Add(DNNL_ARG_DST, y_.bound);
    if (plan_.bias.slot >= 0) call_.Add(DNNL_ARG_BIAS, bias_.bound);
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }

  Status Run(const KernelArgs& args) override {
    if (plan_.y.elements == 0) return Status();
    const ThreadCount threads(plan_.threads);
    BindInput(x_, args);
    BindInput(filter_, args);
    if (plan_.bias.slot >= 0) BindInput(bias_, args);
    BindOutput(y_, args);
    NPUMESH_RETURN_IF_ERROR(Guarded(plan_.who, kWhat, [&] {
      call_.Run(args, stream_);
      return Status();
    }));
    StoreOutput(y_, args);
    return Status();
  }

 private:
  // `Forward` is oneDNN's convolution or deconvolution, which take the same arguments.
  template <typename Forward>
  void Make(dnnl::algorithm direct, const memory::dims& dilates) {
    constexpr auto kKind = dnnl::prop_kind::forward_inference;
    const memory::desc x = x_.bound.get_desc(), w = filter_.bound.get_desc(),
                       y = y_.bound.get_desc();
    const auto desc =
        plan_.bias.slot >= 0
            ? typename Forward::desc(kKind, direct, x, w, bias_.bound.get_desc(), y, plan_.strides,
                                     dilates, plan_.before, plan_.behind)
            : typename Forward::desc(kKind, direct, x, w, y, plan_.strides, dilates, plan_.before,
                                     plan_.behind);
    const typename Forward::primitive_desc chosen(desc, OurAttributes(), engine_);
    call_.Take(Forward(chosen), chosen.scratchpad_desc(), engine_, scratch_);
  }

  Convolution plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Side x_;
  Side filter_;
  Side bias_;
  Side y_;
  Call call_;
  Scratch scratch_;
};

class FilterGradientKernel final : public Kernel {
 public:
  explicit FilterGradientKernel(Convolution plan)
      : plan_(std::move(plan)), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  // Throws what oneDNN throws.
  void Prepare() {
    const ThreadCount threads(plan_.threads);
    x_ = DescribeSide(plan_.x, engine_, true, scratch_);
    y_ = DescribeSide(plan_.y, engine_, true, scratch_);
    filter_ = DescribeSide(plan_.filter, engine_, false, scratch_);
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
    const Forward::primitive_desc hint(forward, OurAttributes(), engine_);
    const Backward::primitive_desc chosen(backward, OurAttributes(), engine_, hint);
    call_.Take(Backward(chosen), chosen.scratchpad_desc(), engine_, scratch_);
    call_.Add(DNNL_ARG_SRC, x_.bound);
    call_.Add(DNNL_ARG_DIFF_DST, y_.bound);
    call_.Add(DNNL_ARG_DIFF_WEIGHTS, filter_.bound);
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }

  Status Run(const KernelArgs& args) override {
    const ThreadCount threads(plan_.threads);
    BindInput(x_, args);
    BindInput(y_, args);
    BindOutput(filter_, args);
    NPUMESH_RETURN_IF_ERROR(Guarded(plan_.who, kWhat, [&] {
      call_.Run(args, stream_);
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
  Call call_;
  Scratch scratch_;
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
