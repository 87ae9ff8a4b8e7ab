// FFN: two products with an activation between them, for all rows or for each expert's.
//
// Sums are float32; what the activation gives is rounded to the type of x, which is what the second
// product multiplies. In the forms that end in "glu" the first half of the first product is
// multiplied by the activation of the second one.
#include <algorithm>
#include <string>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// x[m, k] w[k, n] + bias, with weights and bias for each expert one after the other.
struct Layer {
  int w = -1;
  int64_t k = 0, n = 0;
  Dequant bias;  // adds it, and nothing else
  BlockedProduct product;
};

struct NamedActivation {
  std::string_view name;
  Activation activation = Activation::kNone;
  bool gated = false;
};
constexpr NamedActivation kActivations[] = {
    {"relu", Activation::kRelu, false},         {"gelu", Activation::kGelu, false},
    {"fastgelu", Activation::kFastGelu, false}, {"silu", Activation::kSilu, false},
    {"geglu", Activation::kGelu, true},         {"swiglu", Activation::kSilu, true},
    {"reglu", Activation::kRelu, true}};

struct FfnPlan : ProductPlan {
  int64_t m = 0;
  GroupRows tokens;  // rows of each expert; absent: all rows are of one
  NamedActivation between;
  DataType dtype = DataType::kUndefined;
  Layer first, second;
  Workspace<float> sums, hidden;  // the first product of an expert, and what its activation gives
};

void ReadActivation(Check& check, const OpContext& op, FfnPlan& plan) {
  check.OneOf("activation", {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"});
  const std::string name = op.attr_string("activation");
  for (const NamedActivation& row : kActivations) {
    if (row.name == name) plan.between = row;
  }
}

Layer ReadLayer(Check& check, const OpContext& op, std::string_view weight, std::string_view bias,
                const GroupRows& tokens) {
  const TensorType& w = op.in(weight);
  const int64_t experts = tokens.groups();
  const int front = tokens.given() ? 1 : 0;
  Layer layer;
  check.Rank(weight, w.dtype, 2 + front);
  if (!check.ok()) return layer;
  check.That(!tokens.given() || w.shape[0] == experts, "{} is {}, expected {} experts", weight, w,
             experts);
  layer.w = op.slot(weight);
  layer.k = w.shape[front];
  layer.n = w.shape[front + 1];
  layer.bias.before = FactorsOf(check, op, bias, {experts * layer.n});
  check.Type(bias, kFloats);
  layer.product = BlockedProduct(layer.k, false);
  return layer;
}

void ReadTypes(Check& check, const OpContext& op, FfnPlan& plan) {
  check.NotFed({"scale", "offset", "deq_scale1", "deq_scale2", "antiquant_scale1",
                "antiquant_scale2", "antiquant_offset1", "antiquant_offset2"});
  const DataType x = op.in("x").dtype, first = op.in("weight1").dtype,
                 second = op.in("weight2").dtype;
  check.Supported(kFloats.Contains(x) && first == x && second == x,
                  "x is {}, weight1 {} and weight2 {}, expected {}, the same", Name(x), Name(first),
                  Name(second), kFloats);
  check.Only("output_dtype", -1);
  plan.dtype = x;
}

FfnPlan PlanFfn(const OpContext& op, Check& check) {
  FfnPlan plan;
  ReadTypes(check, op, plan);
  ReadActivation(check, op, plan);
  check.RankAtLeast("x", kFloats, 2);
  if (!check.ok()) return plan;
  const TensorType& x = op.in("x");
  const int last = x.shape.rank() - 1;
  plan.m = ElementsBetween(x.shape, 0, last);
  const bool sums = op.attr_bool("tokens_index_flag");
  plan.tokens = check.Take(GroupRows::Of(op, "expert_tokens", !sums, plan.m));
  plan.first = ReadLayer(check, op, "weight1", "bias1", plan.tokens);
  plan.second = ReadLayer(check, op, "weight2", "bias2", plan.tokens);
  const int64_t halves = plan.between.gated ? 2 : 1;
  check.That(x.shape[last] == plan.first.k && plan.first.n == halves * plan.second.k,
             "x is {}, weight1 {} and weight2 {}; expected matching sizes, {} times the rows of "
             "weight2 in the columns of weight1",
             x, op.in("weight1"), op.in("weight2"), halves);
  plan.outputs = {{x.dtype, WithLast(x.shape, plan.second.n)}};
  plan.TakeRoom(op,
                std::max(plan.first.product.scratch_bytes(), plan.second.product.scratch_bytes()));
  plan.sums = plan.scratch.Floats(plan.m * plan.first.n);
  plan.hidden = plan.scratch.Floats(plan.m * plan.second.k);
  return plan;
}

// The sums become plan.hidden, in the type of x.
void Activate(const FfnPlan& plan, const KernelArgs& args, int64_t rows) {
  const int64_t n = plan.second.k;
  const auto [name, activation, gated] = plan.between;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = plan.sums(args) + r * plan.first.n;
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<double>(row[gated ? n + i : i]);
      const double activated = Activated(activation, v);
      row[i] = static_cast<float>(gated ? static_cast<double>(row[i]) * activated : activated);
    }
    StoreRow(plan.dtype, row, plan.hidden(args), r * n, n);
  }
}

Status RunExpert(const FfnPlan& plan, const KernelArgs& args, int64_t expert, int64_t begin,
                 int64_t end) {
  const Layer &first = plan.first, &second = plan.second;
  float *sums = plan.sums(args), *factors = plan.factors(args), *results = plan.results(args);
  const auto weights = [&](const Layer& layer) {
    return StoredMatrix{plan.dtype, args.in[layer.w], expert * layer.k * layer.n};
  };
  const int64_t experts = plan.tokens.groups();
  const Dequant first_bias = first.bias.Part(expert, experts);
  const Dequant second_bias = second.bias.Part(expert, experts);
  const auto keep = [&](const SumSegment& segment) {
    first_bias.Apply(args, segment, factors, sums + segment.row * first.n + segment.first);
  };
  NPUMESH_RETURN_IF_ERROR(first.product.Run(args, end - begin, first.n,
                                            {plan.dtype, args.in[0], begin * first.k},
                                            weights(first), {}, keep));
  Activate(plan, args, end - begin);
  const auto store = [&](const SumSegment& segment) {
    second_bias.Apply(args, segment, factors, results);
    StoreRow(plan.dtype, results, args.out[0], (begin + segment.row) * second.n + segment.first,
             segment.count);
  };
  return second.product.Run(args, end - begin, second.n, {plan.dtype, plan.hidden(args)},
                            weights(second), {}, store);
}

Status RunFfn(const FfnPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  NPUMESH_ASSIGN_OR_RETURN(const int64_t done, plan.tokens.Run(plan, args, RunExpert));
  if (done == plan.m) return Status();
  return Error(Code::kInvalidArgument, "{}: expert_tokens are {} rows together, x has {}", plan.who,
               done, plan.m);
}

}  // namespace

void RegisterFfnOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanFfn, RunFfn>(
      "FFN(x, weight1, weight2, expert_tokens?, bias1?, bias2?, scale?, offset?, deq_scale1?, "
      "deq_scale2?, antiquant_scale1?, antiquant_scale2?, antiquant_offset1?, antiquant_offset2?; "
      "activation:string, inner_precise=0, output_dtype=-1, tokens_index_flag=false) -> y"));
}

}  // namespace npumesh
