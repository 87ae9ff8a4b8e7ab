// Tensors of problem lists.
#ifndef NPUMESH_TESTS_OPERATORS_TENSOR_TEXT_H_
#define NPUMESH_TESTS_OPERATORS_TENSOR_TEXT_H_

#include <string_view>

#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

// "float32[2,3]..." rather than the value of an attribute.
bool IsTensorText(std::string_view text);

// A tensor from its type, its dimensions and what fills it:
//
//   int64[2]{3 -1}         numbers in C order, rounded to the type; a complex one takes two
//   float32[2,3]{0 ...}    the last number again and again
//   float8_e5m2[2]bytes{3c 40}   the bytes of the storage
//   uint8[7]"{} is {}"     its characters
//   float16[2,3]           small whole numbers, different from element to element: pattern(1)
//   float16[2,3]pattern(4) the same from another beginning (Pattern of op_values.h)
//   float32[2,3]waves(1)   between -1 and 1, none alike (Waves of op_gradient.h)
//   int8[2,3]noise(1,100)  between -100 and 100 without a period; whole for integers (Noise)
//   float32[4]pattern(2)*0.5-3   drawn numbers, times and plus
//
// Types that no numbers in braces fill (float8_e5m2, int4) are zeros where nothing is said. Blanks
// and commas between numbers are alike.
//
// Error (kInvalidArgument): what was not understood.
Result<Tensor> ReadTensor(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_OPERATORS_TENSOR_TEXT_H_
