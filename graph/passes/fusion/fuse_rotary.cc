// RotaryEmbeddingFusionPass: rotary embedding in the half-split form as frameworks write it out
// (Su et al., RoFormer, 2021),
//
//   y = x * cos + ConcatV2(Neg(x2), x1) * sin
//
// with the halves x1 and x2 of the last axis cut off by a split or by slices, and tables that
// broadcast along the axes before it. The fused step has the bits of the operators one by one. It
// reads x across a Transpose that serves it alone and leaves the last axis where it is.
#include <algorithm>

#include "graph/ops/attention/half_rotation.h"
#include "graph/ops/core/type_set.h"
#include "graph/ops/shape/slice.h"
#include "graph/passes/fusion/fusion_view.h"
#include "graph/passes/fusion/strided_view.h"

namespace npumesh {
namespace {

// One place where the pattern stands.
struct RotaryMatch {
  std::vector<NodeId> nodes;
  Value x;
  Value cos;
  Value sin;
  Value y;
  HalfRotation rotation;
};

// What a node cuts off a tensor: the neighbours from element `first` on.
struct CutPiece {
  NodeId node = kNoNode;
  Value whole;
  int64_t first = 0;
};

class RotaryFinder {
 public:
  explicit RotaryFinder(FusionView& view) : view_(view) {}

  // `join` stands where the halves change places.
  void Try(NodeId join) {
    match_ = {};
    std::string_view why = FindHalves(join);
    if (why.empty()) why = FindProducts(join);
    const bool in_order = !why.empty() || !FindTranspose();
    const std::vector<std::optional<Value>> inputs = {match_.x, match_.cos, match_.sin};
    if (why.empty()) why = view_.WhyNotFuse(match_.nodes, inputs, {match_.y});
    if (!why.empty()) return view_.Refuse(kRotaryFusionPass, join, why);
    FusedStep step;
    step.inputs = inputs;
    step.elementwise = in_order;  // a pair is read before it is written
    step.make_kernel = [rotation = match_.rotation] {
      return Result<std::unique_ptr<Kernel>>(MakeHalfRotation(rotation));
    };
    step.nodes = std::move(match_.nodes);
    view_.Take(std::move(step));
  }

  // Two parts are joined, the first of them negated.
  bool BeginsAt(NodeId join) const {
    if (!view_.Is(join, {"ConcatV2", "ConcatD"})) return false;
    const OpContext& op = view_.context(join);
    return op.count("x") == 2 && view_.Is(view_.Producer(join, op.slot("x")), {"Neg"});
  }

 private:
  const TensorType& out(NodeId id) const { return view_.context(id).out(0); }
  const TensorType& y() const { return match_.rotation.y; }

  // Back from the join to x. Says what is in the way, as do the other functions.
  std::string_view FindHalves(NodeId join) {
    const int first = view_.context(join).slot("x");
    const NodeId negated = view_.Producer(join, first);
    const std::optional<CutPiece> high = PieceIn(negated, 0);
    const std::optional<CutPiece> low = PieceIn(join, first + 1);
    if (!high || !low || high->whole != low->whole) return kNoHalves;
    const TensorType& type = WholeType(*high);
    const int64_t width = type.shape.rank() > 0 ? type.shape.dims().back() : 0;
    if (type.shape.elements() == 0) return "it rotates no elements";
    if (!kFloats.Contains(type.dtype)) return "it rotates no floats";
    if (width % 2 != 0 || low->first != 0 || high->first != width / 2) return kNoHalves;
    Shape half = type.shape;
    half.mutable_dims().back() = width / 2;
    const bool halves =
        out(negated).shape == half && view_.context(join).in(first + 1).shape == half;
    if (!halves || out(join) != type) return kNoHalves;
    match_.x = high->whole;
    match_.rotation.y = type;
    match_.nodes = {high->node, negated, join};
    if (low->node != high->node) match_.nodes.push_back(low->node);
    return "";
  }

  const TensorType& WholeType(const CutPiece& piece) const {
    return view_.context(piece.node).in("x");
  }

  // What is fed to a slot, if a node has cut it off a tensor.
  std::optional<CutPiece> PieceIn(NodeId reader, int slot) const {
    const std::optional<Value> value = view_.SlotValue(reader, slot);
    if (!value || !view_.Free(value->node)) return std::nullopt;
    const NodeId node = value->node;
    const OpContext& op = view_.context(node);
    std::optional<int64_t> first;
    if (view_.Is(node, {"SplitV", "SplitVD", "Split", "SplitD"})) {
      // Along the last axis, as the shape of the part shows.
      if (op.outputs() == 2) first = value->port == 0 ? 0 : op.out(0).shape.dims().back();
    } else {
      first = FirstOfSlice(op);
    }
    if (!first) return std::nullopt;
    return CutPiece{node, *view_.SlotValue(node, op.slot("x")), *first};
  }

  // On from the join: the product with sin, the sum, and the product with cos.
  std::string_view FindProducts(NodeId join) {
    const NodeId turned = view_.OnlyReader(join);
    const int sin = view_.Is(turned, {"Mul"}) ? view_.OtherSlot(turned, join) : -1;
    if (sin < 0) return "no product alone reads the joined halves";
    const NodeId sum = view_.OnlyReader(turned);
    const int other = view_.Is(sum, {"Add", "AddV2"}) ? view_.OtherSlot(sum, turned) : -1;
    if (other < 0) return "no sum alone reads the product with sin";
    const NodeId straight = view_.Producer(sum, other);
    if (!view_.Is(straight, {"Mul"})) return kNoCosine;
    const int cos = view_.SlotValue(straight, 0) == match_.x ? 1 : 0;
    if (view_.SlotValue(straight, 1 - cos) != match_.x) return kNoCosine;
    match_.nodes.insert(match_.nodes.end(), {turned, straight, sum});
    match_.cos = *view_.SlotValue(straight, cos);
    match_.sin = *view_.SlotValue(turned, sin);
    match_.y = {sum, 0};
    const bool same = out(turned) == y() && out(straight) == y() && out(sum) == y();
    const bool rows = same && RowsOf(StridedView(y().shape), match_.rotation.x) &&
                      RowsOf(view_.context(straight).in(cos), match_.rotation.cos) &&
                      RowsOf(view_.context(turned).in(sin), match_.rotation.sin);
    return rows ? "" : "a table does not give a row of its type for each row";
  }

  // Reads x where it lies before a Transpose that nothing else reads, if there is one.
  bool FindTranspose() {
    const NodeId id = match_.x.port == 0 ? match_.x.node : kNoNode;
    if (!view_.Free(id) || view_.op(id).axes.permutation().empty()) return false;
    if (!view_.OnlyReadInside(id, match_.nodes)) return false;
    Result<std::vector<int64_t>> order = view_.context(id).Ints(view_.op(id).axes.permutation());
    if (!order.ok()) return false;
    StridedView rows(view_.context(id).in(0).shape);
    for (int64_t& axis : *order) axis += axis < 0 ? rows.rank() : 0;
    rows.Permute(*order);
    if (!RowsOf(rows, match_.rotation.x)) return false;
    match_.x = *view_.SlotValue(id, 0);
    match_.nodes.push_back(id);
    return true;
  }

  // The distances of rows in a tensor that broadcasts to y. False: its rows are not those of y.
  bool RowsOf(const TensorType& type, std::vector<int64_t>& strides) const {
    return type.dtype == y().dtype && RowsOf(StridedView(type.shape), strides);
  }
  bool RowsOf(StridedView rows, std::vector<int64_t>& strides) const {
    const int last = y().shape.rank() - 1;
    if (!rows.Broadcast(y().shape) || rows.stride(last) != 1) return false;
    strides.clear();
    for (int i = 0; i < last; ++i) {
      const std::optional<int64_t> stride = rows.stride(i);
      if (!stride) return false;
      strides.push_back(*stride);
    }
    return true;
  }

  static constexpr std::string_view kNoHalves =
      "what it joins are not the halves of the last axis of one tensor";
  static constexpr std::string_view kNoCosine =
      "the other summand is no product of the tensor that it rotates";

  FusionView& view_;
  RotaryMatch match_;
};

}  // namespace

void FuseRotary(FusionView& view) {
  RotaryFinder finder(view);
  for (const NodeId id : view.order()) {
    if (finder.BeginsAt(id)) finder.Try(id);
  }
}

}  // namespace npumesh
