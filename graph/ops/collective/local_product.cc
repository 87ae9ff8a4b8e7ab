#include "graph/ops/collective/local_product.h"

#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/product/scaled_matmul.h"
#include "runtime/base/parse.h"

namespace npumesh {
namespace fused {

Result<Local> PlanLocal(const OpContext& op, const LocalForm& form) {
  const TensorType &x1 = op.in("x1"), &x2 = op.in("x2");
  Local plan;
  plan.x = op.slot("x1");
  plan.w = op.slot("x2");
  plan.x_dtype = x1.dtype;
  plan.w_dtype = x2.dtype;
  plan.w_value = op.value(plan.w);
  plan.transposed_x = op.attr_bool(form.transposed1);
  plan.transposed_w = op.attr_bool(form.transposed2);
  const int rank = x1.shape.rank();
  bool fits = rank >= 2 && rank <= 3 && x2.shape.rank() == 2 && !(plan.transposed_x && rank == 3);
  if (fits) {
    plan.front.assign(x1.shape.dims().begin(), x1.shape.dims().end() - 1);
    plan.m = ElementsBetween(x1.shape, 0, rank - 1);
    plan.k = x1.shape[rank - 1];
    if (plan.transposed_x) std::swap(plan.m, plan.k);
    if (plan.transposed_x) plan.front = {plan.m};
    plan.k *= form.joined;
    plan.n = x2.shape[plan.transposed_w ? 0 : 1];
    fits = plan.k == x2.shape[plan.transposed_w ? 1 : 0];
  }
  Check check(op);
  check.That(fits, "x1 {}{}{} and x2 {}{} cannot be multiplied", x1,
             plan.transposed_x ? " transposed" : "",
             form.joined == 1 ? "" : fmt::format(" of {} ranks", form.joined), x2,
             plan.transposed_w ? " transposed" : "");
  plan.bias = check.Take(Factors::Of(op, "bias"));
  check.Keep(CheckFactors(op, plan.bias, "bias", plan.n));
  return check.Done(std::move(plan));
}

Status ExpectFloats(const OpContext& op) {
  Check check(op);
  check.Keep(ExpectSameDtype(op, op.slot("x1"), op.slot("x2")));
  const DataType x1 = op.in("x1").dtype;
  check.Supported(kFloats.Contains(x1), "x1 is {}, expected {}", Name(x1), kFloats);
  if (!op.has("bias")) return check.status();
  const DataType bias = op.in("bias").dtype;
  check.Supported(kFloats.Contains(bias), "bias is {}, expected a float type", Name(bias));
  return check.status();
}

Result<DataType> FloatTypeOf(const OpContext& op, std::string_view attribute, DataType standard) {
  Check check(op);
  DataType dtype = standard;
  if (op.attr_int(attribute) != static_cast<int64_t>(DataType::kUndefined)) {
    dtype = check.Take(op.attr_dtype(attribute));
  }
  check.Supported(kFloats.Contains(dtype), "{} is {}, expected a float type", attribute,
                  Name(dtype));
  return check.Done(dtype);
}

namespace {

std::unique_ptr<Kernel> MakeScaledProduct(const OpContext& op, const Local& local, int64_t m,
                                          DataType y_dtype) {
  return MakeScaledMatmul({.x_slot = local.x,
                           .w_slot = local.w,
                           .row_scale_slot = local.row_scale,
                           .scale_of_rows = local.scale_of_rows,
                           .column_scale = local.column_scale,
                           .bias = local.bias,
                           .x_dtype = local.x_dtype,
                           .w_dtype = local.w_dtype,
                           .y_dtype = y_dtype,
                           .transposed_w = local.transposed_w,
                           .m = m,
                           .n = local.n,
                           .k = local.k,
                           .threads = op.threads()});
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const Local& local, int64_t m,
                                            DataType y_dtype) {
  if (m * local.n == 0) return std::unique_ptr<Kernel>();
  if (local.scaled()) return MakeScaledProduct(op, local, m, y_dtype);
  Matmul matmul;
  matmul.who = op.Who();
  matmul.x1 = {local.x, local.x_dtype, {}, local.transposed_x};
  matmul.x2 = {local.w, local.w_dtype, {}, local.transposed_w};
  if (local.bias.given()) matmul.bias = {local.bias.slot(), local.bias.dtype(), {}, false};
  matmul.y_dtype = y_dtype;
  matmul.m = m;
  matmul.n = local.n;
  matmul.k = local.k;
  matmul.x2_value = local.w_value;
  matmul.packed = op.packed();
  matmul.threads = op.threads();
  return MakeFloatMatmul(matmul);
}

void Products::Reserve(const OpContext& op, Planned* plan) {
  uint64_t most = 0;
  for (const auto& kernel : kernels_) {
    if (kernel == nullptr) continue;
    most = std::max(most, kernel->scratch_bytes());
    if (plan->choice.name.empty()) plan->choice = kernel->choice();
  }
  slots_ = static_cast<size_t>(op.slots());
  in_ = plan->scratch.Take<const void*>(op.slots());
  room_ = plan->scratch.Take<std::byte>(static_cast<int64_t>(most));
  for (int slot = 0; slot < op.slots(); ++slot) {
    const bool read = std::ranges::any_of(
        kernels_, [&](const auto& kernel) { return kernel == nullptr || kernel->reads(slot); });
    if (!read) plan->taken.push_back(slot);
  }
}

Status Products::Run(const KernelArgs& args, std::initializer_list<Input> parts, void* y,
                     size_t index) const {
  Kernel* const kernel = kernels_[index].get();
  if (kernel == nullptr) return Status();
  const void** const in = in_(args);
  std::copy_n(args.in, slots_, in);
  for (const Input& part : parts) in[part.slot] = part.address;
  return kernel->Run({in, &y, room_(args)});
}

Status ExpectSum(const OpContext& op) {
  const std::string reduction = op.attr_string("reduce_op");
  Check check(op);
  check.Supported(reduction == "sum", "reduce_op \"{}\", expected sum", reduction);
  return check.status();
}

namespace {

// An int, or a string of digits.
Result<int64_t> SizeIn(const OpContext& op, std::string_view attribute) {
  const AttrValue* const value = op.node().FindAttr(attribute);
  const auto* text = value != nullptr ? value->get<std::string>() : nullptr;
  if (text == nullptr) return op.attr_int(attribute);
  return ParseInt(*text, 0, INT32_MAX, fmt::format("{}: {}", op.Who(), attribute));
}

}  // namespace

Result<Ring> RingOf(const OpContext& op, std::string_view size) {
  Check check(op);
  const GroupProvider::Members members = check.Take(hcom::MembersOf(op));
  const Ring ring{static_cast<int64_t>(members.world_ranks.size()), members.rank};
  const int64_t told = check.Take(SizeIn(op, size));
  check.That(told == 0 || told == ring.ranks, "{} {}, but group \"{}\" has {} ranks", size, told,
             op.attr_string("group"), ring.ranks);
  return check.Done(ring);
}

}  // namespace fused

}  // namespace npumesh
