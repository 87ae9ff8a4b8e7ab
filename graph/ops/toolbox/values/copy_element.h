// CopyElement and FillElements: single elements, without a call where their width is a usual one.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_COPY_ELEMENT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_COPY_ELEMENT_H_

#include <cstddef>
#include <cstring>

namespace npumesh {

// Copies an element or a row.
inline void CopyElement(const std::byte* from, size_t bytes, std::byte* to) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 1:
      *to = *from;
      return;
    case 0:
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

// Repeats an element of `width` bytes, which divides `bytes`.
inline void FillElements(const std::byte* element, size_t width, std::byte* to, size_t bytes) {
  if (width == 0) return;
  if (std::memcmp(element, element + 1, width - 1) == 0) {  // all its bytes are equal
    std::memset(to, static_cast<int>(*element), bytes);
    return;
  }
  for (size_t at = 0; at < bytes; at += width) CopyElement(element, width, to + at);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_COPY_ELEMENT_H_
