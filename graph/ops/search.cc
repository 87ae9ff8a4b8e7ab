// Places of values among sorted ones: SearchSorted (ops reference 5.5) and Bucketize (5.10).
//
// Numbers are compared as doubles, integers wider than 53 bits as int64; NaN is larger than all.
#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/row_kernel.h"

namespace npumesh {
namespace {

template <typename Wide>
bool Less(Wide a, Wide b) {
  return a < b || (b != b && a == a);
}

// Where `value` is to be put among sorted elements: before its equals, or behind them (`right`).
template <typename Wide>
int64_t PlaceOf(const Wide* sorted, int64_t count, Wide value, bool right) {
  const Wide* place = right ? std::upper_bound(sorted, sorted + count, value, Less<Wide>)
                            : std::lower_bound(sorted, sorted + count, value, Less<Wide>);
  return place - sorted;
}

Result<DataType> IndexType(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return dtype;
  return Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected int32 or int64",
               op.Who(), Name(dtype));
}

// ---- SearchSorted ----

// Rows of the sequences and of the values; one sequence may serve all values.
Status CheckSequences(const OpContext& op) {
  const TensorType& sequence = op.in("sorted_sequence");
  const TensorType& values = op.in("values");
  bool fits = sequence.shape.rank() >= 1 &&
              (sequence.shape.rank() == 1 || sequence.shape.rank() == values.shape.rank());
  for (int i = 0; fits && i + 1 < sequence.shape.rank(); ++i) {
    fits = sequence.shape[i] == values.shape[i];
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: sorted_sequence {} and values {} differ before the last dimension", op.Who(),
                 sequence.ToString(), values.ToString());
  }
  const DataType wide = WideTypeOf(sequence.dtype);
  if (wide == DataType::kUndefined || wide != WideTypeOf(values.dtype)) {
    return Error(Code::kUnsupported, "{}: cannot search {} in {}", op.Who(), values.ToString(),
                 sequence.ToString());
  }
  if (!op.has("sorter")) return Status();
  const TensorType& sorter = op.in("sorter");
  if (sorter.dtype == DataType::kInt64 && sorter.shape == sequence.shape) return Status();
  return Error(Code::kInvalidArgument, "{}: \"sorter\" is {}, expected int64 in the shape of {}",
               op.Who(), sorter.ToString(), sequence.ToString());
}

Status InferSearchSorted(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckSequences(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, IndexType(op));
  return SetOutput(op, 0, dtype, op.in("values").shape);
}

template <typename Wide>
class SearchSortedKernel final : public Kernel {
 public:
  explicit SearchSortedKernel(const OpContext& op)
      : who_(op.Who()),
        right_(op.attr_bool("right")),
        sorter_(op.has("sorter") ? op.slot("sorter") : -1),
        length_(op.in(0).shape[op.in(0).shape.rank() - 1]),
        sequences_(length_ == 0 ? 0 : op.in(0).shape.elements() / length_),
        values_(op.in(1).shape.elements()),
        store_(FindConvert(DataType::kInt64, op.out(0).dtype)) {
    const DataType wide = WideTypeOf(op.in(0).dtype);
    load_sequence_ = FindConvert(op.in(0).dtype, wide);
    load_value_ = FindConvert(op.in(1).dtype, wide);
    sorted_.resize(static_cast<size_t>(op.in(0).shape.elements()));
    ordered_.resize(sorted_.size());
    searched_.resize(static_cast<size_t>(values_));
    places_.resize(static_cast<size_t>(values_));
  }

  Status Run(const KernelArgs& args) override {
    load_sequence_(args.in[0], sorted_.data(), sorted_.size());
    if (sorter_ >= 0) NPUMESH_RETURN_IF_ERROR(Order(static_cast<const int64_t*>(args.in[sorter_])));
    load_value_(args.in[1], searched_.data(), searched_.size());
    const int64_t rows = std::max<int64_t>(sequences_, 1);
    for (int64_t i = 0; i < values_; ++i) {
      const int64_t row = i / (values_ / rows);
      places_[static_cast<size_t>(i)] = PlaceOf(sorted_.data() + row * length_, length_,
                                                searched_[static_cast<size_t>(i)], right_);
    }
    store_(places_.data(), args.out[0], places_.size());
    return Status();
  }

 private:
  // Puts each sequence into the order that the sorter gives.
  Status Order(const int64_t* sorter) {
    ordered_ = sorted_;
    for (size_t i = 0; i < sorted_.size(); ++i) {
      const int64_t from = sorter[i];
      if (from < 0 || from >= length_) {
        return Error(Code::kInvalidArgument,
                     "{}: \"sorter\" holds {} at element {}, expected 0 <= index < {}", who_, from,
                     i, length_);
      }
      const size_t row = i / static_cast<size_t>(length_);
      sorted_[i] = ordered_[row * static_cast<size_t>(length_) + static_cast<size_t>(from)];
    }
    return Status();
  }

  std::string who_;
  bool right_;
  int sorter_;
  int64_t length_;     // of one sequence
  int64_t sequences_;  // 1: serves all values
  int64_t values_;
  ConvertFn store_;
  ConvertFn load_sequence_;
  ConvertFn load_value_;
  std::vector<Wide> sorted_;
  std::vector<Wide> ordered_;
  std::vector<Wide> searched_;
  std::vector<int64_t> places_;
};

Result<std::unique_ptr<Kernel>> MakeSearchSorted(const OpContext& op) {
  std::unique_ptr<Kernel> kernel;
  switch (WideTypeOf(op.in(0).dtype)) {
    case DataType::kDouble:
      kernel = std::make_unique<SearchSortedKernel<double>>(op);
      break;
    case DataType::kUint64:
      kernel = std::make_unique<SearchSortedKernel<uint64_t>>(op);
      break;
    default:
      kernel = std::make_unique<SearchSortedKernel<int64_t>>(op);
  }
  return kernel;
}

// ---- Bucketize ----

std::vector<double> Boundaries(const OpContext& op) {
  const AttrValue* value = op.node().FindAttr("boundaries");
  const auto* list = value != nullptr ? value->get<ListAttr>() : nullptr;
  return list != nullptr ? std::vector<double>(list->f.begin(), list->f.end())
                         : std::vector<double>();
}

Status InferBucketize(OpContext& op) {
  const TensorType& x = op.in("x");
  if (WideTypeOf(x.dtype) == DataType::kUndefined) {
    return Error(Code::kUnsupported, "{}: x is {}, expected a floating or integer type", op.Who(),
                 x.ToString());
  }
  const std::vector<double> boundaries = Boundaries(op);
  if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
    return Error(Code::kInvalidArgument, "{}: \"boundaries\" are not in ascending order", op.Who());
  }
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, IndexType(op));
  return SetOutput(op, 0, dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeBucketize(const OpContext& op) {
  const auto count = static_cast<size_t>(op.in("x").shape.elements());
  const ConvertFn load = FindConvert(op.in("x").dtype, DataType::kDouble);
  const ConvertFn store = FindConvert(DataType::kInt64, op.out(0).dtype);
  return MakeKernel([boundaries = Boundaries(op), right = op.attr_bool("right"), load, store,
                     x = std::vector<double>(count),
                     places = std::vector<int64_t>(count)](const KernelArgs& args) mutable {
    load(args.in[0], x.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      places[i] = PlaceOf(boundaries.data(), static_cast<int64_t>(boundaries.size()), x[i], right);
    }
    store(places.data(), args.out[0], places.size());
    return Status();
  });
}

}  // namespace

void RegisterSearchOps(OpRegistry& registry) {
  registry.Add({.schema = {"SearchSorted",
                           {{"sorted_sequence"}, {"values"}, {"sorter", PortKind::kOptional}},
                           {{"out"}},
                           {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt64))},
                            {"right", AttrValue::Bool(false)}}},
                .infer = InferSearchSorted,
                .make_kernel = MakeSearchSorted});
  registry.Add({.schema = {"Bucketize",
                           {{"x"}},
                           {{"y"}},
                           {{"boundaries", Required::kFloats},
                            {"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt32))},
                            {"right", AttrValue::Bool(true)}}},
                .infer = InferBucketize,
                .make_kernel = MakeBucketize});
}

}  // namespace npumesh
