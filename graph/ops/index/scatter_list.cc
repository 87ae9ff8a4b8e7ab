// ScatterList and QuantUpdateScatter, rows written into caches from a position on, and Cmo, a hint
// that asks for nothing.
#include <algorithm>
#include <cstring>
#include <string>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/index/scatter.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

void ExpectUpdate(const OpContext& op, Check& check) {
  const std::string reduce = op.attr_string("reduce");
  check.Supported(reduce == "update" || reduce == "none", "reduce \"{}\", expected update", reduce);
}

// ---- ScatterList ----

// Entry i of the list takes rows of part i of the updates, [outer, length, inner].
struct ListPlan : Planned {
  int64_t outer = 1;
  int64_t length = 0;           // rows of a part
  int64_t row = 0;              // bytes
  std::vector<int64_t> bounds;  // rows of each entry
  Integers index;
  int updates = 0;  // slots
  int mask = -1;
  bool pairs = false;  // indices are (start, length)
};

// A start for each of `entries`, or a pair of numbers.
void CheckStarts(Check& check, const OpContext& op, std::string_view port, int64_t entries) {
  check.Type(port, kIndices);
  check.Shape(port, op.in(port).shape.rank() == 2 ? Shape({entries, 2}) : Shape({entries}));
}

ListPlan PlanList(const OpContext& op, Check& check) {
  ExpectUpdate(op, check);
  const int64_t axis = check.Among("axis", {-1, -2});
  const auto& [dtype, updates] = op.in("updates");
  const int rank = updates.rank(), entries = op.count("var");
  check.That(rank >= 3 && updates[0] == entries && op.outputs() == entries,
             "updates are {}, expected [{},..] with three dimensions or more, and as many outputs "
             "(the node has {})",
             updates, entries, op.outputs());
  CheckStarts(check, op, "indice", entries);
  check.TypeAndShape("mask", DataType::kUint8, {entries});
  const auto width = static_cast<int64_t>(check.Take(ElementBytes(op, dtype)));
  if (!check.ok()) return {};
  ListPlan plan;
  const int at = rank + static_cast<int>(axis);
  for (int i = 0; i < entries; ++i) {
    const TensorType& var = op.in(op.slot("var") + i);
    TensorType wanted = {dtype, Spliced(updates, 0, 1, {})};
    if (var.shape.rank() == rank - 1) wanted.shape[at - 1] = var.shape[at - 1];
    check.That(var == wanted, "entry {} of \"var\" is {}, expected {} but for axis {}", i, var,
               wanted, axis);
    plan.bounds.push_back(wanted.shape[at - 1]);
    plan.outputs.push_back(var);
  }
  plan.index = Integers::OfSlot(op, op.slot("indice"));
  plan.updates = op.slot("updates");
  plan.mask = SlotIfFed(op, "mask");
  plan.pairs = op.in("indice").shape.rank() == 2;
  plan.outer = ElementsBetween(updates, 1, at);
  plan.length = updates[at];
  plan.row = width * ElementsBetween(updates, at + 1, rank);
  return plan;
}

Status WriteEntry(const ListPlan& plan, const KernelArgs& args, int64_t i) {
  const auto at = [&](int64_t k) { return plan.index.At(args, k); };
  const int64_t start = at(plan.pairs ? 2 * i : i);
  const int64_t length = plan.pairs ? at(2 * i + 1) : plan.length;
  const int64_t bound = plan.bounds[static_cast<size_t>(i)];
  if (start < 0 || length < 0 || length > plan.length || start > bound - length) {
    return Error(Code::kInvalidArgument,
                 "{}: \"indice\" writes {} rows from {} on into entry {}, which has {}, from "
                 "updates of {}",
                 plan.who, length, start, i, bound, plan.length);
  }
  for (int64_t o = 0; o < plan.outer; ++o) {
    const auto* from = static_cast<const std::byte*>(args.in[plan.updates]) +
                       (i * plan.outer + o) * plan.length * plan.row;
    std::memcpy(static_cast<std::byte*>(args.out[i]) + (o * bound + start) * plan.row, from,
                static_cast<size_t>(length * plan.row));
  }
  return Status();
}

Status RunList(const ListPlan& plan, const KernelArgs& args) {
  for (int64_t i = 0; i < std::ssize(plan.bounds); ++i) {
    if (plan.mask >= 0 && static_cast<const uint8_t*>(args.in[plan.mask])[i] == 0) continue;
    NPUMESH_RETURN_IF_ERROR(WriteEntry(plan, args, i));
  }
  return Status();
}

// ---- QuantUpdateScatter ----

// var is [batch, outer, bound, width], updates [entries, outer, length, width].
struct QuantPlan : Planned {
  int64_t outer = 1, width = 0, entries = 0;
  CachePlaces places;
  bool multiplies = false;
  DataType from = DataType::kUndefined, to = DataType::kUndefined;
  Rounding rounding = Rounding::kNearest;
  Factors scales, offsets;
  Workspace<float> row, row_scales, row_offsets;
};

QuantPlan PlanQuant(const OpContext& op, Check& check) {
  ExpectUpdate(op, check);
  const TensorType &var = op.in("var"), &updates = op.in("updates");
  const int rank = var.shape.rank();
  const int64_t axis = op.attr_int("axis"), quant = op.attr_int("quant_axis");
  check.Supported((axis == -2 || axis == rank - 2) && (quant == -1 || quant == rank - 1),
                  "axis {} and quant_axis {}, expected -2 and -1", axis, quant);
  check.RankAtLeast("var", kEightBitFloats | DataType::kInt8, 3);
  check.Rank("updates", kFloats, rank);
  if (!check.ok()) return {};
  QuantPlan plan;
  plan.outer = ElementsBetween(var.shape, 1, rank - 2);
  plan.width = var.shape[rank - 1];
  plan.entries = updates.shape[0];
  plan.places = {Integers::OfSlot(op, op.slot("indices")), op.in("indices").shape.rank() == 2,
                 var.shape[0], var.shape[rank - 2], updates.shape[rank - 2]};
  plan.multiplies = op.attr_bool("reciprocal_scale");
  plan.from = updates.dtype;
  plan.to = var.dtype;
  plan.rounding = check.Take(RoundingOf(op, "round_mode"));
  plan.scales = check.Take(Factors::Of(op, "quant_scales"));
  plan.offsets = check.Take(Factors::Of(op, "quant_zero_points"));
  Shape wanted = var.shape;
  wanted[0] = plan.entries;
  wanted[rank - 2] = plan.places.length;
  check.Shape("updates", wanted);
  CheckStarts(check, op, "indices", plan.entries);
  check.That(plan.places.pairs || plan.entries <= plan.places.batches,
             "{} entries for {} batches of var", plan.entries, plan.places.batches);
  check.Elements("quant_scales", {1, plan.width});
  check.Elements("quant_zero_points", {1, plan.width});
  plan.scratch.Take(plan.width, {&plan.row, &plan.row_scales, &plan.row_offsets});
  plan.outputs = {var};
  return plan;
}

// Quantises entry i to its place.
void WriteEntry(const QuantPlan& plan, const KernelArgs& args, int64_t i,
                const CachePlaces::Place& place) {
  float* row = plan.row(args);
  const float *scales = plan.row_scales(args), *offsets = plan.row_offsets(args);
  const int64_t n = plan.width, length = plan.places.length;
  for (int64_t line = 0; line < plan.outer * length; ++line) {
    const int64_t o = line / length, t = line % length;
    LoadNumbers(plan.from, args.in[2], (i * plan.outer * length + line) * n, n, row);
    for (int64_t d = 0; d < n; ++d) {
      row[d] = (plan.multiplies ? row[d] * scales[d] : row[d] / scales[d]) + offsets[d];
    }
    const int64_t to = (place.batch * plan.outer + o) * plan.places.bound + place.start + t;
    StoreNarrow(plan.to, plan.rounding, row, args.out[0], to * n, n);
  }
}

Status RunQuant(const QuantPlan& plan, const KernelArgs& args) {
  float *scales = plan.row_scales(args), *offsets = plan.row_offsets(args);
  std::fill_n(offsets, plan.width, 0.0f);
  if (plan.scales.given()) LoadColumns(args, plan.scales, 0, plan.width, scales);
  if (plan.offsets.given()) LoadColumns(args, plan.offsets, 0, plan.width, offsets);
  for (int64_t i = 0; i < plan.entries; ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const auto place, plan.places.At(plan.who, args, i));
    WriteEntry(plan, args, i, place);
  }
  return Status();
}

}  // namespace

void RegisterScatterListOps(OpRegistry& registry) {
  registry.Add(Define<PlanList, RunList>(
      "ScatterList(var..., indice, updates, mask?; reduce=\"update\", axis=-2) -> var...",
      {.in_place = {{0, 0}}}));
  registry.Add(Define<PlanQuant, RunQuant>(
      "QuantUpdateScatter(var, indices, updates, quant_scales, quant_zero_points?; "
      "reduce:string, axis=-2, quant_axis=-1, round_mode=\"rint\", reciprocal_scale=false) -> var",
      {.in_place = {{0, 0}}}));
  // Nothing to do.
  registry.Add({.schema = Signature("Cmo(src; max_size:int, type=6, offset=0) -> "),
                .infer = [](OpContext&) { return Status(); },
                .make_kernel = [](const OpContext&) -> Result<std::unique_ptr<Kernel>> {
                  return MakeKernel([](const KernelArgs&) { return Status(); });
                }});
}

}  // namespace npumesh
