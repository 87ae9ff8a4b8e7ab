// Operators that join tensors along a dimension or cut them there: ConcatV2, Pack, Unpack, SplitV,
// Split.
#include <algorithm>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/strided_copy.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// One copy, between a piece alone and its place in the whole.
struct PieceCopy {
  StridedCopy copy;
  int64_t offset = 0;  // of the piece in the first row of the whole
};

// The whole tensor as `outer` rows, to which piece p contributes `pieces[p]` neighbouring bytes.
struct PiecesPlan : Planned {
  int slot = 0;  // of the whole, or of the first piece
  DataType dtype = DataType::kUndefined;
  size_t element = 0;  // bytes
  int64_t outer = 1;
  std::vector<int64_t> pieces;
  std::vector<bool> narrow;       // by piece: int32 that is joined as int64; empty: none is
  std::vector<PieceCopy> copies;  // made by PreparePieces
};

// Pieces with `sizes` positions along an axis of the whole.
void SetPieces(PiecesPlan* plan, const Shape& whole, int axis, const std::vector<int64_t>& sizes) {
  plan->outer = ElementsBetween(whole, 0, axis);
  const int64_t inner =
      ElementsBetween(whole, axis + 1, whole.rank()) * static_cast<int64_t>(plan->element);
  for (const int64_t size : sizes) plan->pieces.push_back(size * inner);
}

template <bool kJoin>
Status PreparePieces(const OpContext&, PiecesPlan* plan) {
  if (!plan->narrow.empty()) return Status();  // element by element
  int64_t row = 0;
  for (const int64_t bytes : plan->pieces) row += bytes;
  int64_t offset = 0;
  for (const int64_t bytes : plan->pieces) {
    const CopyAxis outer = {plan->outer, kJoin ? bytes : row, kJoin ? row : bytes};
    plan->copies.push_back({StridedCopy({outer, {bytes, 1, 1}}, 1), offset});
    offset += bytes;
  }
  return Status();
}

// ---- joining ----

// Begins a plan that joins the tensors of port x: as many as the attribute N says, at least one, of
// one dtype. Sizes may mix int32 (of a Shape that says so) and int64 (constants): they become
// int64.
PiecesPlan JoinOf(const OpContext& op, Check& check) {
  const int count = op.count("x");
  const bool counts = op.node().FindAttr("N") != nullptr;
  check.Consistent(count > 0, "no input \"x0\"");
  check.Consistent(!counts || op.attr_int("N") == count,
                   "attribute \"N\" is {}, but {} tensors are connected", op.attr_int("N"), count);
  PiecesPlan plan;
  if (!check.ok()) return plan;
  plan.slot = op.slot("x");
  plan.dtype = op.in(plan.slot).dtype;
  bool mixed = false, indexes = true;
  for (int i = 0; i < count; ++i) {
    const DataType dtype = op.in(plan.slot + i).dtype;
    mixed = mixed || dtype != plan.dtype;
    indexes = indexes && kIndices.Contains(dtype);
    plan.narrow.push_back(dtype == DataType::kInt32);
  }
  for (int i = 1; mixed && !indexes && i < count; ++i) {
    check.Keep(ExpectSameDtype(op, plan.slot, plan.slot + i));
  }
  if (mixed) plan.dtype = DataType::kInt64;
  if (!mixed) plan.narrow.clear();
  plan.element = check.Take(ElementBytes(op, plan.dtype));
  return plan;
}

void JoinIndexes(const PiecesPlan& plan, const void* const* in, int64_t* to) {
  for (int64_t row = 0; row < plan.outer; ++row) {
    for (size_t p = 0; p < plan.narrow.size(); ++p) {
      const int64_t count = plan.pieces[p] / int64_t{sizeof(int64_t)}, first = row * count;
      to = plan.narrow[p] ? std::copy_n(static_cast<const int32_t*>(in[p]) + first, count, to)
                          : std::copy_n(static_cast<const int64_t*>(in[p]) + first, count, to);
    }
  }
}

Status RunJoin(const PiecesPlan& plan, const KernelArgs& args) {
  auto* whole = static_cast<std::byte*>(args.out[0]);
  const void* const* in = args.in + plan.slot;
  if (!plan.narrow.empty()) JoinIndexes(plan, in, static_cast<int64_t*>(args.out[0]));
  for (size_t p = 0; p < plan.copies.size(); ++p) {
    plan.copies[p].copy.Run(in[p], whole + plan.copies[p].offset);
  }
  return Status();
}

// ---- ConcatV2 ----

// PyTorch's legacy: an empty vector among tensors of higher rank counts for nothing.
bool IsLegacyEmpty(const Shape& shape) {
  return shape == Shape{0};
}

// The shapes that are joined. A scalar counts as a vector of one element.
std::vector<Shape> ShapesOf(const OpContext& op) {
  std::vector<Shape> shapes;
  for (int i = 0; i < op.count("x"); ++i) {
    const Shape& shape = op.in(op.slot("x") + i).shape;
    shapes.push_back(shape.rank() == 0 ? Shape{1} : shape);
  }
  return shapes;
}

PiecesPlan PlanConcat(const OpContext& op, Check& check) {
  PiecesPlan plan = JoinOf(op, check);
  if (!check.ok()) return {};
  std::vector<Shape> shapes = ShapesOf(op);
  const auto leading = std::find_if_not(shapes.begin(), shapes.end(), IsLegacyEmpty);
  Shape y = leading == shapes.end() ? shapes[0] : *leading;
  const int axis = check.Axis("concat_dim", y.rank());
  if (!check.ok()) return {};
  int64_t length = 0;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Shape& piece = shapes[i];
    const bool joins = !IsLegacyEmpty(piece) && piece.rank() == y.rank();
    sizes.push_back(joins ? piece[axis] : 0);
    if (IsLegacyEmpty(piece)) continue;
    if (__builtin_add_overflow(length, sizes.back(), &length)) length = INT64_MAX;
    if (joins) piece[axis] = y[axis];
    check.That(piece == y, "input \"x{}\" is {}, which does not continue {} along dimension {}", i,
               op.in(plan.slot + static_cast<int>(i)).shape, y, axis);
  }
  y[axis] = length;
  SetPieces(&plan, y, axis, sizes);
  plan.outputs = {{plan.dtype, std::move(y)}};
  return plan;
}

// ---- Pack, Unpack ----

PiecesPlan PlanPack(const OpContext& op, Check& check) {
  PiecesPlan plan = JoinOf(op, check);
  if (!check.ok()) return {};
  const int count = op.count("x");
  const Shape& piece = op.in("x").shape;
  for (int i = 1; i < count; ++i) {
    const Shape& other = op.in(plan.slot + i).shape;
    check.That(other == piece, "input \"x{}\" is {}, but \"x0\" is {}", i, other, piece);
  }
  const int axis = check.Axis("axis", piece.rank() + 1);
  Shape y = Spliced(piece, axis, axis, {count});
  SetPieces(&plan, y, axis, std::vector<int64_t>(static_cast<size_t>(count), 1));
  plan.outputs = {{plan.dtype, std::move(y)}};
  return plan;
}

// ---- cutting ----

Status RunCut(const PiecesPlan& plan, const KernelArgs& args) {
  const auto* whole = static_cast<const std::byte*>(args.in[plan.slot]);
  for (size_t p = 0; p < plan.copies.size(); ++p) {
    plan.copies[p].copy.Run(whole + plan.copies[p].offset, args.out[p]);
  }
  return Status();
}

PiecesPlan CutOf(const OpContext& op, Check& check) {
  PiecesPlan plan;
  plan.slot = op.slot("x");
  plan.element = check.Take(ElementBytes(op, op.in(plan.slot).dtype));
  return plan;
}

PiecesPlan PlanUnpack(const OpContext& op, Check& check) {
  PiecesPlan plan = CutOf(op, check);
  const TensorType& x = op.in("x");
  const int axis = check.Axis("axis", x.shape.rank());
  if (!check.ok()) return {};
  const int64_t num = op.attr_int("num");
  check.Consistent(num == op.outputs() && num == x.shape[axis],
                   "attribute \"num\" is {}, dimension {} of {} is {} and the node has {} outputs; "
                   "expected three equal numbers",
                   num, axis, x, x.shape[axis], op.outputs());
  const auto count = static_cast<size_t>(op.outputs());
  SetPieces(&plan, x.shape, axis, std::vector<int64_t>(count, 1));
  plan.outputs.assign(count, {x.dtype, Spliced(x.shape, axis, axis + 1, {})});
  return plan;
}

// Sizes of the pieces along dimension `extent`, with the one -1 replaced by the rest.
std::vector<int64_t> PieceSizes(const OpContext& op, int64_t extent, bool listed, Check& check) {
  const int64_t pieces = op.attr_int("num_split");
  check.Consistent(pieces == op.outputs(),
                   "attribute \"num_split\" is {}, but the node has {} outputs", pieces,
                   op.outputs());
  if (!check.ok()) return {};
  std::vector<int64_t> sizes;
  if (listed) {
    sizes = check.Take(op.Ints("size_splits"));
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
  check.That(fits && unknown <= 1 && (unknown == 1 || rest == 0),
             "a dimension of {} cannot be cut into {} pieces of {}", extent, pieces,
             sizes.empty() ? std::string("equal size") : Shape(sizes).ToString());
  std::replace(sizes.begin(), sizes.end(), int64_t{-1}, rest);
  return sizes;
}

template <bool kListed>
PiecesPlan PlanSplit(const OpContext& op, Check& check) {
  PiecesPlan plan = CutOf(op, check);
  const TensorType& x = op.in("x");
  const int axis = check.Axis("split_dim", x.shape.rank());
  if (!check.ok()) return {};
  const std::vector<int64_t> sizes = PieceSizes(op, x.shape[axis], kListed, check);
  if (!check.ok()) return {};
  SetPieces(&plan, x.shape, axis, sizes);
  for (const int64_t size : sizes) {
    plan.outputs.push_back(x);
    plan.outputs.back().shape[axis] = size;
  }
  return plan;
}

}  // namespace

void RegisterConcatOps(OpRegistry& registry) {
  registry.Add(Define<PlanConcat, RunJoin, PreparePieces<true>>(
      "ConcatV2(x..., concat_dim; N=1) -> y",
      {.value_inputs = {"concat_dim"}, .axes = "x[.. a ..] -> y[.. a* ..]; a = concat_dim"}));
  registry.Add(Define<PlanPack, RunJoin, PreparePieces<true>>(
      "Pack(x...; axis=0, N:int) -> y", {.axes = "x[..] -> y[.. n ..]; n = axis"}));
  registry.Add(Define<PlanUnpack, RunCut, PreparePieces<false>>(
      "Unpack(x; num:int, axis=0) -> y...", {.axes = "x[.. n! ..] -> y[.. ..]; n = axis"}));
  registry.Add(Define<PlanSplit<true>, RunCut, PreparePieces<false>>(
      "SplitV(x, size_splits, split_dim; num_split:int) -> y...",
      {.value_inputs = {"size_splits", "split_dim"},
       .axes = "x[.. a* ..], size_splits[#a] -> y[.. a ..]; a = split_dim"}));
  registry.Add(Define<PlanSplit<false>, RunCut, PreparePieces<false>>(
      "Split(split_dim, x; num_split:int) -> y...",
      {.value_inputs = {"split_dim"}, .axes = "x[.. a* ..] -> y[.. a ..]; a = split_dim"}));
}

}  // namespace npumesh
