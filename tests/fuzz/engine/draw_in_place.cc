// Writers: what they overwrite may be an input, a constant, computed, a view, or written before,
// and their operands may lie in the storage that they overwrite.
#include <algorithm>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool IsTarget(const PlainTensor& x) {
  return x.rank() >= 1 && x.count() > 0;
}

bool IsNumber(const PlainTensor& x) {
  return IsTarget(x) && x.dtype != DataType::kBool;
}

// A target, with inputs that keep what is written at the front.
const KnownValue* PickTarget(GraphWriter& w, const Fits& fits) {
  if (!w.dice().Chance(50)) return w.Pick(fits);
  std::vector<const KnownValue*> refs;
  for (const KnownValue& known : w.known()) {
    if (known.ref && fits(known.now)) refs.push_back(&known);
  }
  return refs.empty() ? w.Pick(fits) : w.dice().Pick(refs);
}

// Constant row numbers, each once: an open dimension is only sure to have the first.
PlainTensor Rows(GraphWriter& w, int64_t extent, bool all) {
  const int64_t count = IsOpen(extent) ? 1 : all ? extent : w.dice().Between(1, extent);
  PlainTensor rows = Zeros(w.dice().Chance(50) ? DataType::kInt64 : DataType::kInt32, {count});
  const int64_t shift = IsOpen(extent) ? 0 : w.dice().Below(extent);
  for (int64_t i = 0; i < count; ++i) {
    rows.at(i) = static_cast<Number>(IsOpen(extent) ? 0 : (i + shift) % extent);
  }
  return rows;
}

bool DrawAssign(GraphWriter& w) {
  const KnownValue* ref = PickTarget(w, IsTarget);
  return ref != nullptr && w.Emit("Assign", {{"ref", ref->value},
                                             {"value", Operand(w, ref->now.dtype, ref->now.dims)}});
}

Draw RowsDraw(const std::string& type) {
  return {{type}, 2, [=](GraphWriter& w) {
            const KnownValue* var = PickTarget(w, IsNumber);
            if (var == nullptr) return false;
            PlainTensor rows = Rows(w, var->now.dims[0], w.dice().Chance(40));
            Extents updates = var->now.dims;
            updates[0] = rows.count();
            const Value given = Operand(w, var->now.dtype, updates);
            return w.Emit(
                type,
                {{"var", var->value}, {"indices", w.AddConst(rows).value}, {"updates", given}});
          }};
}

Draw TuplesDraw(const std::string& type) {
  return {{type}, 1, [=](GraphWriter& w) {
            const KnownValue* var = PickTarget(w, IsNumber);
            if (var == nullptr) return false;
            PlainTensor rows = Rows(w, var->now.dims[0], w.dice().Chance(40));
            Extents updates = var->now.dims;
            updates[0] = rows.count();
            rows.dims.push_back(1);
            const Value given = Operand(w, var->now.dtype, updates);
            return w.Emit(
                type,
                {{"var", var->value}, {"indices", w.AddConst(rows).value}, {"updates", given}});
          }};
}

bool DrawIndexAdd(GraphWriter& w) {
  const KnownValue* var = PickTarget(
      w, [](const PlainTensor& x) { return IsNumber(x) && x.dtype != DataType::kInt64; });
  if (var == nullptr) return false;
  const int64_t axis = w.dice().Below(var->now.rank());
  const PlainTensor rows = Rows(w, var->now.dims[static_cast<size_t>(axis)], w.dice().Chance(40));
  Extents updates = var->now.dims;
  updates[static_cast<size_t>(axis)] = rows.count();
  const Value given = Operand(w, var->now.dtype, updates);
  return w.Emit("InplaceIndexAdd",
                {{"var", var->value}, {"indices", w.AddConst(rows).value}, {"updates", given}},
                {{"axis", AttrValue::Int(axis)}});
}

// A writer that no output shows.
bool DrawNegInplace(GraphWriter& w) {
  const KnownValue* x = PickTarget(w, [](const PlainTensor& x) {
    return IsTarget(x) && (IsFloat(x.dtype) || x.dtype == DataType::kInt32);
  });
  return x != nullptr && w.Emit("ForeachNegInplace", {{"x0", x->value}}, {}, 0);
}

// A run of elements to another place.
bool DrawViewCopy(GraphWriter& w) {
  const KnownValue* dst =
      PickTarget(w, [](const PlainTensor& x) { return IsNumber(x) && !HasOpen(x.dims); });
  if (dst == nullptr) return false;
  const KnownValue* src = w.Pick([&](const PlainTensor& x) {
    return x.dtype == dst->now.dtype && x.count() > 0 && !HasOpen(x.dims);
  });
  if (src == nullptr) src = dst;
  const int64_t most = std::min(dst->now.count(), src->now.count());
  const int64_t size = w.dice().Between(1, most);
  const int64_t to = w.dice().Between(0, dst->now.count() - size);
  const int64_t from = w.dice().Between(0, src->now.count() - size);
  const Value one = w.Ints({1}), extent = w.Ints({size});
  return w.Emit("ViewCopy", {{"dst", dst->value},
                             {"dst_size", extent},
                             {"dst_stride", one},
                             {"dst_storage_offset", w.Ints({to})},
                             {"src", src->value},
                             {"src_size", extent},
                             {"src_stride", one},
                             {"src_storage_offset", w.Ints({from})}});
}

}  // namespace

std::vector<Draw> InPlaceDraws() {
  std::vector<Draw> draws;
  draws.push_back({{"Assign"}, 6, DrawAssign});
  for (const char* type : {"ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMax"}) {
    draws.push_back(RowsDraw(type));
  }
  for (const char* type : {"ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub"}) {
    draws.push_back(TuplesDraw(type));
  }
  draws.push_back({{"InplaceIndexAdd"}, 2, DrawIndexAdd});
  draws.push_back({{"ForeachNegInplace"}, 1, DrawNegInplace});
  draws.push_back({{"ViewCopy"}, 2, DrawViewCopy});
  return draws;
}

}  // namespace npumesh::fuzz
