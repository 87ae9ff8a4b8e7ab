// Reductions, running sums and order.
#include <algorithm>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool IsReducible(const PlainTensor& x) {
  return x.rank() >= 1 && x.count() > 0 &&
         (IsFloat(x.dtype) || x.dtype == DataType::kInt32 || x.dtype == DataType::kInt64);
}

bool IsFloatRow(const PlainTensor& x) {
  return IsReducible(x) && IsFloat(x.dtype);
}

bool IsBool(const PlainTensor& x) {
  return x.rank() >= 1 && x.count() > 0 && x.dtype == DataType::kBool;
}

int64_t RandomSignedAxis(GraphWriter& w, const PlainTensor& x) {
  return w.dice().Between(-x.rank(), x.rank() - 1);
}

std::vector<int64_t> RandomAxes(GraphWriter& w, const PlainTensor& x) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (w.dice().Chance(50)) axes.push_back(d);
  }
  if (axes.empty()) axes.push_back(RandomSignedAxis(w, x));
  return axes;
}

Draw ReductionDraw(const std::string& type, const Fits& fits, const Fits& fits_attribute) {
  return {{type, type + "D"}, 1, [=](GraphWriter& w) {
            const bool attribute = w.dice().Chance(30);
            const KnownValue* x = w.Pick(attribute ? fits_attribute : fits);
            if (x == nullptr) return false;
            const std::vector<int64_t> axes = RandomAxes(w, x->now);
            const GraphBuilder::Attr keep{"keep_dims", AttrValue::Bool(w.dice().Chance(50))};
            if (attribute) {
              return w.Emit(type + "D", {{"x", x->value}}, {keep, {"axes", AttrValue::Ints(axes)}});
            }
            return w.Emit(type, {{"x", x->value}, {"axes", w.Ints(axes)}}, {keep});
          }};
}

bool DrawArgExtreme(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsReducible);
  return x != nullptr &&
         w.Emit(w.dice().Chance(50) ? "ArgMaxV2" : "ArgMin",
                {{"x", x->value}, {"dimension", w.Int(RandomSignedAxis(w, x->now))}});
}

bool DrawCumsum(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsReducible);
  return x != nullptr &&
         w.Emit("Cumsum", {{"x", x->value}, {"axis", w.Int(RandomSignedAxis(w, x->now))}},
                {{"exclusive", AttrValue::Bool(w.dice().Chance(30))},
                 {"reverse", AttrValue::Bool(w.dice().Chance(30))}});
}

bool DrawSort(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsReducible);
  return x != nullptr && w.Emit("Sort", {{"x", x->value}},
                                {{"axis", AttrValue::Int(-1)},
                                 {"stable", AttrValue::Bool(true)},
                                 {"descending", AttrValue::Bool(w.dice().Chance(50))}},
                                2);
}

bool DrawTopK(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return IsReducible(x) && !IsOpen(x.dims.back()); });
  if (x == nullptr) return false;
  PlainTensor k = Zeros(DataType::kInt32, {});
  k.at(0) = static_cast<Number>(w.dice().Between(1, x->now.dims.back()));
  const Value count = w.dice().Chance(30) ? w.AddInput(k, false, true).value : w.AddConst(k).value;
  return w.Emit("TopKV2", {{"x", x->value}, {"k", count}},
                {{"largest", AttrValue::Bool(w.dice().Chance(70))}}, 2);
}

}  // namespace

std::vector<Draw> ReduceDraws() {
  std::vector<Draw> draws;
  for (const char* type : {"ReduceSum", "ReduceMax", "ReduceMin"}) {
    draws.push_back(ReductionDraw(type, IsReducible, IsFloatRow));
  }
  draws.push_back(ReductionDraw("ReduceMean", IsFloatRow, IsFloatRow));
  const Fits singles = [](const PlainTensor& x) {
    return IsReducible(x) && x.dtype == DataType::kFloat;
  };
  draws.push_back(ReductionDraw("ReduceProd", singles, singles));
  draws.push_back(ReductionDraw("ReduceAny", IsBool, IsBool));
  draws.push_back(ReductionDraw("ReduceAll", IsBool, IsBool));
  draws.push_back({{"ArgMaxV2", "ArgMin"}, 1, DrawArgExtreme});
  draws.push_back({{"Cumsum"}, 1, DrawCumsum});
  draws.push_back({{"Sort"}, 1, DrawSort});
  draws.push_back({{"TopKV2"}, 1, DrawTopK});
  return draws;
}

}  // namespace npumesh::fuzz
