// Text in an array of fixed size, as shared memory and files have it.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_FIXED_TEXT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_FIXED_TEXT_H_

#include <cstddef>
#include <cstring>
#include <string_view>

namespace npumesh {

// As much of `text` as fits in front of a zero; zeros to the end.
template <size_t N>
void CopyText(std::string_view text, char (&target)[N]) {
  const size_t bytes = text.copy(target, N - 1);
  std::memset(target + bytes, 0, N - bytes);
}

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_FIXED_TEXT_H_
