// Operations on the bits of integers.
#include <algorithm>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

// The formulas see signed numbers sign-extended and unsigned ones as they are, so that one right
// shift is both the arithmetic and the logical one. The device limits counts to the bits of a type.
int ShiftCount(WideInt count, const C& constants) {
  return static_cast<int>(std::clamp<WideInt>(count, 0, constants.bits - 1));
}

const PointwiseSpec kBitwise[] = {
    {"BitwiseAnd(x1, x2) -> y", {}, {.integer = [](WideInt a, WideInt b) { return a & b; }}},
    {"BitwiseOr(x1, x2) -> y", {}, {.integer = [](WideInt a, WideInt b) { return a | b; }}},
    {"BitwiseXor(x1, x2) -> y", {}, {.integer = [](WideInt a, WideInt b) { return a ^ b; }}},
    {"Invert(x) -> y", {}, {.integer = [](WideInt x) { return ~x; }}},
    {"RightShift(x, y) -> z",
     {},
     {.integer = [](WideInt a, WideInt b, const C& c) { return a >> ShiftCount(b, c); }}},
    {"LeftShift(x, y) -> z",
     {},
     {.integer = [](WideInt a, WideInt b, const C& c) { return a << ShiftCount(b, c); }}},
};

}  // namespace

void RegisterBitwiseOps(OpRegistry& registry) {
  RegisterPointwise(registry, kBitwise);
}

}  // namespace npumesh
