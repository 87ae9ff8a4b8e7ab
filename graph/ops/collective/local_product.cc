#include "graph/ops/collective/local_product.h"

#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "runtime/base/text/parse.h"

namespace npumesh::fused {

Local PlanLocal(const OpContext& op, Check& check, const LocalForm& form) {
  const TensorType &x = op.in(form.x), &w = op.in(form.w);
  Local plan;
  plan.x_slot = op.slot(form.x);
  plan.w_slot = op.slot(form.w);
  plan.x_dtype = x.dtype;
  plan.w_dtype = w.dtype;
  plan.w_value = form.packs ? op.value(plan.w_slot) : nullptr;
  plan.transposed_x = !form.transposed_x.empty() && op.attr_bool(form.transposed_x);
  plan.transposed_w = op.attr_bool(form.transposed_w);
  const int rank = x.shape.rank(), experts = form.experts;
  bool fits = rank >= 2 && rank <= form.most_rank && w.shape.rank() == 2 + experts &&
              !(plan.transposed_x && rank == 3);
  if (fits) {
    plan.m = ElementsBetween(x.shape, 0, rank - 1);
    plan.k = x.shape[rank - 1];
    if (plan.transposed_x) std::swap(plan.m, plan.k);
    plan.k *= form.joined;
    plan.n = w.shape[experts + (plan.transposed_w ? 0 : 1)];
    fits = plan.k == w.shape[experts + (plan.transposed_w ? 1 : 0)];
  }
  check.That(fits, "{} {}{}{} and {} {}{} cannot be multiplied", form.x, x,
             plan.transposed_x ? " transposed" : "",
             form.joined == 1 ? "" : fmt::format(" of {} ranks", form.joined), form.w, w,
             plan.transposed_w ? " transposed" : "");
  if (form.bias.empty()) return plan;
  plan.bias = check.Take(Factors::Of(op, form.bias));
  check.Keep(CheckFactors(op, plan.bias, form.bias, plan.n));
  return plan;
}

void ExpectFloats(const OpContext& op, Check& check) {
  check.Keep(ExpectSameDtype(op, op.slot("x1"), op.slot("x2")));
  const DataType x1 = op.in("x1").dtype;
  check.Supported(kFloats.Contains(x1), "x1 is {}, expected {}", Name(x1), kFloats);
  if (!op.has("bias")) return;
  const DataType bias = op.in("bias").dtype;
  check.Supported(kFloats.Contains(bias), "bias is {}, expected a float type", Name(bias));
}

DataType FloatTypeOf(const OpContext& op, std::string_view attribute, DataType standard,
                     Check& check) {
  const bool told = op.attr_int(attribute) != static_cast<int64_t>(DataType::kUndefined);
  const DataType dtype = told ? check.Take(op.attr_dtype(attribute)) : standard;
  check.Supported(kFloats.Contains(dtype), "{} is {}, expected a float type", attribute,
                  Name(dtype));
  return dtype;
}

void ExpectSum(const OpContext& op, Check& check) {
  const std::string reduction = op.attr_string("reduce_op");
  check.Supported(reduction == "sum", "reduce_op \"{}\", expected sum", reduction);
}

namespace {

// An int, or a string of digits.
Result<int64_t> SizeIn(const OpContext& op, std::string_view attribute) {
  const AttrValue* const value = op.node().FindAttr(attribute);
  const auto* text = value != nullptr ? value->get<std::string>() : nullptr;
  if (text == nullptr) return op.attr_int(attribute);
  return ParseInt(*text, 0, INT32_MAX, fmt::format("{}: {}", op.Who(), attribute));
}

// Null when it has no elements.
Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const Local& local, int64_t m,
                                            DataType y_dtype) {
  if (m * local.n == 0) return std::unique_ptr<Kernel>();
  if (local.scaled()) {
    ScaledMatmul scaled = local;
    scaled.m = m;
    scaled.y_dtype = y_dtype;
    scaled.threads = op.threads();
    return MakeScaledMatmul(scaled);
  }
  Matmul matmul;
  matmul.who = op.Who();
  matmul.x1 = {local.x_slot, local.x_dtype, {}, local.transposed_x};
  matmul.x2 = {local.w_slot, local.w_dtype, {}, local.transposed_w};
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

}  // namespace

Ring RingOf(const OpContext& op, std::string_view size, Check& check) {
  const Ring ring = hcom::RingOf(op, check);
  const int64_t told = check.Take(SizeIn(op, size));
  check.That(told == 0 || told == ring.ranks, "{} {}, but group \"{}\" has {} ranks", size, told,
             op.attr_string("group"), ring.ranks);
  return ring;
}

Status Products::Add(const OpContext& op, const Local& local, int64_t m, DataType y_dtype) {
  NPUMESH_ASSIGN_OR_RETURN(auto product, MakeProduct(op, local, m, y_dtype));
  kernels_.push_back(std::move(product));
  return Status();
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

Status Products::Make(const OpContext& op, const Local& local, int64_t m, DataType y_dtype,
                      Planned* plan) {
  NPUMESH_RETURN_IF_ERROR(Add(op, local, m, y_dtype));
  Reserve(op, plan);
  return Status();
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

}  // namespace npumesh::fused
