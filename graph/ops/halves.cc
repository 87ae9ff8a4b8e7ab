// Operators on the two halves of x along a dimension: GLU, GeGluV2 and the gradients of GLU and
// SwiGlu. Ops reference 5.3, 5.14 and 5.19. Computed in double and rounded once.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "graph/ops/cast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"

namespace npumesh {
namespace {

// `g` is an element of the incoming gradient (0 without one), `a` and `b` those of the halves.
// Gives the elements of output 0 and 1, or of the two halves of output 0.
using HalvesFormula = std::array<double, 2> (*)(double g, double a, double b);

struct HalvesRow {
  std::string_view type;
  bool gradient;  // inputs y_grad and x, output in the shape of x
  std::vector<PortSpec> outputs;
  HalvesFormula (*choose)(const OpContext& op);
};

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double GeluTanh(double x) {
  constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return 0.5 * x * (1 + std::tanh(kRoot * (x + 0.044715 * x * x * x)));
}

double GeluErf(double x) {
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

template <double (*kGelu)(double), bool kLeft>
std::array<double, 2> GeGlu(double, double a, double b) {
  const double gelu = kGelu(kLeft ? a : b);
  return {gelu * (kLeft ? b : a), gelu};
}

HalvesFormula ChooseGlu(const OpContext&) {
  return [](double, double a, double b) -> std::array<double, 2> { return {a * Sigmoid(b), 0}; };
}

HalvesFormula ChooseGeGlu(const OpContext& op) {
  const bool left = op.attr_bool("activate_left");
  if (op.attr_int("approximate") == 0) return left ? GeGlu<GeluErf, true> : GeGlu<GeluErf, false>;
  return left ? GeGlu<GeluTanh, true> : GeGlu<GeluTanh, false>;
}

HalvesFormula ChooseGluGrad(const OpContext&) {
  return [](double g, double a, double b) -> std::array<double, 2> {
    const double s = Sigmoid(b);
    return {g * s, g * a * s * (1 - s)};
  };
}

HalvesFormula ChooseSwiGluGrad(const OpContext&) {
  return [](double g, double a, double b) -> std::array<double, 2> {
    const double s = Sigmoid(a);
    return {g * b * s * (1 + a * (1 - s)), g * a * s};
  };
}

const HalvesRow kRows[] = {
    {"GLU", false, {{"y"}}, ChooseGlu},
    {"GeGluV2", false, {{"y"}, {"gelu"}}, ChooseGeGlu},
    {"GLUGrad", true, {{"x_grad"}}, ChooseGluGrad},
    {"SwiGluGrad", true, {{"y"}}, ChooseSwiGluGrad},
};

// x as [outer, 2, run]: a row of one half, then one of the other.
struct Halves {
  int64_t outer = 1;
  int64_t run = 0;
  Shape half;
};

Result<Halves> HalvesOf(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("dim"), x.rank(), "dim"));
  if (x[axis] % 2 != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: dimension {} of x {} is odd; expected an even size to split into halves",
                 op.Who(), axis, x.ToString());
  }
  Halves halves{ElementsBetween(x, 0, axis), ElementsBetween(x, axis, x.rank()) / 2, x};
  halves.half[axis] /= 2;
  return halves;
}

Status InferHalves(OpContext& op, const HalvesRow& row) {
  const TensorType& x = op.in("x");
  if (!IsFloating(x.dtype) || FindConvert(x.dtype, DataType::kDouble) == nullptr) {
    return Error(Code::kUnsupported, "{}: x is {}, expected a floating type", op.Who(),
                 x.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const Halves halves, HalvesOf(op));
  if (row.gradient && op.in("y_grad") != TensorType{x.dtype, halves.half}) {
    return Error(Code::kInvalidArgument, "{}: \"y_grad\" is {}, expected a half of x {}", op.Who(),
                 op.in("y_grad").ToString(), x.ToString());
  }
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(
        SetOutput(op, static_cast<int>(i), x.dtype, row.gradient ? x.shape : halves.half));
  }
  return Status();
}

class HalvesKernel final : public Kernel {
 public:
  HalvesKernel(const OpContext& op, const HalvesRow& row, const Halves& halves)
      : formula_(row.choose(op)),
        halves_(halves),
        outputs_(row.outputs.size()),
        x_slot_(op.slot("x")),
        grad_slot_(row.gradient ? op.slot("y_grad") : -1),
        load_(FindConvert(op.in("x").dtype, DataType::kDouble)),
        store_(FindConvert(DataType::kDouble, op.in("x").dtype)),
        x_(static_cast<size_t>(op.in("x").shape.elements())),
        grad_(grad_slot_ < 0 ? 0 : x_.size() / 2),
        first_(row.gradient ? x_.size() : x_.size() / 2),
        second_(outputs_ == 2 ? x_.size() / 2 : 0) {}

  Status Run(const KernelArgs& args) override {
    load_(args.in[x_slot_], x_.data(), x_.size());
    if (grad_slot_ >= 0) load_(args.in[grad_slot_], grad_.data(), grad_.size());
    const auto run = static_cast<size_t>(halves_.run);
    for (size_t outer = 0; outer < static_cast<size_t>(halves_.outer); ++outer) {
      for (size_t i = 0; i < run; ++i) {
        const size_t a = 2 * outer * run + i, half = outer * run + i;
        const double g = grad_slot_ >= 0 ? grad_[half] : 0;
        const std::array<double, 2> result = formula_(g, x_[a], x_[a + run]);
        first_[grad_slot_ >= 0 ? a : half] = result[0];
        if (grad_slot_ >= 0) first_[a + run] = result[1];
        if (outputs_ == 2) second_[half] = result[1];
      }
    }
    store_(first_.data(), args.out[0], first_.size());
    if (outputs_ == 2) store_(second_.data(), args.out[1], second_.size());
    return Status();
  }

 private:
  HalvesFormula formula_;
  Halves halves_;
  size_t outputs_;
  int x_slot_;
  int grad_slot_;  // -1: not a gradient
  ConvertFn load_;
  ConvertFn store_;
  std::vector<double> x_;
  std::vector<double> grad_;
  std::vector<double> first_;
  std::vector<double> second_;
};

Result<std::unique_ptr<Kernel>> MakeHalves(const OpContext& op, const HalvesRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const Halves halves, HalvesOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<HalvesKernel>(op, row, halves));
}

}  // namespace

void RegisterHalvesOps(OpRegistry& registry) {
  for (const HalvesRow& row : kRows) {
    OpSchema schema = {row.type, {}, row.outputs, {{"dim", AttrValue::Int(-1)}}};
    if (row.gradient) schema.inputs.push_back({"y_grad"});
    schema.inputs.push_back({"x"});
    if (row.outputs.size() == 2) {
      schema.attrs.push_back({"approximate", AttrValue::Int(1)});
      schema.attrs.push_back({"activate_left", AttrValue::Bool(false)});
    }
    registry.Add({.schema = std::move(schema),
                  .infer = [&row](OpContext& op) { return InferHalves(op, row); },
                  .make_kernel = [&row](const OpContext& op) { return MakeHalves(op, row); }});
  }
}

}  // namespace npumesh
