// Layouts as graph files have them: a number with a sub-format, or its text.
#ifndef NPUMESH_GRAPH_IO_LAYOUT_H_
#define NPUMESH_GRAPH_IO_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/ir/layout_numbers.h"

namespace npumesh {

// The number GE stores for a layout such as "ND", "FRACTAL_NZ" or "FRACTAL_Z:32", whose sub-format
// stands in bits 8 to 23.
int64_t LayoutNumber(std::string_view layout);

// The text for a number; "FORMAT_RESERVED" where no version defines it.
std::string LayoutName(int64_t number);

// True for layouts whose bytes are not in the order of the shape that the framework sees.
bool IsPrivateLayout(int64_t number);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_LAYOUT_H_
