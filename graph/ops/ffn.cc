// FFN: two products with an activation between them, for all rows or for each expert's. Ops
// reference 5.6.
//
// Sums are float32; what the activation gives is rounded to the type of x, which is what the second
// product multiplies. In the forms that end in "glu" the first half of the first product is
// multiplied by the activation of the second one. gelu is the form with tanh.
#include <algorithm>
#include <cmath>

#include "graph/ops/blocked_product.h"
#include "graph/ops/expert_families.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

enum class Activation : uint8_t { kRelu, kGelu, kFastGelu, kSilu };

// x[m, k] w[k, n] + bias, with weights and bias for each expert one behind the other.
struct Layer {
  int w = -1;
  int64_t k = 0;
  int64_t n = 0;
  Factors bias;
};

struct Ffn {
  int64_t m = 0;
  int64_t experts = 1;
  int tokens = -1;    // slot of expert_tokens; -1: all rows are of one expert
  bool sums = false;  // it holds prefix sums
  bool gated = false;
  Activation activation = Activation::kRelu;
  DataType dtype = DataType::kUndefined;
  Layer first;
  Layer second;

  // Columns between the layers.
  int64_t hidden() const { return second.k; }
};

Status ReadActivation(const OpContext& op, Ffn& plan) {
  std::string name = op.attr_string("activation");
  plan.gated = name == "geglu" || name == "swiglu" || name == "reglu";
  if (name == "relu" || name == "reglu") {
    plan.activation = Activation::kRelu;
  } else if (name == "gelu" || name == "geglu") {
    plan.activation = Activation::kGelu;
  } else if (name == "fastgelu") {
    plan.activation = Activation::kFastGelu;
  } else if (name == "silu" || name == "swiglu") {
    plan.activation = Activation::kSilu;
  } else {
    return Error(
        Code::kInvalidArgument,
        "{}: activation \"{}\", expected relu, gelu, fastgelu, silu, geglu, swiglu or reglu",
        op.Who(), name);
  }
  return Status();
}

Result<Layer> ReadLayer(const OpContext& op, std::string_view weight, std::string_view bias,
                        int64_t experts, bool stacked) {
  const TensorType& w = op.in(weight);
  Layer layer;
  layer.w = op.slot(weight);
  NPUMESH_ASSIGN_OR_RETURN(layer.bias, Factors::Of(op, bias));
  const int front = stacked ? 1 : 0;
  if (w.shape.rank() == 2 + front && (!stacked || w.shape[0] == experts)) {
    layer.k = w.shape[front];
    layer.n = w.shape[front + 1];
    if (!layer.bias.given() ||
        (layer.bias.count() == experts * layer.n && IsRowType(layer.bias.dtype()))) {
      return layer;
    }
  }
  return Error(Code::kInvalidArgument, "{}: {} is {} and {} has {} elements for {} experts",
               op.Who(), weight, w.ToString(), bias, layer.bias.count(), experts);
}

Result<Ffn> PlanFfn(const OpContext& op) {
  for (const std::string_view port :
       {"scale", "offset", "deq_scale1", "deq_scale2", "antiquant_scale1", "antiquant_scale2",
        "antiquant_offset1", "antiquant_offset2"}) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: the input \"{}\" is not supported", op.Who(), port);
  }
  Ffn plan;
  const TensorType& x = op.in("x");
  plan.dtype = x.dtype;
  if (!IsRowType(x.dtype) || op.in("weight1").dtype != x.dtype ||
      op.in("weight2").dtype != x.dtype || op.attr_int("output_dtype") != -1) {
    return Error(Code::kUnsupported,
                 "{}: x is {}, weight1 {}, weight2 {} and output_dtype {}; expected one float type "
                 "and -1",
                 op.Who(), Name(x.dtype), Name(op.in("weight1").dtype),
                 Name(op.in("weight2").dtype), op.attr_int("output_dtype"));
  }
  NPUMESH_RETURN_IF_ERROR(ReadActivation(op, plan));
  plan.tokens = SlotIfFed(op, "expert_tokens");
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, plan.tokens));
  plan.sums = op.attr_bool("tokens_index_flag");
  const bool stacked = plan.tokens >= 0;
  if (stacked) plan.experts = op.in(plan.tokens).shape.elements();
  NPUMESH_ASSIGN_OR_RETURN(plan.first, ReadLayer(op, "weight1", "bias1", plan.experts, stacked));
  NPUMESH_ASSIGN_OR_RETURN(plan.second, ReadLayer(op, "weight2", "bias2", plan.experts, stacked));
  const int rank = x.shape.rank();
  const int64_t halves = plan.gated ? 2 : 1;
  if (rank >= 2 && x.shape[rank - 1] == plan.first.k && plan.first.n == halves * plan.second.k) {
    plan.m = ElementsBetween(x.shape, 0, rank - 1);
    return plan;
  }
  return Error(Code::kInvalidArgument,
               "{}: x is {}, weight1 {} and weight2 {}; expected matching sizes, {} times the rows "
               "of weight2 in the columns of weight1",
               op.Who(), x.ToString(), op.in("weight1").ToString(), op.in("weight2").ToString(),
               halves);
}

Status InferFfn(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Ffn plan, PlanFfn(op));
  Shape y = op.in("x").shape;
  y.mutable_dims().back() = plan.second.n;
  return SetOutput(op, 0, plan.dtype, y);
}

double Activated(Activation activation, double v) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(v, 0.0);
    case Activation::kGelu:
      return v / (1 + std::exp(-2 * 0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case Activation::kFastGelu:
      return v * std::exp(0.851 * (v - std::fabs(v))) / (1 + std::exp(-1.702 * std::fabs(v)));
    case Activation::kSilu:
      break;
  }
  return v / (1 + std::exp(-v));
}

// Scratch: a product, the first one's sums of one expert, and what its activation gives.
class FfnKernel final : public Kernel {
 public:
  FfnKernel(const OpContext& op, Ffn plan)
      : who_(op.Who()),
        plan_(std::move(plan)),
        x_(op.slot("x")),
        token_dtype_(plan_.tokens < 0 ? DataType::kInt64 : op.in(plan_.tokens).dtype),
        first_(plan_.first.k, false),
        second_(plan_.second.k, false),
        threads_(op.threads()) {}

  uint64_t scratch_bytes() const override {
    const int64_t floats = plan_.m * (plan_.first.n + plan_.hidden()) + 2 * kBlockColumns;
    return product_bytes() + static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    int64_t row = 0;
    for (int64_t expert = 0; expert < plan_.experts; ++expert) {
      int64_t count = plan_.m;
      if (plan_.tokens >= 0) {
        count = IntegerAt(token_dtype_, args.in[plan_.tokens], expert) - (plan_.sums ? row : 0);
      }
      if (count < 0 || count > plan_.m - row) {
        return Error(Code::kInvalidArgument,
                     "{}: entry {} of expert_tokens gives {} rows to an expert after {}, there are "
                     "{}",
                     who_, expert, count, row, plan_.m);
      }
      if (count > 0) NPUMESH_RETURN_IF_ERROR(RunExpert(args, expert, row, count));
      row += count;
    }
    if (row == plan_.m) return Status();
    return Error(Code::kInvalidArgument, "{}: expert_tokens are {} rows together, x has {}", who_,
                 row, plan_.m);
  }

 private:
  uint64_t product_bytes() const {
    return std::max(first_.scratch_bytes(), second_.scratch_bytes());
  }

  Status RunExpert(const KernelArgs& args, int64_t expert, int64_t row, int64_t count) const {
    auto* const sums =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_bytes());
    float* const hidden = sums + plan_.m * plan_.first.n;
    float* const factors = hidden + plan_.m * plan_.hidden();
    const auto keep = [&](const SumSegment& segment) {
      AddBias(args, plan_.first, expert, segment, factors,
              sums + segment.row * plan_.first.n + segment.first);
    };
    NPUMESH_RETURN_IF_ERROR(first_.Run(args, count, plan_.first.n,
                                       {plan_.dtype, args.in[x_], row * plan_.first.k},
                                       Weights(args, plan_.first, expert), {}, keep));
    Activate(count, sums, hidden);
    float* const results = factors + kBlockColumns;
    const auto store = [&](const SumSegment& segment) {
      AddBias(args, plan_.second, expert, segment, factors, results);
      StoreRow(plan_.dtype, results, args.out[0],
               (row + segment.row) * plan_.second.n + segment.first, segment.count);
    };
    return second_.Run(args, count, plan_.second.n, {plan_.dtype, hidden},
                       Weights(args, plan_.second, expert), {}, store);
  }

  StoredMatrix Weights(const KernelArgs& args, const Layer& layer, int64_t expert) const {
    return {plan_.dtype, args.in[layer.w], expert * layer.k * layer.n};
  }

  static void AddBias(const KernelArgs& args, const Layer& layer, int64_t expert,
                      const SumSegment& segment, float* room, float* to) {
    std::copy_n(segment.floats, segment.count, to);
    if (!layer.bias.given()) return;
    layer.bias.Load(args, expert * layer.n + segment.first, segment.count, room);
    for (int64_t i = 0; i < segment.count; ++i) to[i] += room[i];
  }

  // Rounded to the type of x, at the beginning of `hidden`.
  void Activate(int64_t rows, float* sums, float* hidden) const {
    const int64_t n = plan_.hidden();
    for (int64_t r = 0; r < rows; ++r) {
      float* row = sums + r * plan_.first.n;
      for (int64_t i = 0; i < n; ++i) {
        const auto v = static_cast<double>(row[plan_.gated ? n + i : i]);
        const double activated = Activated(plan_.activation, v);
        row[i] =
            static_cast<float>(plan_.gated ? static_cast<double>(row[i]) * activated : activated);
      }
      StoreRow(plan_.dtype, row, hidden, r * n, n);
    }
  }

  std::string who_;
  Ffn plan_;
  int x_;
  DataType token_dtype_;
  BlockedProduct first_;
  BlockedProduct second_;
  int threads_;
};

Result<std::unique_ptr<Kernel>> MakeFfn(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Ffn plan, PlanFfn(op));
  return std::unique_ptr<Kernel>(std::make_unique<FfnKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterFfnOps(OpRegistry& registry) {
  OpSchema schema = {"FFN",
                     {{"x"}, {"weight1"}, {"weight2"}},
                     {{"y"}},
                     {{"activation", Required::kString},
                      {"inner_precise", AttrValue::Int(0)},
                      {"output_dtype", AttrValue::Int(-1)},
                      {"tokens_index_flag", AttrValue::Bool(false)}}};
  for (const std::string_view port :
       {"expert_tokens", "bias1", "bias2", "scale", "offset", "deq_scale1", "deq_scale2",
        "antiquant_scale1", "antiquant_scale2", "antiquant_offset1", "antiquant_offset2"}) {
    schema.inputs.push_back({port, PortKind::kOptional});
  }
  registry.Add({.schema = std::move(schema), .infer = InferFfn, .make_kernel = MakeFfn});
}

}  // namespace npumesh
