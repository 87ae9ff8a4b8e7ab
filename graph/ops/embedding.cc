// EmbeddingBag and EmbeddingDenseGrad: tables whose rows are looked up. Ops reference 5.10.
//
// Sums are computed in double and rounded once.
#include <algorithm>

#include "graph/ops/cast.h"
#include "graph/ops/index_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

int64_t ReadIndex(const void* data, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
}

void WriteIndex(void* data, bool wide, int64_t i, int64_t value) {
  if (wide) {
    static_cast<int64_t*>(data)[i] = value;
  } else {
    static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  }
}

Status ExpectFloats(const OpContext& op, std::string_view port) {
  const DataType dtype = op.in(port).dtype;
  if (IsFloating(dtype) && FindConvert(dtype, DataType::kDouble) != nullptr) return Status();
  return Error(Code::kUnsupported, "{}: \"{}\" is {}, expected a floating type", op.Who(), port,
               op.in(port).ToString());
}

// ---- EmbeddingBag ----

enum class BagMode { kSum, kMean, kMax };

struct BagPlan {
  std::string who;
  BagMode mode = BagMode::kMean;
  int64_t table = 0;    // rows of weight
  int64_t columns = 0;  // elements of a row
  int64_t indices = 0;
  int64_t bags = 0;
  int64_t bag_length = 0;  // of every bag when the indices are a matrix
  int64_t padding = -1;    // row that is passed over; -1: none
  int offsets = -1;        // slots
  int weights = -1;
  bool wide = false;  // the indices are int64
  bool wide_offsets = false;
  bool last_offset = false;  // one more offset says where the last bag ends
};

Result<BagMode> ModeOf(const OpContext& op) {
  const std::string mode = op.attr_string("mode");
  if (mode == "sum") return BagMode::kSum;
  if (mode == "mean") return BagMode::kMean;
  if (mode == "max") return BagMode::kMax;
  return Error(Code::kInvalidArgument,
               "{}: attribute \"mode\" is \"{}\"; expected sum, mean or max", op.Who(), mode);
}

Status CheckBags(const OpContext& op, const BagPlan& plan) {
  const Shape& indices = op.in("indices").shape;
  const bool vector = indices.rank() == 1 && plan.offsets >= 0;
  if (op.in("weight").shape.rank() != 2 || (!vector && indices.rank() != 2)) {
    return Error(Code::kInvalidArgument,
                 "{}: weight {} and indices {}: expected a matrix, and a vector with offsets or a "
                 "matrix",
                 op.Who(), op.in("weight").ToString(), indices.ToString());
  }
  if (vector) NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, plan.offsets));
  if (plan.weights < 0) return Status();
  if (plan.mode == BagMode::kSum && op.in(plan.weights).shape == indices) {
    return ExpectFloats(op, "per_sample_weights");
  }
  return Error(Code::kInvalidArgument,
               "{}: \"per_sample_weights\" {} need mode sum and the shape of the indices, {}",
               op.Who(), op.in(plan.weights).ToString(), indices.ToString());
}

Result<BagPlan> PlanBags(const OpContext& op) {
  const Shape& indices = op.in("indices").shape;
  BagPlan plan;
  plan.who = op.Who();
  NPUMESH_ASSIGN_OR_RETURN(plan.mode, ModeOf(op));
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, op.slot("indices")));
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op, "weight"));
  plan.offsets = op.has("offsets") && indices.rank() == 1 ? op.slot("offsets") : -1;
  plan.weights = op.has("per_sample_weights") ? op.slot("per_sample_weights") : -1;
  NPUMESH_RETURN_IF_ERROR(CheckBags(op, plan));
  plan.table = op.in("weight").shape[0];
  plan.columns = op.in("weight").shape[1];
  plan.indices = indices.elements();
  plan.padding = op.attr_int("padding_idx");
  plan.wide = op.in("indices").dtype == DataType::kInt64;
  if (plan.offsets < 0) {
    plan.bags = indices[0];
    plan.bag_length = indices[1];
    return plan;
  }
  plan.wide_offsets = op.in(plan.offsets).dtype == DataType::kInt64;
  plan.last_offset = op.attr_bool("include_last_offset");
  plan.bags = op.in(plan.offsets).shape.elements() - (plan.last_offset ? 1 : 0);
  if (plan.bags >= 0) return plan;
  return Error(Code::kInvalidArgument, "{}: \"offsets\" is empty, but include_last_offset is set",
               op.Who());
}

Status InferEmbeddingBag(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const BagPlan plan, PlanBags(op));
  const DataType index = op.in("indices").dtype;
  const Shape most =
      plan.mode == BagMode::kMax ? Shape({plan.bags, plan.columns}) : Shape({plan.bags});
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("weight").dtype, {plan.bags, plan.columns}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, index, {plan.indices}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, index, {plan.bags}));
  return SetOutput(op, 3, index, most);
}

class BagKernel final : public Kernel {
 public:
  BagKernel(const OpContext& op, BagPlan plan)
      : plan_(std::move(plan)),
        width_(static_cast<size_t>(BitsOf(op.in("weight").dtype)) / 8),
        load_(FindConvert(op.in("weight").dtype, DataType::kDouble)),
        store_(FindConvert(DataType::kDouble, op.in("weight").dtype)),
        row_(static_cast<size_t>(plan_.columns)),
        sum_(row_.size()) {
    if (plan_.weights < 0) return;
    weight_width_ = static_cast<size_t>(BitsOf(op.in(plan_.weights).dtype)) / 8;
    load_weight_ = FindConvert(op.in(plan_.weights).dtype, DataType::kDouble);
  }

  Status Run(const KernelArgs& args) override {
    int64_t begin = 0;
    for (int64_t bag = 0; bag < plan_.bags; ++bag) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t end, EndOf(args, bag, begin));
      NPUMESH_RETURN_IF_ERROR(FillBag(args, bag, begin, end));
      begin = end;
    }
    // Indices behind the last bag belong to none.
    for (int64_t i = begin; i < plan_.indices; ++i) WriteIndex(args.out[1], plan_.wide, i, -1);
    return Status();
  }

 private:
  Result<int64_t> EndOf(const KernelArgs& args, int64_t bag, int64_t begin) const {
    if (plan_.offsets < 0) return begin + plan_.bag_length;
    const void* offsets = args.in[plan_.offsets];
    const int64_t own = ReadIndex(offsets, plan_.wide_offsets, bag);
    const bool last = bag + 1 == plan_.bags && !plan_.last_offset;
    const int64_t end = last ? plan_.indices : ReadIndex(offsets, plan_.wide_offsets, bag + 1);
    if (own == begin && end >= begin && end <= plan_.indices) return end;
    return Error(Code::kInvalidArgument,
                 "{}: \"offsets\" put bag {} at {} to {}, expected a bag from {} on within {} "
                 "indices",
                 plan_.who, bag, own, end, begin, plan_.indices);
  }

  Status FillBag(const KernelArgs& args, int64_t bag, int64_t begin, int64_t end) {
    const bool most = plan_.mode == BagMode::kMax;
    std::fill(sum_.begin(), sum_.end(), 0.0);
    int64_t size = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = ReadIndex(args.in[1], plan_.wide, i);
      if (index < 0 || index >= plan_.table) {
        return Error(Code::kInvalidArgument,
                     "{}: \"indices\" holds {} at element {}, expected 0 <= index < {}", plan_.who,
                     index, i, plan_.table);
      }
      WriteIndex(args.out[1], plan_.wide, i, bag);
      if (index == plan_.padding) continue;
      load_(static_cast<const std::byte*>(args.in[0]) +
                static_cast<size_t>(index * plan_.columns) * width_,
            row_.data(), row_.size());
      most ? TakeLargest(args, bag, index, size == 0) : Add(args, i);
      ++size;
    }
    if (plan_.mode == BagMode::kMean && size > 0) {
      for (double& value : sum_) value /= static_cast<double>(size);
    }
    store_(sum_.data(),
           static_cast<std::byte*>(args.out[0]) + static_cast<size_t>(bag * plan_.columns) * width_,
           sum_.size());
    WriteIndex(args.out[2], plan_.wide, bag, size);
    if (!most) WriteIndex(args.out[3], plan_.wide, bag, 0);
    for (int64_t c = 0; most && size == 0 && c < plan_.columns; ++c) {
      WriteIndex(args.out[3], plan_.wide, bag * plan_.columns + c, 0);
    }
    return Status();
  }

  void Add(const KernelArgs& args, int64_t i) {
    double weight = 1;
    if (plan_.weights >= 0) {
      load_weight_(static_cast<const std::byte*>(args.in[plan_.weights]) +
                       static_cast<size_t>(i) * weight_width_,
                   &weight, 1);
    }
    for (size_t c = 0; c < sum_.size(); ++c) sum_[c] += weight * row_[c];
  }

  void TakeLargest(const KernelArgs& args, int64_t bag, int64_t index, bool first) {
    for (size_t c = 0; c < sum_.size(); ++c) {
      if (!first && !(row_[c] > sum_[c])) continue;
      sum_[c] = row_[c];
      WriteIndex(args.out[3], plan_.wide, bag * plan_.columns + static_cast<int64_t>(c), index);
    }
  }

  BagPlan plan_;
  size_t width_;
  ConvertFn load_;
  ConvertFn store_;
  std::vector<double> row_;
  std::vector<double> sum_;
  size_t weight_width_ = 0;
  ConvertFn load_weight_ = nullptr;
};

Result<std::unique_ptr<Kernel>> MakeEmbeddingBag(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(BagPlan plan, PlanBags(op));
  return std::unique_ptr<Kernel>(std::make_unique<BagKernel>(op, std::move(plan)));
}

// ---- EmbeddingDenseGrad ----

Status InferDenseGrad(OpContext& op) {
  const TensorType& grad = op.in("grad");
  const Shape& indices = op.in("indices").shape;
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, op.slot("indices")));
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op, "grad"));
  bool fits = grad.shape.rank() == indices.rank() + 1;
  for (int d = 0; fits && d < indices.rank(); ++d) fits = grad.shape[d] == indices[d];
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: grad {} does not have a row for each index of {}",
                 op.Who(), grad.ToString(), indices.ToString());
  }
  return SetOutput(op, 0, grad.dtype, {op.attr_int("num_weights"), grad.shape.dims().back()});
}

Result<std::unique_ptr<Kernel>> MakeDenseGrad(const OpContext& op) {
  const auto columns = static_cast<size_t>(op.out(0).shape[1]);
  const auto rows = static_cast<size_t>(op.in("indices").shape.elements());
  const int64_t table = op.out(0).shape[0];
  const DataType dtype = op.in("grad").dtype;
  NPUMESH_RETURN_IF_ERROR(AskForLists(
      op, SumOfDims(Shape{op.out(0).shape.elements(), op.in("grad").shape.elements(), table})));
  return MakeKernel([=, who = op.Who(), padding = op.attr_int("padding_idx"),
                     shares = op.attr_bool("scale_grad_by_freq"),
                     wide = op.in("indices").dtype == DataType::kInt64,
                     load = FindConvert(dtype, DataType::kDouble),
                     store = FindConvert(DataType::kDouble, dtype),
                     grad = std::vector<double>(rows * columns),
                     y = std::vector<double>(static_cast<size_t>(table) * columns),
                     uses = std::vector<int64_t>(static_cast<size_t>(table))](
                        const KernelArgs& args) mutable -> Status {
    std::fill(y.begin(), y.end(), 0.0);
    std::fill(uses.begin(), uses.end(), 0);
    load(args.in[0], grad.data(), grad.size());
    for (size_t i = 0; i < rows; ++i) {
      const int64_t index = ReadIndex(args.in[1], wide, static_cast<int64_t>(i));
      if (index < 0 || index >= table) {
        return Error(Code::kInvalidArgument,
                     "{}: \"indices\" holds {} at element {}, expected 0 <= index < {}", who, index,
                     i, table);
      }
      if (index == padding) continue;
      ++uses[static_cast<size_t>(index)];
      double* to = y.data() + static_cast<size_t>(index) * columns;
      for (size_t c = 0; c < columns; ++c) to[c] += grad[i * columns + c];
    }
    for (size_t r = 0; shares && r < uses.size(); ++r) {
      for (size_t c = 0; c < columns && uses[r] > 1; ++c) {
        y[r * columns + c] /= static_cast<double>(uses[r]);
      }
    }
    store(y.data(), args.out[0], y.size());
    return Status();
  });
}

}  // namespace

void RegisterEmbeddingOps(OpRegistry& registry) {
  registry.Add({.schema = {"EmbeddingBag",
                           {{"weight"},
                            {"indices"},
                            {"offsets", PortKind::kOptional},
                            {"per_sample_weights", PortKind::kOptional}},
                           {{"y"}, {"offset2bag"}, {"bag_size"}, {"max_indices"}},
                           {{"mode", AttrValue::String("mean")},
                            {"scale_grad_by_freq", AttrValue::Bool(false)},
                            {"sparse", AttrValue::Bool(false)},
                            {"include_last_offset", AttrValue::Bool(false)},
                            {"padding_idx", AttrValue::Int(-1)}}},
                .infer = InferEmbeddingBag,
                .make_kernel = MakeEmbeddingBag});
  registry.Add({.schema = {"EmbeddingDenseGrad",
                           {{"grad"}, {"indices"}},
                           {{"y"}},
                           {{"num_weights", Required::kInt},
                            {"padding_idx", AttrValue::Int(-1)},
                            {"scale_grad_by_freq", AttrValue::Bool(false)}}},
                .infer = InferDenseGrad,
                .make_kernel = MakeDenseGrad});
}

}  // namespace npumesh
