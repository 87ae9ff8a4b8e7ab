// Operations on the bits of integers.
#include <algorithm>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

const std::vector<PortSpec> kTwo = {{"x1"}, {"x2"}};

// The formulas see signed numbers sign-extended and unsigned ones as they are, so that one right
// shift is both the arithmetic and the logical one. The device limits counts to the bits of a type.
int ShiftCount(WideInt count, const C& constants) {
  return static_cast<int>(std::clamp<WideInt>(count, 0, constants.bits - 1));
}

const PointwiseSpec kRows[] = {
    {.type = "BitwiseAnd",
     .inputs = kTwo,
     .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0] & in[1]; }},
    {.type = "BitwiseOr",
     .inputs = kTwo,
     .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0] | in[1]; }},
    {.type = "BitwiseXor",
     .inputs = kTwo,
     .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0] ^ in[1]; }},
    {.type = "Invert",
     .inputs = {{"x"}},
     .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = ~in[0]; }},
    {.type = "RightShift",
     .inputs = {{"x"}, {"y"}},
     .integer = [](const WideInt* in, const C& c,
                   WideInt* out) { out[0] = in[0] >> ShiftCount(in[1], c); },
     .outputs = {{"z"}}},
    {.type = "LeftShift",
     .inputs = {{"x"}, {"y"}},
     .integer = [](const WideInt* in, const C& c,
                   WideInt* out) { out[0] = in[0] << ShiftCount(in[1], c); },
     .outputs = {{"z"}}},
};

}  // namespace

void RegisterBitwiseOps(OpRegistry& registry) {
  for (const PointwiseSpec& spec : kRows) RegisterPointwise(registry, spec);
}

}  // namespace npumesh
