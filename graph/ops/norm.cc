// LayerNormV4, RmsNorm and AddRmsNorm. Ops reference 5.7.
//
// Statistics are computed in two passes on float32 rows with sums as in float_rows.h; the result
// is rounded once. AddRmsNorm follows the A2/A3 devices, to which the simulated SoC belongs: the
// sum is rounded to the input's type before it is normalised, and x * rstd is rounded again before
// it is multiplied by gamma.
#include "graph/ops/norm.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/row_math.h"

namespace npumesh {
namespace {

Status ExpectRowType(const OpContext& op, std::string_view port) {
  if (IsRowType(op.in(port).dtype)) return Status();
  return Error(Code::kUnsupported, "{}: \"{}\" is {}, expected float16, bfloat16 or float32",
               op.Who(), port, Name(op.in(port).dtype));
}

// x as `rows` rows of `columns` elements; the columns are what is normalised over.
struct RowShape {
  int64_t rows = 1;
  int64_t columns = 1;
};

RowShape RowsOf(const Shape& x, int normalized_rank) {
  const int split = x.rank() - normalized_rank;
  return {ElementsBetween(x, 0, split), ElementsBetween(x, split, x.rank())};
}

// True when `tail` are the last dimensions of x.
bool EndsWith(const Shape& x, const Shape& tail) {
  if (tail.rank() > x.rank()) return false;
  return std::equal(tail.dims().begin(), tail.dims().end(), x.dims().end() - tail.rank());
}

// x with its last `normalized_rank` dimensions 1: the shape of mean and rstd.
Shape StatisticsShape(const Shape& x, int normalized_rank) {
  Shape shape = x;
  for (int i = x.rank() - normalized_rank; i < x.rank(); ++i) shape[i] = 1;
  return shape;
}

double Reciprocal(double sum_of_squares, int64_t count, double epsilon) {
  return 1.0 / std::sqrt(sum_of_squares / static_cast<double>(count) + epsilon);
}

// ---- LayerNormV4 ----

Status CheckAffine(const OpContext& op, std::string_view port, const Shape& normalized) {
  if (!op.has(port)) return Status();
  NPUMESH_RETURN_IF_ERROR(ExpectRowType(op, port));
  if (op.in(port).shape == normalized) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected the normalized shape {}",
               op.Who(), port, op.in(port).shape.ToString(), normalized.ToString());
}

Status InferLayerNorm(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ExpectRowType(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("normalized_shape"));
  const Shape normalized(std::move(dims));
  if (!EndsWith(x.shape, normalized)) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}, which does not end with the normalized "
                 "shape {}",
                 op.Who(), x.ToString(), normalized.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(CheckAffine(op, "gamma", normalized));
  NPUMESH_RETURN_IF_ERROR(CheckAffine(op, "beta", normalized));
  const Shape statistics = StatisticsShape(x.shape, normalized.rank());
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, x.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, statistics));
  return SetOutput(op, 2, DataType::kFloat, statistics);
}

// A vector over the columns, or none.
struct ColumnInput {
  int slot = -1;
  DataType dtype = DataType::kUndefined;

  const float* Load(const KernelArgs& args, int64_t columns, float* room) const {
    return slot < 0 ? nullptr : LoadRow(dtype, args.in[slot], 0, columns, room);
  }
};

ColumnInput ColumnsOf(const OpContext& op, std::string_view port) {
  if (!op.has(port)) return {};
  return {op.slot(port), op.in(port).dtype};
}

class LayerNormKernel final : public Kernel {
 public:
  LayerNormKernel(const OpContext& op, RowShape shape)
      : shape_(shape),
        dtype_(op.in("x").dtype),
        x_slot_(op.slot("x")),
        gamma_(ColumnsOf(op, "gamma")),
        beta_(ColumnsOf(op, "beta")),
        epsilon_(static_cast<double>(op.attr_float("epsilon"))) {}

  // Rows for gamma, beta, x and y.
  uint64_t scratch_bytes() const override {
    return 4 * static_cast<uint64_t>(shape_.columns) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const int64_t n = shape_.columns;
    auto* scratch = static_cast<float*>(args.scratch);
    const float* gamma = gamma_.Load(args, n, scratch);
    const float* beta = beta_.Load(args, n, scratch + n);
    float* y = scratch + 3 * n;
    for (int64_t r = 0; r < shape_.rows; ++r) {
      const float* x = LoadRow(dtype_, args.in[x_slot_], r * n, n, scratch + 2 * n);
      const auto mean = static_cast<float>(SumOfRow(x, n) / static_cast<double>(n));
      const double squares = BlockedSum(x, n, [mean](float v) { return (v - mean) * (v - mean); });
      const auto rstd = static_cast<float>(Reciprocal(squares, n, epsilon_));
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
      for (int64_t i = 0; gamma != nullptr && i < n; ++i) y[i] *= gamma[i];
      for (int64_t i = 0; beta != nullptr && i < n; ++i) y[i] += beta[i];
      StoreRow(dtype_, y, args.out[0], r * n, n);
      static_cast<float*>(args.out[1])[r] = mean;
      static_cast<float*>(args.out[2])[r] = rstd;
    }
    return Status();
  }

 private:
  RowShape shape_;
  DataType dtype_;
  int x_slot_;
  ColumnInput gamma_;
  ColumnInput beta_;
  double epsilon_;
};

Result<std::unique_ptr<Kernel>> MakeLayerNorm(const OpContext& op) {
  const int normalized = static_cast<int>(op.in("normalized_shape").shape.elements());
  return std::unique_ptr<Kernel>(
      std::make_unique<LayerNormKernel>(op, RowsOf(op.in("x").shape, normalized)));
}

// ---- RmsNorm, AddRmsNorm ----

// Outputs of RmsNorm: y, rstd; of AddRmsNorm: y, rstd, x.
Status InferRms(OpContext& op, std::string_view x_port) {
  const TensorType& x = op.in(x_port);
  const Shape& gamma = op.in("gamma").shape;
  NPUMESH_RETURN_IF_ERROR(ExpectRowType(op, x_port));
  NPUMESH_RETURN_IF_ERROR(ExpectRowType(op, "gamma"));
  if (gamma.rank() == 0 || !EndsWith(x.shape, gamma)) {
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" is {}, which does not end with the shape of "
                 "\"gamma\", {}",
                 op.Who(), x_port, x.ToString(), gamma.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, x.shape));
  return SetOutput(op, 1, DataType::kFloat, StatisticsShape(x.shape, gamma.rank()));
}

Status InferRmsNorm(OpContext& op) {
  return InferRms(op, "x");
}

Status InferAddRmsNorm(OpContext& op) {
  const TensorType& x1 = op.in("x1");
  if (x1 != op.in("x2")) {
    return Error(Code::kInvalidArgument,
                 "{}: \"x1\" is {} and \"x2\" is {}, expected equal types "
                 "and shapes",
                 op.Who(), x1.ToString(), op.in("x2").ToString());
  }
  NPUMESH_RETURN_IF_ERROR(InferRms(op, "x1"));
  return SetOutput(op, 2, x1.dtype, x1.shape);
}

class RmsNormKernel final : public Kernel {
 public:
  explicit RmsNormKernel(const RmsNormPlan& plan) : plan_(plan) {}

  // Rows for gamma, x, y and a second addend.
  uint64_t scratch_bytes() const override {
    return 4 * static_cast<uint64_t>(plan_.columns) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const int64_t n = plan_.columns;
    auto* scratch = static_cast<float*>(args.scratch);
    const float* gamma = LoadRow(plan_.gamma_dtype, args.in[plan_.gamma_slot], 0, n, scratch);
    float* y = scratch + 2 * n;
    for (int64_t r = 0; r < plan_.rows; ++r) {
      if (adds()) StoreSum(args, r, scratch + n, scratch + 3 * n);
      const void* source = adds() ? args.out[2] : args.in[plan_.x_slot];
      const float* x = LoadRow(plan_.x_dtype, source, r * n, n, scratch + n);
      const float rstd = NormaliseRow(plan_.y_dtype, x, gamma, n, plan_.epsilon, plan_.rounds, y,
                                      args.out[0], r * n);
      if (plan_.gives_rstd) static_cast<float*>(args.out[1])[r] = rstd;
    }
    return Status();
  }

 private:
  bool adds() const { return plan_.x2_slot >= 0; }

  // Output x = x1 + x2, rounded to its type.
  void StoreSum(const KernelArgs& args, int64_t r, float* room1, float* room2) const {
    const int64_t n = plan_.columns;
    const float* a = LoadRow(plan_.x_dtype, args.in[plan_.x_slot], r * n, n, room1);
    const float* b = LoadRow(plan_.x_dtype, args.in[plan_.x2_slot], r * n, n, room2);
    for (int64_t i = 0; i < n; ++i) room1[i] = a[i] + b[i];
    StoreRow(plan_.x_dtype, room1, args.out[2], r * n, n);
  }

  const RmsNormPlan plan_;
};

Result<std::unique_ptr<Kernel>> MakeRmsNorm(const OpContext& op) {
  const bool adds = op.schema().type == "AddRmsNorm";
  const int x = op.slot(adds ? "x1" : "x");
  const RowShape shape = RowsOf(op.in(x).shape, op.in("gamma").shape.rank());
  RmsNormPlan plan;
  plan.rows = shape.rows;
  plan.columns = shape.columns;
  plan.x_slot = x;
  if (adds) plan.x2_slot = op.slot("x2");
  plan.gamma_slot = op.slot("gamma");
  plan.x_dtype = plan.y_dtype = op.in(x).dtype;
  plan.gamma_dtype = op.in("gamma").dtype;
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.rounds = adds;
  return MakeRmsNormKernel(plan);
}

}  // namespace

float NormaliseRow(DataType dtype, const float* x, const float* gamma, int64_t count,
                   double epsilon, bool rounds, float* room, void* y, int64_t first) {
  const auto rstd = static_cast<float>(Reciprocal(SumOfSquares(x, count), count, epsilon));
  ScaleRow(x, rstd, count, room);
  if (rounds && dtype != DataType::kFloat) {
    StoreRow(dtype, room, y, first, count);
    LoadRow(dtype, y, first, count, room);
  }
  MultiplyRow(room, gamma, count, room);
  StoreRow(dtype, room, y, first, count);
  return rstd;
}

std::unique_ptr<Kernel> MakeRmsNormKernel(const RmsNormPlan& plan) {
  return std::make_unique<RmsNormKernel>(plan);
}

void RegisterNormOps(OpRegistry& registry) {
  const AttrSpec epsilon = {"epsilon", AttrValue::Float(1e-6f)};
  registry.Add({.schema = {"LayerNormV4",
                           {{"x"},
                            {"normalized_shape"},
                            {"gamma", PortKind::kOptional},
                            {"beta", PortKind::kOptional}},
                           {{"y"}, {"mean"}, {"rstd"}},
                           {{"epsilon", AttrValue::Float(1e-5f)}}},
                .infer = InferLayerNorm,
                .make_kernel = MakeLayerNorm,
                .value_inputs = {"normalized_shape"}});
  registry.Add({.schema = {"RmsNorm", {{"x"}, {"gamma"}}, {{"y"}, {"rstd"}}, {epsilon}},
                .infer = InferRmsNorm,
                .make_kernel = MakeRmsNorm});
  registry.Add(
      {.schema = {"AddRmsNorm", {{"x1"}, {"x2"}, {"gamma"}}, {{"y"}, {"rstd"}, {"x"}}, {epsilon}},
       .infer = InferAddRmsNorm,
       .make_kernel = MakeRmsNorm});
  RegisterSoftmaxOps(registry);
}

}  // namespace npumesh
