#include "graph/aclnn/calls/promotion.h"

#include <algorithm>

namespace npumesh {
namespace {

enum class Kind : uint8_t { kNone, kBool, kInteger, kReal, kComplex };

bool IsComplex(DataType type) {
  return type == DataType::kComplex32 || type == DataType::kComplex64 ||
         type == DataType::kComplex128;
}

Kind KindOf(DataType type) {
  if (type == DataType::kUndefined) return Kind::kNone;
  if (type == DataType::kBool) return Kind::kBool;
  if (IsInteger(type)) return Kind::kInteger;
  return IsComplex(type) ? Kind::kComplex : Kind::kReal;
}

DataType NumberType(DataType type) {
  switch (KindOf(type)) {
    case Kind::kInteger:
      return DataType::kInt64;
    case Kind::kReal:
      return DataType::kFloat;
    case Kind::kComplex:
      return DataType::kComplex64;
    default:
      return type;
  }
}

DataType SignedOf(int bits) {
  return bits <= 8    ? DataType::kInt8
         : bits <= 16 ? DataType::kInt16
         : bits <= 32 ? DataType::kInt32
                      : DataType::kInt64;
}

DataType PromoteIntegers(DataType a, DataType b) {
  const int bits_a = BitsOf(a), bits_b = BitsOf(b);
  if (IsSignedInteger(a) == IsSignedInteger(b)) return bits_a >= bits_b ? a : b;
  const int bits_signed = IsSignedInteger(a) ? bits_a : bits_b;
  const int bits_unsigned = IsSignedInteger(a) ? bits_b : bits_a;
  if (bits_unsigned == 64) return DataType::kUndefined;
  return SignedOf(std::max(bits_signed, 2 * bits_unsigned));
}

DataType PromoteReals(DataType a, DataType b) {
  const int bits_a = BitsOf(a), bits_b = BitsOf(b);
  if (bits_a == bits_b && a != b) return DataType::kFloat;  // float16 and bfloat16
  return bits_a >= bits_b ? a : b;
}

DataType PromoteComplex(DataType a, DataType b) {
  const bool both = IsComplex(a) && IsComplex(b);
  const DataType complex = IsComplex(a) ? a : b;
  const DataType other = IsComplex(a) ? b : a;
  if (both) return BitsOf(a) >= BitsOf(b) ? a : b;
  return other == DataType::kDouble ? DataType::kComplex128 : complex;
}

}  // namespace

DataType Promote(DataType a, DataType b) {
  if (a == b || KindOf(b) == Kind::kNone) return a;
  if (KindOf(a) == Kind::kNone) return b;
  const Kind higher = std::max(KindOf(a), KindOf(b));
  if (higher == Kind::kComplex) return PromoteComplex(a, b);
  if (KindOf(a) != KindOf(b)) return KindOf(a) > KindOf(b) ? a : b;
  return higher == Kind::kInteger ? PromoteIntegers(a, b) : PromoteReals(a, b);
}

bool CanCast(DataType from, DataType to) {
  return KindOf(to) == Kind::kNone || KindOf(from) <= KindOf(to);
}

std::string_view TorchName(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return "Float";
    case DataType::kDouble:
      return "Double";
    case DataType::kFloat16:
      return "Half";
    case DataType::kBfloat16:
      return "BFloat16";
    case DataType::kInt8:
      return "Char";
    case DataType::kInt16:
      return "Short";
    case DataType::kInt32:
      return "Int";
    case DataType::kInt64:
      return "Long";
    case DataType::kUint8:
      return "Byte";
    case DataType::kBool:
      return "Bool";
    case DataType::kComplex64:
      return "ComplexFloat";
    case DataType::kComplex128:
      return "ComplexDouble";
    default:
      return Name(type);
  }
}

DataType PromoteAll(const std::vector<PromotionOperand>& operands) {
  DataType result = DataType::kUndefined;
  for (const auto rank : {PromotionOperand::Rank::kTensor, PromotionOperand::Rank::kNoDimensions,
                          PromotionOperand::Rank::kScalar}) {
    DataType here = DataType::kUndefined;
    for (const PromotionOperand& operand : operands) {
      if (operand.rank != rank) continue;
      const bool scalar = rank == PromotionOperand::Rank::kScalar;
      here = Promote(here, scalar ? NumberType(operand.dtype) : operand.dtype);
    }
    if (KindOf(here) > KindOf(result)) result = Promote(result, here);
  }
  return result;
}

}  // namespace npumesh
