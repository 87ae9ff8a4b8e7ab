// Operators that join tensors along a dimension or cut them there: ConcatV2, Pack, Unpack, SplitV,
// Split. Ops reference 5.9.
#include <algorithm>
#include <cstring>
#include <span>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

// The whole tensor as `outer` rows, to which piece p contributes `pieces[p]` neighbouring bytes.
struct Rows {
  int64_t outer = 1;
  std::vector<int64_t> pieces;
};

// One copy for each piece, between the piece on its own and its place in the whole.
struct PieceCopy {
  StridedCopy copy;
  int64_t offset = 0;  // of the piece in the first row of the whole
};

enum class Direction { kJoin, kCut };

std::vector<PieceCopy> PlanPieces(const Rows& rows, Direction direction) {
  int64_t row = 0;
  for (const int64_t bytes : rows.pieces) row += bytes;
  std::vector<PieceCopy> plan;
  int64_t offset = 0;
  for (const int64_t bytes : rows.pieces) {
    const CopyAxis outer = direction == Direction::kJoin ? CopyAxis{rows.outer, bytes, row}
                                                         : CopyAxis{rows.outer, row, bytes};
    plan.push_back({StridedCopy({outer, {bytes, 1, 1}}, 1), offset});
    offset += bytes;
  }
  return plan;
}

bool IsIndex(DataType dtype) {
  return dtype == DataType::kInt32 || dtype == DataType::kInt64;
}

// Sizes may mix int32 (of a Shape that says so) and int64 (constants): they are joined as int64.
bool MixesIndexes(const OpContext& op) {
  const int first = op.slot("x");
  bool mixed = false;
  for (int i = 0; i < op.count("x"); ++i) {
    if (!IsIndex(op.in(first + i).dtype)) return false;
    mixed = mixed || op.in(first + i).dtype != op.in(first).dtype;
  }
  return mixed;
}

DataType JoinedDtype(const OpContext& op) {
  return MixesIndexes(op) ? DataType::kInt64 : op.in("x").dtype;
}

// Inputs first_slot, first_slot + 1, ... into output 0.
std::unique_ptr<Kernel> Join(const Rows& rows, int first_slot) {
  return MakeKernel(
      [plan = PlanPieces(rows, Direction::kJoin), first_slot](const KernelArgs& args) {
        auto* whole = static_cast<std::byte*>(args.out[0]);
        for (size_t p = 0; p < plan.size(); ++p) {
          plan[p].copy.Run(args.in[static_cast<size_t>(first_slot) + p], whole + plan[p].offset);
        }
        return Status();
      });
}

// `values` as int64 at `to`.
void CopyWider(std::span<const int32_t> values, std::byte* to) {
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t wide = values[i];
    std::memcpy(to + i * sizeof wide, &wide, sizeof wide);
  }
}

// As Join, of int64; the inputs in `narrow` (by piece) are int32.
std::unique_ptr<Kernel> JoinIndexes(Rows rows, std::vector<bool> narrow, int first_slot) {
  return MakeKernel(
      [rows = std::move(rows), narrow = std::move(narrow), first_slot](const KernelArgs& args) {
        auto* to = static_cast<std::byte*>(args.out[0]);
        for (int64_t row = 0; row < rows.outer; ++row) {
          for (size_t p = 0; p < narrow.size(); ++p) {
            const auto bytes = static_cast<size_t>(rows.pieces[p]);
            const size_t count = bytes / sizeof(int64_t);
            const size_t begin = static_cast<size_t>(row) * count;
            const void* const from = args.in[static_cast<size_t>(first_slot) + p];
            if (narrow[p]) {
              CopyWider({static_cast<const int32_t*>(from) + begin, count}, to);
            } else if (bytes > 0) {
              std::memcpy(to, static_cast<const int64_t*>(from) + begin, bytes);
            }
            to += bytes;
          }
        }
        return Status();
      });
}

// The tensors of port x, of which `rows` says where they go.
std::unique_ptr<Kernel> JoinInputs(const OpContext& op, Rows rows) {
  const int first = op.slot("x");
  if (!MixesIndexes(op)) return Join(rows, first);
  std::vector<bool> narrow;
  for (int i = 0; i < op.count("x"); ++i) {
    narrow.push_back(op.in(first + i).dtype == DataType::kInt32);
  }
  return JoinIndexes(std::move(rows), std::move(narrow), first);
}

// Input `slot` into outputs 0, 1, ...
std::unique_ptr<Kernel> Cut(const Rows& rows, int slot) {
  return MakeKernel([plan = PlanPieces(rows, Direction::kCut), slot](const KernelArgs& args) {
    const auto* whole = static_cast<const std::byte*>(args.in[slot]);
    for (size_t p = 0; p < plan.size(); ++p) plan[p].copy.Run(whole + plan[p].offset, args.out[p]);
    return Status();
  });
}

// The tensors of the dynamic port x: at least one, of one dtype or indexes of both widths, as many
// as the attribute N says.
Status CheckPieces(const OpContext& op) {
  const int count = op.count("x");
  if (count == 0) return Error(Code::kCorrupt, "{}: no input \"x0\"", op.Who());
  if (op.node().FindAttr("N") != nullptr && op.attr_int("N") != count) {
    return Error(Code::kCorrupt, "{}: attribute \"N\" is {}, but {} tensors are connected",
                 op.Who(), op.attr_int("N"), count);
  }
  const int first = op.slot("x");
  for (int i = 1; i < count && !MixesIndexes(op); ++i) {
    NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, first, first + i));
  }
  return ElementBytes(op, op.in(first).dtype).status();
}

// ---- ConcatV2 ----

// PyTorch's legacy: an empty vector among tensors of higher rank counts for nothing.
bool IsLegacyEmpty(const Shape& shape) {
  return shape == Shape{0};
}

// A scalar counts as a vector of one element.
Shape PieceOf(const OpContext& op, int index) {
  const Shape& shape = op.in(op.slot("x") + index).shape;
  return shape.has_rank() && shape.rank() == 0 ? Shape{1} : shape;
}

// Shape that the pieces must have outside of the concatenated dimension.
Shape LeadingPiece(const OpContext& op) {
  for (int i = 0; i < op.count("x"); ++i) {
    if (Shape piece = PieceOf(op, i); !IsLegacyEmpty(piece)) return piece;
  }
  return PieceOf(op, 0);
}

Result<int> ConcatAxis(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t dim, op.Int("concat_dim"));
  return AxisOf(op, dim, LeadingPiece(op).rank(), "concat_dim");
}

Status InferConcat(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckPieces(op));
  NPUMESH_ASSIGN_OR_RETURN(const int axis, ConcatAxis(op));
  Shape y = LeadingPiece(op);
  int64_t length = 0;
  for (int i = 0; i < op.count("x"); ++i) {
    Shape piece = PieceOf(op, i);
    if (IsLegacyEmpty(piece)) continue;
    const bool equal_rank = piece.rank() == y.rank();
    if (equal_rank && __builtin_add_overflow(length, piece[axis], &length)) length = INT64_MAX;
    if (equal_rank) piece[axis] = y[axis];
    if (piece != y) {
      return Error(Code::kInvalidArgument,
                   "{}: input \"x{}\" is {}, which does not continue {} "
                   "along dimension {}",
                   op.Who(), i, op.in(op.slot("x") + i).shape.ToString(), y.ToString(), axis);
    }
  }
  y[axis] = length;
  return SetOutput(op, 0, JoinedDtype(op), std::move(y));
}

Result<std::unique_ptr<Kernel>> MakeConcat(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, JoinedDtype(op)));
  NPUMESH_ASSIGN_OR_RETURN(const int axis, ConcatAxis(op));
  const Shape& y = op.out(0).shape;
  const int64_t inner = ElementsBetween(y, axis + 1, y.rank()) * static_cast<int64_t>(element);
  Rows rows{ElementsBetween(y, 0, axis), {}};
  for (int i = 0; i < op.count("x"); ++i) {
    const Shape piece = PieceOf(op, i);
    rows.pieces.push_back(IsLegacyEmpty(piece) ? 0 : piece[axis] * inner);
  }
  return JoinInputs(op, std::move(rows));
}

// ---- Pack, Unpack ----

Status InferPack(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckPieces(op));
  const int count = op.count("x");
  const Shape& piece = op.in("x").shape;
  for (int i = 1; i < count; ++i) {
    const Shape& other = op.in(op.slot("x") + i).shape;
    if (other != piece) {
      return Error(Code::kInvalidArgument, "{}: input \"x{}\" is {}, but \"x0\" is {}", op.Who(), i,
                   other.ToString(), piece.ToString());
    }
  }
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           AxisOf(op, op.attr_int("axis"), piece.rank() + 1, "axis"));
  std::vector<int64_t> dims = piece.dims();
  dims.insert(dims.begin() + axis, count);
  return SetOutput(op, 0, JoinedDtype(op), Shape(std::move(dims)));
}

// Outer and piece of a tensor stacked along `axis`.
Rows StackRows(const Shape& stacked, int axis, size_t element) {
  const int64_t inner = ElementsBetween(stacked, axis + 1, stacked.rank());
  return {ElementsBetween(stacked, 0, axis),
          std::vector<int64_t>(static_cast<size_t>(stacked[axis]),
                               inner * static_cast<int64_t>(element))};
}

Result<std::unique_ptr<Kernel>> MakePack(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, JoinedDtype(op)));
  const Shape& y = op.out(0).shape;
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), y.rank(), "axis"));
  return JoinInputs(op, StackRows(y, axis, element));
}

Status InferUnpack(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), x.shape.rank(), "axis"));
  const int64_t num = op.attr_int("num");
  if (num != op.outputs() || num != x.shape[axis]) {
    return Error(Code::kCorrupt,
                 "{}: attribute \"num\" is {}, dimension {} of {} is {} and the "
                 "node has {} outputs; expected three equal numbers",
                 op.Who(), num, axis, x.ToString(), x.shape[axis], op.outputs());
  }
  std::vector<int64_t> dims = x.shape.dims();
  dims.erase(dims.begin() + axis);
  for (int i = 0; i < op.outputs(); ++i) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, x.dtype, Shape(dims)));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeUnpack(const OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, x.dtype));
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), x.shape.rank(), "axis"));
  return Cut(StackRows(x.shape, axis, element), op.slot("x"));
}

// ---- SplitV, Split ----

// Sizes of the pieces along dimension `extent`, with the one -1 replaced by the rest.
Result<std::vector<int64_t>> PieceSizes(const OpContext& op, int64_t extent) {
  const int64_t pieces = op.attr_int("num_split");
  if (pieces != op.outputs()) {
    return Error(Code::kCorrupt, "{}: attribute \"num_split\" is {}, but the node has {} outputs",
                 op.Who(), pieces, op.outputs());
  }
  std::vector<int64_t> sizes;
  if (op.schema().type.starts_with("SplitV")) {
    NPUMESH_ASSIGN_OR_RETURN(sizes, op.Ints("size_splits"));
  } else if (pieces > 0 && extent % pieces == 0) {
    sizes.assign(static_cast<size_t>(pieces), extent / pieces);
  }
  int64_t rest = extent;
  int unknown = 0;
  bool fits = sizes.size() == static_cast<size_t>(pieces);
  for (const int64_t size : sizes) {
    unknown += size == -1 ? 1 : 0;
    fits = fits && size >= -1 && size <= rest;
    if (fits && size > 0) rest -= size;
  }
  if (!fits || unknown > 1 || (unknown == 0 && rest != 0)) {
    return Error(Code::kInvalidArgument, "{}: a dimension of {} cannot be cut into {} pieces of {}",
                 op.Who(), extent, pieces,
                 sizes.empty() ? std::string("equal size") : Shape(sizes).ToString());
  }
  std::replace(sizes.begin(), sizes.end(), int64_t{-1}, rest);
  return sizes;
}

Result<int> SplitAxis(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t dim, op.Int("split_dim"));
  return AxisOf(op, dim, op.in("x").shape.rank(), "split_dim");
}

Status InferSplit(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const int axis, SplitAxis(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, PieceSizes(op, x.shape[axis]));
  for (int i = 0; i < op.outputs(); ++i) {
    Shape piece = x.shape;
    piece[axis] = sizes[static_cast<size_t>(i)];
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, x.dtype, std::move(piece)));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeSplit(const OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, x.dtype));
  NPUMESH_ASSIGN_OR_RETURN(const int axis, SplitAxis(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, PieceSizes(op, x.shape[axis]));
  const int64_t inner =
      ElementsBetween(x.shape, axis + 1, x.shape.rank()) * static_cast<int64_t>(element);
  Rows rows{ElementsBetween(x.shape, 0, axis), {}};
  for (const int64_t size : sizes) rows.pieces.push_back(size * inner);
  return Cut(rows, op.slot("x"));
}

}  // namespace

void RegisterConcatOps(OpRegistry& registry) {
  const PortSpec many_x = {"x", PortKind::kDynamic};
  const PortSpec many_y = {"y", PortKind::kDynamic};
  const AttrSpec axis = {"axis", AttrValue::Int(0)};
  const AttrSpec num_split = {"num_split", Required::kInt};
  registry.Add(
      {.schema = {"ConcatV2", {many_x, {"concat_dim"}}, {{"y"}}, {{"N", AttrValue::Int(1)}}},
       .infer = InferConcat,
       .make_kernel = MakeConcat,
       .value_inputs = {"concat_dim"}});
  registry.Add({.schema = {"Pack", {many_x}, {{"y"}}, {axis, {"N", Required::kInt}}},
                .infer = InferPack,
                .make_kernel = MakePack});
  registry.Add({.schema = {"Unpack", {{"x"}}, {many_y}, {{"num", Required::kInt}, axis}},
                .infer = InferUnpack,
                .make_kernel = MakeUnpack});
  registry.Add(
      {.schema = {"SplitV", {{"x"}, {"size_splits"}, {"split_dim"}}, {many_y}, {num_split}},
       .infer = InferSplit,
       .make_kernel = MakeSplit,
       .value_inputs = {"size_splits", "split_dim"}});
  registry.Add({.schema = {"Split", {{"split_dim"}, {"x"}}, {many_y}, {num_split}},
                .infer = InferSplit,
                .make_kernel = MakeSplit,
                .value_inputs = {"split_dim"}});
}

}  // namespace npumesh
