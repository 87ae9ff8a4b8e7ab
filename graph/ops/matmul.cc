// Schemas and inference of the matrix multiplication family. Ops reference 5.6.
#include "graph/ops/matmul.h"

#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_registry.h"

namespace npumesh {
namespace {

int64_t Product(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

// The matrix and batch dimensions of an operand as stored. A vector is a row on the left and a
// column on the right, whatever the transpose flag says.
struct Side {
  Shape batch;
  int64_t rows = 1;
  int64_t columns = 1;
  bool vector = false;
};

Result<Side> SideOf(const OpContext& op, std::string_view port, bool left) {
  const Shape& shape = op.in(port).shape;
  if (shape.rank() == 0) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is a scalar, expected a matrix or vector",
                 op.Who(), port);
  }
  Side side;
  if (shape.rank() == 1) {
    side.vector = true;
    (left ? side.columns : side.rows) = shape[0];
    return side;
  }
  side.rows = shape[shape.rank() - 2];
  side.columns = shape[shape.rank() - 1];
  side.batch = Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  return side;
}

// `batch` with 1s in front up to `rank`.
std::vector<int64_t> PaddedBatch(const Shape& batch, size_t rank) {
  std::vector<int64_t> padded(rank - batch.dims().size(), 1);
  padded.insert(padded.end(), batch.dims().begin(), batch.dims().end());
  return padded;
}

// The output dtype of the operand dtypes: equal floats, int32, or int8 giving int32.
Result<DataType> OutputDtype(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("x1"), op.slot("x2")));
  const DataType dtype = op.in("x1").dtype;
  const bool eight_bits = op.schema().type == "MatMulV2" || op.schema().type == "BatchMatMulV2";
  switch (dtype) {
    case DataType::kFloat:
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kInt32:
      return dtype;
    case DataType::kInt8:
      if (eight_bits) return DataType::kInt32;
      break;
    default:
      break;
  }
  return Error(Code::kUnsupported, "{}: products of {} are not available", op.Who(), Name(dtype));
}

Status AddBias(const OpContext& op, Matmul& matmul) {
  if (op.schema().type == "BatchMatMul" || !op.has("bias")) return Status();
  const TensorType& bias = op.in("bias");
  const bool integers = matmul.y_dtype == DataType::kInt32;
  const bool dtype_fits = integers ? bias.dtype == DataType::kInt32
                                   : bias.dtype == DataType::kFloat || bias.dtype == matmul.y_dtype;
  if (!dtype_fits) {
    return Error(Code::kInvalidArgument, "{}: \"bias\" is {}, but the product is {}", op.Who(),
                 Name(bias.dtype), Name(matmul.y_dtype));
  }
  // Trailing dimensions [.., 1, n]; whatever stands in front must be 1 or the batch.
  const Shape& shape = bias.shape;
  const int rank = shape.rank();
  bool fits = rank >= 1 && shape[rank - 1] == matmul.n && (rank < 2 || shape[rank - 2] == 1);
  Shape batch;
  for (int i = 0; i < rank - 2; ++i) {
    const bool beyond = rank - 2 - i > static_cast<int>(matmul.batch.size());
    if (beyond) {
      fits = fits && shape[i] == 1;
    } else {
      batch.mutable_dims().push_back(shape[i]);
    }
  }
  std::vector<int64_t> padded = PaddedBatch(batch, matmul.batch.size());
  for (size_t i = 0; fits && i < padded.size(); ++i) {
    fits = padded[i] == 1 || padded[i] == matmul.batch[i];
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: \"bias\" is {}, expected [{}] or one row for each "
                 "batch of {}",
                 op.Who(), shape.ToString(), matmul.n, Shape(matmul.batch).ToString());
  }
  matmul.bias = {op.slot("bias"), bias.dtype, std::move(padded), false};
  return Status();
}

bool TransposeFlag(const OpContext& op, int operand) {
  const bool by_adjoint = op.schema().type.starts_with("BatchMatMul");
  if (by_adjoint) return op.attr_bool(operand == 1 ? "adj_x1" : "adj_x2");
  return op.attr_bool(operand == 1 ? "transpose_x1" : "transpose_x2");
}

struct MatmulPlan {
  Matmul matmul;
  Shape y;
};

Result<MatmulPlan> PlanMatmul(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Side left, SideOf(op, "x1", true));
  NPUMESH_ASSIGN_OR_RETURN(const Side right, SideOf(op, "x2", false));
  const bool transpose1 = !left.vector && TransposeFlag(op, 1);
  const bool transpose2 = !right.vector && TransposeFlag(op, 2);
  const int64_t k = transpose1 ? left.rows : left.columns;
  const int64_t k2 = transpose2 ? right.columns : right.rows;
  const Result<Shape> batch = Broadcast(left.batch, right.batch);
  if (k != k2 || !batch.ok()) {
    return Error(Code::kInvalidArgument, "{}: x1 {}{} and x2 {}{} cannot be multiplied", op.Who(),
                 op.in("x1").shape.ToString(), transpose1 ? " transposed" : "",
                 op.in("x2").shape.ToString(), transpose2 ? " transposed" : "");
  }
  MatmulPlan plan;
  Matmul& matmul = plan.matmul;
  matmul.who = op.Who();
  NPUMESH_ASSIGN_OR_RETURN(matmul.y_dtype, OutputDtype(op));
  matmul.batch = batch->dims();
  const size_t rank = matmul.batch.size();
  const DataType dtype = op.in("x1").dtype;
  matmul.x1 = {op.slot("x1"), dtype, PaddedBatch(left.batch, rank), transpose1};
  matmul.x2 = {op.slot("x2"), dtype, PaddedBatch(right.batch, rank), transpose2};
  matmul.m = transpose1 ? left.columns : left.rows;
  matmul.n = transpose2 ? right.rows : right.columns;
  matmul.k = k;
  matmul.x2_value = op.value(op.slot("x2"));
  matmul.packed = op.packed();
  matmul.threads = op.threads();
  NPUMESH_RETURN_IF_ERROR(AddBias(op, matmul));
  plan.y = *batch;
  if (!left.vector) plan.y.mutable_dims().push_back(matmul.m);
  if (!right.vector) plan.y.mutable_dims().push_back(matmul.n);
  return plan;
}

}  // namespace

Status InferMatmul(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(MatmulPlan plan, PlanMatmul(op));
  return SetOutput(op, 0, plan.matmul.y_dtype, std::move(plan.y));
}

bool Matmul::Operand::batch_is_one() const {
  return Product(batch) == 1;
}

void Matmul::Simplify() {
  const bool plain_bias = bias.slot < 0 || bias.batch_is_one();
  if (!plain_bias) return;
  if (x2.batch_is_one() && !x1.transposed) {
    m *= Product(batch);
    batch.clear();
  } else if (x1.batch == x2.batch) {
    batch = {Product(batch)};
  } else {
    return;
  }
  x1.batch = batch;
  x2.batch = batch;
  bias.batch.assign(batch.size(), 1);
}

Result<std::unique_ptr<Kernel>> MakeMatmulKernel(const OpContext& op, int bias_slot,
                                                 DataType y_dtype) {
  NPUMESH_ASSIGN_OR_RETURN(MatmulPlan plan, PlanMatmul(op));
  if (y_dtype != DataType::kUndefined) plan.matmul.y_dtype = y_dtype;
  if (op.out(0).shape.elements() == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  Matmul& matmul = plan.matmul;
  if (bias_slot >= 0) {
    matmul.bias = {bias_slot, DataType::kFloat, std::vector<int64_t>(matmul.batch.size(), 1),
                   false};
  }
  matmul.Simplify();
  if (matmul.y_dtype != DataType::kInt32) return MakeFloatMatmul(matmul);
  if (op.in("x1").dtype == DataType::kInt8) matmul.offset = op.attr_int("offset_x");
  return MakeIntegerMatmul(matmul);
}

void RegisterMatmulOps(OpRegistry& registry) {
  const PortSpec bias = {"bias", PortKind::kOptional};
  const PortSpec offset_w = {"offset_w", PortKind::kOptional};
  const AttrValue no = AttrValue::Bool(false);
  const AttrSpec offset_x = {"offset_x", AttrValue::Int(0)};
  const std::vector<AttrSpec> transpose = {{"transpose_x1", no}, {"transpose_x2", no}};
  const std::vector<AttrSpec> adjoint = {{"adj_x1", no}, {"adj_x2", no}};
  const auto with_offset = [&](std::vector<AttrSpec> attrs) {
    attrs.push_back(offset_x);
    return attrs;
  };
  const auto add = [&](OpSchema schema) {
    ProductTrait product;
    product.left_transposed = schema.attrs[0].name;
    product.right_transposed = schema.attrs[1].name;
    if (schema.inputs.size() > 2) product.bias = bias.name;
    registry.Add({.schema = std::move(schema),
                  .infer = InferMatmul,
                  .make_kernel = [](const OpContext& op) { return MakeMatmulKernel(op); },
                  .product = product,
                  .weight = WeightTrait{.port = product.right}});
  };
  add({"MatMul", {{"x1"}, {"x2"}, bias}, {{"y"}}, transpose});
  add({"MatMulV2", {{"x1"}, {"x2"}, bias, offset_w}, {{"y"}}, with_offset(transpose)});
  add({"BatchMatMul", {{"x1"}, {"x2"}}, {{"y"}}, adjoint});
  add({"BatchMatMulV2", {{"x1"}, {"x2"}, bias, offset_w}, {{"y"}}, with_offset(adjoint)});
  // opImplMode and enable_hf32 let a device compute with fewer bits; nothing does here.
  std::vector<AttrSpec> v3 = with_offset(transpose), batch_v3 = with_offset(adjoint);
  v3.push_back({"opImplMode", AttrValue::Int(1)});
  batch_v3.push_back({"enable_hf32", no});
  add({"MatMulV3", {{"x1"}, {"x2"}, bias, offset_w}, {{"y"}}, std::move(v3)});
  add({"BatchMatMulV3", {{"x1"}, {"x2"}, bias, offset_w}, {{"y"}}, std::move(batch_v3)});
}

}  // namespace npumesh
