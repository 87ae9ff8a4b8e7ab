// Layouts as numbers and as text, in GE's numbering.
#ifndef NPUMESH_GRAPH_IO_LAYOUT_H_
#define NPUMESH_GRAPH_IO_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace npumesh {

// What an unknown or missing layout reads as.
inline constexpr int64_t kReservedLayout = 40;
inline constexpr int64_t kNdLayout = 2;

// The number GE stores for a layout such as "ND", "FRACTAL_NZ" or "FRACTAL_Z:32", whose sub-format
// stands in bits 8 to 23.
int64_t LayoutNumber(std::string_view layout);

// The text for a number; "FORMAT_RESERVED" where no version defines it.
std::string LayoutName(int64_t number);

// True for layouts whose bytes are not in the order of the shape that the framework sees.
bool IsPrivateLayout(int64_t number);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_LAYOUT_H_
