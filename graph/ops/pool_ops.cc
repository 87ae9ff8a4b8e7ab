// Pooling: MaxPool, MaxPoolV3, MaxPoolWithArgmaxV1, AvgPool, AvgPoolV2, AdaptiveAvgPool2d,
// GlobalAveragePool. Ops reference 5.8.
//
// Averages are computed in double and rounded once. A NaN in a window is its maximum.
#include <algorithm>
#include <limits>

#include "graph/ops/cast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/pool.h"

namespace npumesh {
namespace {

// ---- maximum ----

// Elements are compared as doubles, which is exact but for integers past 53 bits, and copied as
// they are.
class MaxPoolKernel final : public Kernel {
 public:
  MaxPoolKernel(const OpContext& op, PoolPlan plan)
      : plan_(std::move(plan)),
        load_(FindConvert(op.in(0).dtype, DataType::kDouble)),
        width_(static_cast<size_t>(BitsOf(op.in(0).dtype)) / 8),
        x_(static_cast<size_t>(op.in(0).shape.elements())) {
    if (op.outputs() > 1 && op.schema().outputs.size() > 1) {
      store_index_ = FindConvert(DataType::kInt64, op.out(1).dtype);
      places_.resize(static_cast<size_t>(op.out(1).shape.elements()));
    }
  }

  Status Run(const KernelArgs& args) override {
    load_(args.in[0], x_.data(), x_.size());
    const auto* from = static_cast<const std::byte*>(args.in[0]);
    auto* to = static_cast<std::byte*>(args.out[0]);
    size_t next = 0;
    ForOutputs(plan_, [&](int64_t outer, const Window& rows, const Window& columns, int64_t inner) {
      int64_t best = -1, best_place = 0;
      double most = 0;
      ForWindow(plan_, rows, columns, [&](int64_t r, int64_t c) {
        const int64_t element = ElementAt(plan_, outer, r, c, inner);
        const double value = x_[static_cast<size_t>(element)];
        if (best >= 0 && !(value > most) && !(value != value && most == most)) return;
        best = element;
        best_place = r * plan_.width + c;
        most = value;
      });
      std::copy_n(from + static_cast<size_t>(best) * width_, width_, to + next * width_);
      if (store_index_ != nullptr) places_[next] = best_place;
      ++next;
    });
    if (store_index_ != nullptr) store_index_(places_.data(), args.out[1], places_.size());
    return Status();
  }

 private:
  PoolPlan plan_;
  ConvertFn load_;
  size_t width_;
  std::vector<double> x_;
  ConvertFn store_index_ = nullptr;  // null: no second output
  std::vector<int64_t> places_;
};

Status InferMaxPool(OpContext& op) {
  const DataType dtype = op.in(0).dtype;
  if (dtype == DataType::kBool || FindConvert(dtype, DataType::kDouble) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for x {}", op.Who(), op.in(0).ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const PoolPlan plan, PlanPool(op, op.in(0).shape, 0));
  NPUMESH_RETURN_IF_ERROR(CheckTouched(op, plan.rows));
  NPUMESH_RETURN_IF_ERROR(CheckTouched(op, plan.columns));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dtype, plan.y));
  if (op.schema().outputs.size() == 1) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const DataType index, op.attr_dtype("dtype"));
  if (FindConvert(DataType::kInt64, index) == nullptr || !IsInteger(index)) {
    return Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected integers",
                 op.Who(), Name(index));
  }
  return SetOutput(op, 1, index, plan.y);
}

Result<std::unique_ptr<Kernel>> MakeMaxPool(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(PoolPlan plan, PlanPool(op, op.in(0).shape, 0));
  return std::unique_ptr<Kernel>(std::make_unique<MaxPoolKernel>(op, std::move(plan)));
}

// ---- average ----

Status InferAvgPool(OpContext& op) {
  const DataType dtype = op.in(0).dtype;
  if (!IsFloating(dtype) || FindConvert(dtype, DataType::kDouble) == nullptr) {
    return Error(Code::kUnsupported, "{}: x is {}, expected a floating type", op.Who(),
                 op.in(0).ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const PoolPlan plan, PlanPool(op, op.in(0).shape, 0));
  return SetOutput(op, 0, dtype, plan.y);
}

Result<std::unique_ptr<Kernel>> MakeAvgPool(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(PoolPlan plan, PlanPool(op, op.in(0).shape, 0));
  const DataType dtype = op.in(0).dtype;
  NPUMESH_RETURN_IF_ERROR(
      AskForLists(op, SumOfDims(Shape{op.in(0).shape.elements(), op.out(0).shape.elements()})));
  return MakeKernel([plan = std::move(plan), rule = AverageRuleOf(op),
                     load = FindConvert(dtype, DataType::kDouble),
                     store = FindConvert(DataType::kDouble, dtype),
                     x = std::vector<double>(static_cast<size_t>(op.in(0).shape.elements())),
                     y = std::vector<double>(static_cast<size_t>(op.out(0).shape.elements()))](
                        const KernelArgs& args) mutable {
    load(args.in[0], x.data(), x.size());
    size_t next = 0;
    ForOutputs(plan, [&](int64_t outer, const Window& rows, const Window& columns, int64_t inner) {
      double sum = 0;
      ForWindow(plan, rows, columns, [&](int64_t r, int64_t c) {
        sum += x[static_cast<size_t>(ElementAt(plan, outer, r, c, inner))];
      });
      y[next++] = sum / DivisorOf(plan, rule, rows, columns);
    });
    store(y.data(), args.out[0], y.size());
    return Status();
  });
}

}  // namespace

void RegisterPoolOps(OpRegistry& registry) {
  const AttrSpec ksize = {"ksize", Required::kInts}, strides = {"strides", Required::kInts};
  const std::vector<AttrSpec> short_attrs = {
      ksize, strides, {"padding", Required::kString}, {"data_format", AttrValue::String("NHWC")}};
  const std::vector<AttrSpec> max_attrs = {ksize,
                                           strides,
                                           {"padding_mode", AttrValue::String("CALCULATED")},
                                           {"pads", AttrValue::Ints({0, 0, 0, 0})},
                                           {"data_format", AttrValue::String("NCHW")},
                                           {"global_pooling", AttrValue::Bool(false)},
                                           {"ceil_mode", AttrValue::Bool(false)}};
  std::vector<AttrSpec> average_attrs = max_attrs;
  average_attrs.push_back({"exclusive", AttrValue::Bool(true)});
  average_attrs.push_back({"divisor_override", AttrValue::Int(0)});
  const auto add = [&](std::string_view type, const std::vector<AttrSpec>& attrs, bool largest,
                       const std::vector<PortSpec>& outputs) {
    registry.Add({.schema = {type, {{"x"}}, outputs, attrs},
                  .infer = largest ? InferMaxPool : InferAvgPool,
                  .make_kernel = largest ? MakeMaxPool : MakeAvgPool});
  };
  add("MaxPool", short_attrs, true, {{"y"}});
  add("MaxPoolV3", max_attrs, true, {{"y"}});
  add("MaxPoolWithArgmaxV1",
      {ksize,
       strides,
       {"pads", Required::kInts},
       {"dtype", AttrValue::Int(3)},
       {"dilation", AttrValue::Ints({1, 1, 1, 1})},
       {"ceil_mode", AttrValue::Bool(false)}},
      true, {{"y"}, {"argmax"}});
  add("AvgPool", short_attrs, false, {{"y"}});
  add("AvgPoolV2", average_attrs, false, {{"y"}});
  add("AdaptiveAvgPool2d", {{"output_size", Required::kInts}}, false, {{"y"}});
  add("GlobalAveragePool", {}, false, {{"y"}});
}

}  // namespace npumesh
