// Questions about shapes, tensors made from sizes, and sizes that only values decide.
#include <algorithm>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool DrawQuestion(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor&) { return true; });
  if (x == nullptr) return false;
  static const std::vector<std::string> types = {"Shape", "Size", "Rank"};
  const std::string type = w.dice().Pick(types);
  const DataType dtype = w.dice().Chance(50) ? DataType::kInt32 : DataType::kInt64;
  if (type == "Rank") return w.Emit(type, {{"x", x->value}});
  return w.Emit(type, {{"x", x->value}}, {{"dtype", AttrValue::Int(static_cast<int64_t>(dtype))}});
}

bool IsScalarNumber(const PlainTensor& x) {
  return x.rank() == 0 && x.dtype != DataType::kBool;
}

// Sizes from a constant, an input, or what Shape says of a value.
bool DrawFill(GraphWriter& w) {
  const KnownValue* value = w.Pick(IsScalarNumber);
  const Value filled =
      value != nullptr ? value->value : w.AddConst(w.Random(DataType::kFloat, {})).value;
  const KnownValue* like = w.Pick([](const PlainTensor& x) { return x.rank() >= 1; });
  if (like != nullptr && w.dice().Chance(40)) {
    return w.Emit("Shape", {{"x", like->value}}) &&
           w.Emit("Fill", {{"dims", w.last().value}, {"value", filled}});
  }
  Extents dims(static_cast<size_t>(w.dice().Between(0, 2)));
  for (int64_t& extent : dims) extent = w.dice().Between(1, 4);
  return w.Emit("Fill", {{"dims", w.Sizes(dims, w.dice().Chance(40))}, {"value", filled}});
}

Value Scalar(GraphWriter& w, DataType dtype, int64_t value, bool fed) {
  PlainTensor made = Zeros(dtype, {});
  made.at(0) = static_cast<Number>(value);
  return fed ? w.AddInput(made, false, true).value : w.AddConst(made).value;
}

bool DrawRange(GraphWriter& w) {
  const DataType dtype = w.dice().Chance(50) ? DataType::kInt32 : DataType::kInt64;
  return w.Emit("Range", {{"start", Scalar(w, dtype, w.dice().Between(-1, 1), false)},
                          {"limit", Scalar(w, dtype, w.dice().Between(2, 5), w.dice().Chance(60))},
                          {"delta", Scalar(w, dtype, w.dice().Between(1, 2), false)}});
}

bool DrawOneHot(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return (x.dtype == DataType::kInt32 || x.dtype == DataType::kInt64) && x.rank() <= 2;
  });
  if (x == nullptr) return false;
  return w.Emit("OneHot", {{"x", x->value},
                           {"depth", Scalar(w, DataType::kInt32, 3, false)},
                           {"on_value", w.AddConst(w.Random(DataType::kFloat, {})).value},
                           {"off_value", w.AddConst(w.Random(DataType::kFloat, {})).value}});
}

bool IsExactArray(const PlainTensor& x) {
  return x.rank() >= 1 && x.trust == Trust::kExact;
}

bool DrawNonZero(GraphWriter& w) {
  const bool where = w.dice().Chance(30);
  const KnownValue* x = w.Pick([=](const PlainTensor& x) {
    return IsExactArray(x) && (!where || x.dtype == DataType::kBool);
  });
  if (x == nullptr) return false;
  if (where) return w.Emit("Where", {{"x", x->value}});
  return w.Emit("NonZero", {{"x", x->value}},
                {{"transpose", AttrValue::Bool(w.dice().Chance(30))}});
}

bool DrawMaskedSelect(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return x.rank() >= 1 && x.dtype != DataType::kBool; });
  return x != nullptr &&
         w.Emit("MaskedSelect",
                {{"x", x->value}, {"mask", Operand(w, DataType::kBool, x->now.dims)}});
}

bool DrawUnique(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return x.rank() == 1 && (x.dtype == DataType::kInt32 || x.dtype == DataType::kInt64 ||
                             x.dtype == DataType::kFloat);
  });
  return x != nullptr && w.Emit("Unique", {{"x", x->value}}, {}, 2);
}

bool DrawCollective(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return x.dtype == DataType::kFloat || x.dtype == DataType::kInt32;
  });
  if (x == nullptr) return false;
  const GraphBuilder::Attr group{"group", AttrValue::String("hccl_world_group")};
  if (w.dice().Chance(70)) {
    return w.Emit("HcomAllReduce", {{"x", x->value}},
                  {{"reduction", AttrValue::String("sum")}, group});
  }
  if (x->now.rank() == 0 || w.dice().Chance(50)) {
    return w.Emit("HcomBroadcast", {{"x0", x->value}}, {{"root_rank", AttrValue::Int(0)}, group});
  }
  return w.Emit("HcomAllGather", {{"x", x->value}}, {{"rank_size", AttrValue::Int(1)}, group});
}

}  // namespace

std::vector<Draw> ShapingDraws() {
  return {{{"Shape", "Size", "Rank"}, 2, DrawQuestion},
          {{"Shape", "Fill"}, 2, DrawFill},
          {{"Range"}, 2, DrawRange},
          {{"OneHot"}, 1, DrawOneHot},
          {{"NonZero", "Where"}, 1, DrawNonZero},
          {{"MaskedSelect"}, 1, DrawMaskedSelect},
          {{"Unique"}, 1, DrawUnique},
          {{"HcomAllReduce", "HcomBroadcast", "HcomAllGather"}, 1, DrawCollective}};
}

}  // namespace npumesh::fuzz
