// Triu and Tril: one side of the diagonal of every matrix, zeros on the other. Ops reference 5.9.
#include <algorithm>
#include <cstring>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

Status InferTriangle(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  if (x.shape.rank() < 2) {
    return Error(Code::kInvalidArgument, "{}: x is {}, expected rank 2 or more", op.Who(),
                 x.ToString());
  }
  return SetOutput(op, 0, x.dtype, x.shape);
}

struct Triangle {
  bool upper = false;
  int64_t matrices = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t diagonal = 0;  // within [-rows, columns]
  size_t element = 0;
};

// First column of `row` that belongs to the upper triangle (one past the lower one).
int64_t Border(const Triangle& t, int64_t row) {
  return std::clamp(row + t.diagonal + (t.upper ? 0 : 1), int64_t{0}, t.columns);
}

void CopyTriangle(const Triangle& t, const std::byte* from, std::byte* to) {
  const size_t row_bytes = static_cast<size_t>(t.columns) * t.element;
  for (int64_t i = 0; i < t.matrices * t.rows; ++i, from += row_bytes, to += row_bytes) {
    const size_t left = static_cast<size_t>(Border(t, i % t.rows)) * t.element;
    const size_t right = row_bytes - left;
    if (t.upper) {
      std::memset(to, 0, left);
      std::memcpy(to + left, from + left, right);
    } else {
      std::memcpy(to, from, left);
      std::memset(to + left, 0, right);
    }
  }
}

Result<std::unique_ptr<Kernel>> MakeTriangle(const OpContext& op) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  Triangle t;
  t.upper = op.schema().type == "Triu";
  t.matrices = ElementsBetween(x.shape, 0, rank - 2);
  t.rows = x.shape[rank - 2];
  t.columns = x.shape[rank - 1];
  t.diagonal = std::clamp(op.attr_int("diagonal"), -t.rows, t.columns);
  NPUMESH_ASSIGN_OR_RETURN(t.element, ElementBytes(op, x.dtype));
  return MakeKernel([t](const KernelArgs& args) {
    if (t.matrices * t.rows * t.columns == 0) return Status();
    CopyTriangle(t, static_cast<const std::byte*>(args.in[0]),
                 static_cast<std::byte*>(args.out[0]));
    return Status();
  });
}

}  // namespace

void RegisterTriangleOps(OpRegistry& registry) {
  for (const std::string_view type : {"Triu", "Tril"}) {
    registry.Add({.schema = {type, {{"x"}}, {{"y"}}, {{"diagonal", AttrValue::Int(0)}}},
                  .infer = InferTriangle,
                  .make_kernel = MakeTriangle});
  }
}

}  // namespace npumesh
