// The activations of ops reference 5.3.
#include "graph/ops/cast.h"
#include "graph/ops/elementwise.h"

namespace npumesh {
namespace {

const std::vector<PortSpec> kOne = {{"x"}};

Result<Formula> ChooseGelu(const OpContext& context) {
  const std::string approximate = context.attr_string("approximate");
  if (approximate == "none") return Formula::kGeluErf;
  if (approximate == "tanh") return Formula::kGeluTanh;
  return Error(Code::kInvalidArgument,
               "{}: attribute \"approximate\" is \"{}\"; expected \"none\" or \"tanh\"",
               context.Who(), approximate);
}

// Dimensions of x around the halved axis: [outer, 2 * half, inner]; a half is contiguous.
struct Halves {
  int axis = 0;
  int64_t outer = 1;
  int64_t run = 1;  // elements of one half: half * inner
};

Result<Halves> HalvesOf(const OpContext& context) {
  const TensorType& x = context.in(0);
  Result<int> axis = NormalizeAxis(context.attr_int("dim"), x.shape.rank());
  if (!axis.ok()) {
    return axis.status().WithContext(
        fmt::format("{}: attribute \"dim\" for x {}", context.Who(), x.ToString()));
  }
  if (x.shape[*axis] % 2 != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: dimension {} of x {} is {}; expected an even size to split into halves",
                 context.Who(), *axis, x.ToString(), x.shape[*axis]);
  }
  Halves halves;
  halves.axis = *axis;
  for (int i = 0; i < *axis; ++i) halves.outer *= x.shape[i];
  for (int i = *axis; i < x.shape.rank(); ++i) halves.run *= x.shape[i];
  halves.run /= 2;
  return halves;
}

Status InferSwiGlu(OpContext& context) {
  const TensorType& x = context.in(0);
  if (ComputeTypeOf(x.dtype) != DataType::kFloat) {
    return Error(Code::kUnsupported, "{}: x is {}; expected float16, bfloat16 or float32",
                 context.Who(), x.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const Halves halves, HalvesOf(context));
  TensorType y = x;
  y.shape[halves.axis] /= 2;
  context.set_out(0, std::move(y));
  return Status();
}

class SwiGluKernel final : public Kernel {
 public:
  SwiGluKernel(const Halves& halves, DataType dtype)
      : halves_(halves),
        width_(static_cast<size_t>(BitsOf(dtype)) / 8),
        widen_(FindConvert(dtype, DataType::kFloat)),
        narrow_(FindConvert(DataType::kFloat, dtype)),
        formula_(FloatBlock(Formula::kSwiGlu)) {}

  Status Run(const KernelArgs& args) override {
    const std::byte* x = static_cast<const std::byte*>(args.in[0]);
    std::byte* y = static_cast<std::byte*>(args.out[0]);
    const size_t run = static_cast<size_t>(halves_.run);
    for (int64_t outer = 0; outer < halves_.outer; ++outer) {
      for (size_t begin = 0; begin < run; begin += kBlockElements) {
        const size_t count = std::min(kBlockElements, run - begin);
        Block(x + begin * width_, x + (run + begin) * width_, y + begin * width_, count);
      }
      x += 2 * run * width_;
      y += run * width_;
    }
    return Status();
  }

 private:
  void Block(const std::byte* a, const std::byte* b, std::byte* y, size_t count) const {
    alignas(64) float gate[kBlockElements];
    alignas(64) float value[kBlockElements];
    widen_(a, gate, count);
    widen_(b, value, count);
    const void* in[] = {gate, value};
    formula_(in, gate, count, {});
    narrow_(gate, y, count);
  }

  Halves halves_;
  size_t width_;
  ConvertFn widen_;
  ConvertFn narrow_;
  BlockFn formula_;
};

Result<std::unique_ptr<Kernel>> MakeSwiGlu(const OpContext& context) {
  NPUMESH_ASSIGN_OR_RETURN(const Halves halves, HalvesOf(context));
  return std::unique_ptr<Kernel>(std::make_unique<SwiGluKernel>(halves, context.in(0).dtype));
}

}  // namespace

void RegisterActivationOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Relu", Formula::kRelu, kOne},
      {"Sigmoid", Formula::kSigmoid, kOne},
      {"Tanh", Formula::kTanh, kOne},
      {"Gelu", Formula::kGeluTanh, kOne},
      {"GeluV2",
       Formula::kGeluErf,
       kOne,
       ResultRule::kSame,
       {{"approximate", AttrValue::String("none")}},
       ChooseGelu},
      {"FastGelu", Formula::kFastGelu, kOne},
      {"Swish", Formula::kSwish, kOne, ResultRule::kSame, {{"scale", AttrValue::Float(1.0f)}}},
  };
  for (const ElementwiseSpec& spec : specs) RegisterElementwise(registry, spec);

  Operator swiglu;
  swiglu.schema = {"SwiGlu", {{"x"}}, {{"y"}}, {{"dim", AttrValue::Int(-1)}}};
  swiglu.infer = InferSwiGlu;
  swiglu.make_kernel = MakeSwiGlu;
  registry.Add(std::move(swiglu));
}

}  // namespace npumesh
