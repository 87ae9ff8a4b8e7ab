// ScatterList and QuantUpdateScatter, rows written into caches from a position on, and Cmo, a hint
// that asks for nothing. Ops reference 5.10.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/quantised_row.h"
#include "graph/ops/small_float.h"

namespace npumesh {
namespace {

Status ExpectUpdate(const OpContext& op) {
  const std::string reduce = op.attr_string("reduce");
  if (reduce == "update" || reduce == "none") return Status();
  return Error(Code::kUnsupported, "{}: reduce \"{}\", expected update", op.Who(), reduce);
}

// ---- ScatterList ----

// Entry i of the list takes rows of part i of the updates, [outer, length, inner].
struct ListPlan {
  int64_t entries = 0;
  int64_t outer = 1;
  int64_t length = 0;  // rows of a part
  int64_t inner = 1;
  std::vector<int64_t> bounds;  // rows of each entry
  size_t width = 0;
  int first = 0;  // slots
  int index = 0;
  int updates = 0;
  int mask = -1;
  bool pairs = false;  // indices are (start, length)
  DataType index_dtype = DataType::kInt64;
};

Result<ListPlan> PlanList(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectUpdate(op));
  ListPlan plan;
  plan.first = op.slot("var");
  plan.index = op.slot("indice");
  plan.updates = op.slot("updates");
  plan.mask = SlotIfFed(op, "mask");
  plan.entries = op.count("var");
  const TensorType &updates = op.in(plan.updates), &index = op.in(plan.index);
  const int64_t axis = op.attr_int("axis");
  const int rank = updates.shape.rank();
  if (axis != -1 && axis != -2) {
    return Error(Code::kUnsupported, "{}: axis is {}, expected -1 or -2", op.Who(), axis);
  }
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, plan.index));
  NPUMESH_ASSIGN_OR_RETURN(plan.width, ElementBytes(op, updates.dtype));
  plan.index_dtype = index.dtype;
  plan.pairs = index.shape.rank() == 2;
  const int at = rank + static_cast<int>(axis);
  bool fits = rank >= 3 && updates.shape[0] == plan.entries &&
              index.shape == (plan.pairs ? Shape({plan.entries, 2}) : Shape({plan.entries})) &&
              (plan.mask < 0 || op.in(plan.mask) == TensorType{DataType::kUint8, {plan.entries}});
  for (int i = 0; fits && i < plan.entries; ++i) {
    const TensorType& var = op.in(plan.first + i);
    Shape wanted(
        std::vector<int64_t>(updates.shape.dims().begin() + 1, updates.shape.dims().end()));
    fits = var.dtype == updates.dtype && var.shape.rank() == rank - 1;
    if (!fits) break;
    plan.bounds.push_back(var.shape[at - 1]);
    wanted[at - 1] = var.shape[at - 1];
    fits = var.shape == wanted;
  }
  if (!fits || op.outputs() != plan.entries) {
    return Error(
        Code::kInvalidArgument,
        "{}: {} entries of \"var\", \"indice\" {}, \"updates\" {} and {} outputs; expected "
        "updates [entries,..] like the entries but for the axis, a start (and length) and "
        "an output for each, and a uint8 mask",
        op.Who(), plan.entries, index.ToString(), updates.ToString(), op.outputs());
  }
  plan.outer = ElementsBetween(updates.shape, 1, at);
  plan.length = updates.shape[at];
  plan.inner = ElementsBetween(updates.shape, at + 1, rank);
  return plan;
}

Status InferList(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ListPlan plan, PlanList(op));
  for (int i = 0; i < plan.entries; ++i) {
    const TensorType type = op.in(plan.first + i);
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, type.dtype, type.shape));
  }
  return Status();
}

Status WriteEntry(const ListPlan& plan, const std::string& who, const KernelArgs& args, int64_t i) {
  const auto at = [&](int64_t k) { return IntegerAt(plan.index_dtype, args.in[plan.index], k); };
  const int64_t start = at(plan.pairs ? 2 * i : i);
  const int64_t length = plan.pairs ? at(2 * i + 1) : plan.length;
  const int64_t bound = plan.bounds[static_cast<size_t>(i)];
  if (start < 0 || length < 0 || length > plan.length || start > bound - length) {
    return Error(Code::kInvalidArgument,
                 "{}: \"indice\" writes {} rows from {} on into entry {}, which has {}, from "
                 "updates of {}",
                 who, length, start, i, bound, plan.length);
  }
  const auto row = static_cast<int64_t>(plan.width) * plan.inner;
  for (int64_t o = 0; o < plan.outer; ++o) {
    const auto* from = static_cast<const std::byte*>(args.in[plan.updates]) +
                       (i * plan.outer + o) * plan.length * row;
    std::memcpy(static_cast<std::byte*>(args.out[i]) + (o * bound + start) * row, from,
                static_cast<size_t>(length * row));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeList(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ListPlan plan, PlanList(op));
  return MakeKernel([plan = std::move(plan), who = op.Who()](const KernelArgs& args) -> Status {
    for (int64_t i = 0; i < plan.entries; ++i) {
      if (plan.mask >= 0 && static_cast<const uint8_t*>(args.in[plan.mask])[i] == 0) continue;
      NPUMESH_RETURN_IF_ERROR(WriteEntry(plan, who, args, i));
    }
    return Status();
  });
}

// ---- QuantUpdateScatter ----

// var is [batch, outer, bound, width], updates [entries, outer, length, width].
struct QuantPlan {
  int64_t batch = 0;
  int64_t outer = 1;
  int64_t bound = 0;
  int64_t width = 0;
  int64_t entries = 0;
  int64_t length = 0;
  bool pairs = false;  // indices are (batch, start)
  bool multiplies = false;
  DataType from = DataType::kUndefined;
  DataType to = DataType::kUndefined;
  DataType index_dtype = DataType::kInt64;
  Rounding rounding = Rounding::kNearest;
  Factors scales;
  Factors offsets;
};

Result<QuantPlan> PlanQuant(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectUpdate(op));
  const TensorType &var = op.in("var"), &updates = op.in("updates"), &index = op.in("indices");
  const int rank = var.shape.rank();
  const int64_t axis = op.attr_int("axis"), quant = op.attr_int("quant_axis");
  QuantPlan plan;
  if ((axis != -2 && axis != rank - 2) || (quant != -1 && quant != rank - 1)) {
    return Error(Code::kUnsupported, "{}: axis {} and quant_axis {}, expected -2 and -1", op.Who(),
                 axis, quant);
  }
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, op.slot("indices")));
  NPUMESH_ASSIGN_OR_RETURN(plan.rounding, RoundingOf(op, "round_mode"));
  NPUMESH_ASSIGN_OR_RETURN(plan.scales, Factors::Of(op, "quant_scales"));
  NPUMESH_ASSIGN_OR_RETURN(plan.offsets, Factors::Of(op, "quant_zero_points"));
  plan.index_dtype = index.dtype;
  plan.pairs = index.shape.rank() == 2;
  plan.multiplies = op.attr_bool("reciprocal_scale");
  plan.from = updates.dtype;
  plan.to = var.dtype;
  bool fits = rank >= 3 && updates.shape.rank() == rank && IsRowType(plan.from) &&
              (plan.to == DataType::kInt8 || IsFloat8(plan.to));
  if (fits) {
    plan.batch = var.shape[0];
    plan.outer = ElementsBetween(var.shape, 1, rank - 2);
    plan.bound = var.shape[rank - 2];
    plan.width = var.shape[rank - 1];
    plan.entries = updates.shape[0];
    plan.length = updates.shape[rank - 2];
    Shape wanted = var.shape;
    wanted[0] = plan.entries;
    wanted[rank - 2] = plan.length;
    fits = updates.shape == wanted &&
           index.shape == (plan.pairs ? Shape({plan.entries, 2}) : Shape({plan.entries})) &&
           (plan.pairs || plan.entries <= plan.batch);
  }
  for (const Factors* factors : {&plan.scales, &plan.offsets}) {
    fits = fits && (factors->count() == 1 || factors->count() == plan.width ||
                    (factors == &plan.offsets && !factors->given()));
  }
  if (fits) return plan;
  return Error(
      Code::kInvalidArgument,
      "{}: var is {}, updates {} and indices {} with {} scales and {} zero points; expected "
      "int8 or an 8-bit float [B,..,S,D], floats [n,..,s,D], starts [n] or [n,2], and one "
      "scale or D",
      op.Who(), var.ToString(), updates.ToString(), index.ToString(), plan.scales.count(),
      plan.offsets.count());
}

Status InferQuant(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanQuant(op).status());
  return SetOutput(op, 0, op.in("var").dtype, op.in("var").shape);
}

class QuantScatterKernel final : public Kernel {
 public:
  QuantScatterKernel(const OpContext& op, QuantPlan plan)
      : plan_(std::move(plan)), who_(op.Who()) {}

  // Rows of updates, scales and zero points.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(plan_.width) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    float* scales = static_cast<float*>(args.scratch) + plan_.width;
    float* offsets = scales + plan_.width;
    Load(args, plan_.scales, scales);
    std::fill_n(offsets, plan_.width, 0.0f);
    if (plan_.offsets.given()) Load(args, plan_.offsets, offsets);
    for (int64_t i = 0; i < plan_.entries; ++i) {
      const int64_t b = plan_.pairs ? Index(args, 2 * i) : i;
      const int64_t start = Index(args, plan_.pairs ? 2 * i + 1 : i);
      if (b < 0 || b >= plan_.batch || start < 0 || start > plan_.bound - plan_.length) {
        return Error(Code::kInvalidArgument,
                     "{}: \"indices\" place entry {} at batch {}, positions {} to {}, expected "
                     "batches below {} and positions below {}",
                     who_, i, b, start, start + plan_.length - 1, plan_.batch, plan_.bound);
      }
      WriteEntry(args, i, b, start, scales, offsets);
    }
    return Status();
  }

 private:
  int64_t Index(const KernelArgs& args, int64_t i) const {
    return IntegerAt(plan_.index_dtype, args.in[1], i);
  }

  void Load(const KernelArgs& args, const Factors& factors, float* to) const {
    if (factors.count() == 1) {
      std::fill_n(to, plan_.width, factors.At(args, 0));
    } else {
      factors.Load(args, 0, plan_.width, to);
    }
  }

  void WriteEntry(const KernelArgs& args, int64_t i, int64_t b, int64_t start, const float* scales,
                  const float* offsets) const {
    auto* row = static_cast<float*>(args.scratch);
    const int64_t n = plan_.width;
    for (int64_t line = 0; line < plan_.outer * plan_.length; ++line) {
      const int64_t o = line / plan_.length, t = line % plan_.length;
      LoadNumbers(plan_.from, args.in[2], (i * plan_.outer * plan_.length + line) * n, n, row);
      for (int64_t d = 0; d < n; ++d) {
        row[d] = (plan_.multiplies ? row[d] * scales[d] : row[d] / scales[d]) + offsets[d];
      }
      const int64_t to = (b * plan_.outer + o) * plan_.bound + start + t;
      StoreNarrow(plan_.to, plan_.rounding, row, args.out[0], to * n, n);
    }
  }

  QuantPlan plan_;
  std::string who_;
};

Result<std::unique_ptr<Kernel>> MakeQuant(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(QuantPlan plan, PlanQuant(op));
  return std::unique_ptr<Kernel>(std::make_unique<QuantScatterKernel>(op, std::move(plan)));
}

// ---- Cmo ----

Status InferCmo(OpContext&) {
  return Status();
}

}  // namespace

void RegisterScatterListOps(OpRegistry& registry) {
  registry.Add(
      {.schema =
           {"ScatterList",
            {{"var", PortKind::kDynamic}, {"indice"}, {"updates"}, {"mask", PortKind::kOptional}},
            {{"var", PortKind::kDynamic}},
            {{"reduce", AttrValue::String("update")}, {"axis", AttrValue::Int(-2)}}},
       .infer = InferList,
       .make_kernel = MakeList,
       .in_place = {{0, 0}}});
  registry.Add({.schema = {"QuantUpdateScatter",
                           {{"var"},
                            {"indices"},
                            {"updates"},
                            {"quant_scales"},
                            {"quant_zero_points", PortKind::kOptional}},
                           {{"var"}},
                           {{"reduce", Required::kString},
                            {"axis", AttrValue::Int(-2)},
                            {"quant_axis", AttrValue::Int(-1)},
                            {"round_mode", AttrValue::String("rint")},
                            {"reciprocal_scale", AttrValue::Bool(false)}}},
                .infer = InferQuant,
                .make_kernel = MakeQuant,
                .in_place = {{0, 0}}});
  // A hint to fetch memory into a cache: nothing to do.
  registry.Add({.schema = {"Cmo",
                           {{"src"}},
                           {},
                           {{"max_size", Required::kInt},
                            {"type", AttrValue::Int(6)},
                            {"offset", AttrValue::Int(0)}}},
                .infer = InferCmo,
                .make_kernel = [](const OpContext&) -> Result<std::unique_ptr<Kernel>> {
                  return MakeKernel([](const KernelArgs&) { return Status(); });
                }});
}

}  // namespace npumesh
