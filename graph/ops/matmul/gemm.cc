// GEMM: y = alpha * a b + beta * c, as BLAS has it.
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/product_plan.h"

namespace npumesh {
namespace {

struct GemmPlan : ProductPlan {
  int64_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::kUndefined;         // of a and b
  DataType result_dtype = DataType::kUndefined;  // of c, alpha, beta and y
  bool a_transposed = false, b_transposed = false;
};

bool Multiplies(DataType operand, DataType result) {
  if (operand == DataType::kInt8) return result == DataType::kInt32 || result == DataType::kFloat;
  return result == operand || result == DataType::kFloat;
}

GemmPlan PlanGemm(const OpContext& op, Check& check) {
  const TypeSet operands = kFloats | DataType::kInt8;
  const auto [a_height, a_width] = check.Matrix("a", operands);
  const auto [b_height, b_width] = check.Matrix("b", operands);
  check.SameType("a", "b");
  GemmPlan plan;
  plan.a_transposed = op.attr_bool("transpose_a");
  plan.b_transposed = op.attr_bool("transpose_b");
  plan.m = plan.a_transposed ? a_width : a_height;
  plan.k = plan.a_transposed ? a_height : a_width;
  plan.n = plan.b_transposed ? b_height : b_width;
  const int64_t b_depth = plan.b_transposed ? b_width : b_height;
  check.That(plan.k == b_depth, "a {}{} and b {}{} cannot be multiplied", op.in("a").shape,
             plan.a_transposed ? " transposed" : "", op.in("b").shape,
             plan.b_transposed ? " transposed" : "");
  plan.dtype = op.in("a").dtype;
  plan.result_dtype = op.in("c").dtype;
  check.Supported(Multiplies(plan.dtype, plan.result_dtype), "products of {} that are {}",
                  Name(plan.dtype), Name(plan.result_dtype));
  check.Shape("c", {plan.m, plan.n});
  for (const char* factor : {"alpha", "beta"}) {
    check.SameType(factor, "c");
    check.Elements(factor, {1});
  }
  plan.TakeProduct(op, plan.k, plan.dtype == DataType::kInt8);
  plan.outputs = {{plan.result_dtype, {plan.m, plan.n}}};
  return plan;
}

// Modulo 2^32, as integer products are.
int32_t Combined(int32_t alpha, int32_t sum, int32_t beta, int32_t c) {
  const auto bits = [](int32_t value) { return static_cast<uint32_t>(value); };
  return static_cast<int32_t>(bits(alpha) * bits(sum) + bits(beta) * bits(c));
}

void StoreIntegers(const KernelArgs& args, int64_t at, const SumSegment& segment) {
  const auto* c = static_cast<const int32_t*>(args.in[2]) + at;
  const int32_t alpha = *static_cast<const int32_t*>(args.in[3]);
  const int32_t beta = *static_cast<const int32_t*>(args.in[4]);
  auto* y = static_cast<int32_t*>(args.out[0]) + at;
  for (int64_t i = 0; i < segment.count; ++i) {
    y[i] = Combined(alpha, segment.integers[i], beta, c[i]);
  }
}

void StoreFloats(const GemmPlan& plan, const KernelArgs& args, int64_t at,
                 const SumSegment& segment) {
  float alpha = 0, beta = 0;
  LoadNumbers(plan.result_dtype, args.in[3], 0, 1, &alpha);
  LoadNumbers(plan.result_dtype, args.in[4], 0, 1, &beta);
  float *c = plan.factors(args), *y = plan.results(args);
  LoadNumbers(plan.result_dtype, args.in[2], at, segment.count, c);
  for (int64_t i = 0; i < segment.count; ++i) {
    const float sum =
        segment.integers != nullptr ? static_cast<float>(segment.integers[i]) : segment.floats[i];
    y[i] = alpha * sum + beta * c[i];
  }
  StoreNumbers(plan.result_dtype, y, args.out[0], at, segment.count);
}

Status RunGemm(const GemmPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const StoredMatrix a{plan.dtype, args.in[0], 0, plan.a_transposed};
  const StoredMatrix b{plan.dtype, args.in[1], 0, plan.b_transposed};
  return plan.product.Run(args, plan.m, plan.n, a, b, {}, [&](const SumSegment& segment) {
    const int64_t at = segment.row * plan.n + segment.first;
    if (plan.result_dtype == DataType::kInt32) {
      StoreIntegers(args, at, segment);
    } else {
      StoreFloats(plan, args, at, segment);
    }
  });
}

}  // namespace

void RegisterGemmOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanGemm, RunGemm>(
      "GEMM(a, b, c, alpha, beta; transpose_a=false, transpose_b=false) -> y"));
}

}  // namespace npumesh
