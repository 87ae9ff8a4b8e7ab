// Places of values among sorted ones: SearchSorted and Bucketize.
//
// Numbers are compared as doubles, integers wider than 53 bits as int64; NaN is larger than all.
#include <algorithm>
#include <optional>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

// Where `value` is to be put among sorted elements: before its equals, or after them (`right`).
template <typename Wide>
int64_t PlaceOf(const Wide* sorted, int64_t count, Wide value, bool right) {
  const Wide* place = right ? std::upper_bound(sorted, sorted + count, value, Less<Wide>)
                            : std::lower_bound(sorted, sorted + count, value, Less<Wide>);
  return place - sorted;
}

// ---- SearchSorted ----

struct SearchPlan : Planned {
  DataType dtype = DataType::kFloat;  // of the sequences
  bool right = false;
  std::optional<int> sorter;  // slot
  int64_t elements = 0;       // of all sequences
  int64_t length = 0;         // of one
  int64_t rows = 1;           // sequences; 1: one serves all values
  int64_t values = 0;
  ConvertFn load_sequence = nullptr, load_value = nullptr, store = nullptr;
  Workspace<uint64_t> sequences, ordered, searched;  // in the wide type
  Workspace<int64_t> places;
};

SearchPlan PlanSearch(const OpContext& op, Check& check) {
  const TensorType &sequence = op.in("sorted_sequence"), &values = op.in("values");
  const int rank = sequence.shape.rank();
  bool fits = rank >= 1 && (rank == 1 || rank == values.shape.rank());
  for (int i = 0; fits && i + 1 < rank; ++i) fits = sequence.shape[i] == values.shape[i];
  check.That(fits, "sorted_sequence {} and values {} differ before the last dimension", sequence,
             values);
  if (!check.ok()) return {};
  const DataType wide = WideTypeOf(sequence.dtype);
  check.Supported(wide != DataType::kUndefined && wide == WideTypeOf(values.dtype),
                  "cannot search {} in {}", values, sequence);
  if (op.has("sorter")) check.TypeAndShape("sorter", DataType::kInt64, sequence.shape);
  const DataType index = check.TypeOf("dtype", kIndices);
  SearchPlan plan;
  plan.elements = sequence.shape.elements();
  plan.dtype = sequence.dtype;
  plan.right = op.attr_bool("right");
  if (op.has("sorter")) plan.sorter = op.slot("sorter");
  plan.length = sequence.shape[rank - 1];
  plan.rows = plan.length == 0 ? 1 : std::max<int64_t>(plan.elements / plan.length, 1);
  plan.values = values.shape.elements();
  plan.load_sequence = FindConvert(sequence.dtype, wide);
  plan.load_value = FindConvert(values.dtype, wide);
  plan.store = FindConvert(DataType::kInt64, index);
  plan.sequences = plan.scratch.Take<uint64_t>(plan.elements);
  plan.ordered = plan.scratch.Take<uint64_t>(plan.sorter ? plan.elements : 0);
  plan.searched = plan.scratch.Take<uint64_t>(plan.values);
  plan.places = plan.scratch.Take<int64_t>(plan.values);
  plan.outputs = {{index, values.shape}};
  return plan;
}

// Puts each of the sequences into the order that the sorter gives.
template <typename Wide>
Status Order(const SearchPlan& plan, const KernelArgs& args, const Wide* from, Wide* to) {
  const auto* sorter = static_cast<const int64_t*>(args.in[*plan.sorter]);
  for (int64_t i = 0; i < plan.elements; ++i) {
    if (sorter[i] < 0 || sorter[i] >= plan.length) {
      return Error(Code::kInvalidArgument,
                   "{}: \"sorter\" holds {} at element {}, expected 0 <= index < {}", plan.who,
                   sorter[i], i, plan.length);
    }
    to[i] = from[i / plan.length * plan.length + sorter[i]];
  }
  return Status();
}

template <typename Wide>
Status Search(const SearchPlan& plan, const KernelArgs& args) {
  auto* sorted = reinterpret_cast<Wide*>(plan.sequences(args));
  plan.load_sequence(args.in[0], sorted, static_cast<size_t>(plan.elements));
  if (plan.sorter) {
    auto* ordered = reinterpret_cast<Wide*>(plan.ordered(args));
    NPUMESH_RETURN_IF_ERROR(Order(plan, args, sorted, ordered));
    sorted = ordered;
  }
  auto* searched = reinterpret_cast<Wide*>(plan.searched(args));
  plan.load_value(args.in[1], searched, static_cast<size_t>(plan.values));
  int64_t* places = plan.places(args);
  for (int64_t i = 0; i < plan.values; ++i) {
    const int64_t row = i / (plan.values / plan.rows);
    places[i] = PlaceOf(sorted + row * plan.length, plan.length, searched[i], plan.right);
  }
  plan.store(places, args.out[0], static_cast<size_t>(plan.values));
  return Status();
}

Status RunSearch(const SearchPlan& plan, const KernelArgs& args) {
  return ByWideType(plan.dtype, [&](auto wide) { return Search<decltype(wide)>(plan, args); });
}

// ---- Bucketize ----

struct BucketizePlan : Planned {
  std::vector<double> boundaries;
  bool right = true;
  int64_t count = 0;
  ConvertFn load = nullptr, store = nullptr;
  Workspace<double> x;
  Workspace<int64_t> places;
};

std::vector<double> Boundaries(const OpContext& op) {
  const AttrValue* value = op.node().FindAttr("boundaries");
  const auto* list = value != nullptr ? value->get<ListAttr>() : nullptr;
  return list != nullptr ? std::vector<double>(list->f.begin(), list->f.end())
                         : std::vector<double>();
}

BucketizePlan PlanBucketize(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  check.Supported(WideTypeOf(x.dtype) != DataType::kUndefined,
                  "x is {}, expected a floating or integer type", x);
  BucketizePlan plan;
  plan.boundaries = Boundaries(op);
  check.That(std::is_sorted(plan.boundaries.begin(), plan.boundaries.end()),
             "\"boundaries\" are not in ascending order");
  const DataType index = check.TypeOf("dtype", kIndices);
  plan.right = op.attr_bool("right");
  plan.count = x.shape.elements();
  plan.load = FindConvert(x.dtype, DataType::kDouble);
  plan.store = FindConvert(DataType::kInt64, index);
  plan.x = plan.scratch.Take<double>(plan.count);
  plan.places = plan.scratch.Take<int64_t>(plan.count);
  plan.outputs = {{index, x.shape}};
  return plan;
}

Status RunBucketize(const BucketizePlan& plan, const KernelArgs& args) {
  double* x = plan.x(args);
  int64_t* places = plan.places(args);
  plan.load(args.in[0], x, static_cast<size_t>(plan.count));
  for (int64_t i = 0; i < plan.count; ++i) {
    places[i] = PlaceOf(plan.boundaries.data(), std::ssize(plan.boundaries), x[i], plan.right);
  }
  plan.store(places, args.out[0], static_cast<size_t>(plan.count));
  return Status();
}

}  // namespace

void RegisterSearchOps(OpRegistry& registry) {
  registry.Add(Define<PlanSearch, RunSearch>(
      "SearchSorted(sorted_sequence, values, sorter?; dtype=9, right=false) -> out"));
  registry.Add(Define<PlanBucketize, RunBucketize>(
      "Bucketize(x; boundaries:floats, dtype=3, right=true) -> y"));
}

}  // namespace npumesh
