// The text in front of the functions of static kernels: the lanes of each width.
#include <fmt/format.h>

#include "graph/static_kernel/source/kernel_text.h"
#include "graph/static_kernel/source/lanes_text.h"

namespace npumesh {

std::string KernelBeginning() {
  std::string text =
      "// Static kernels of npumesh: a function for each, on so many numbers at a time.\n";
  for (const int width : kKernelWidths) {
    text += fmt::format(
        "#undef NM_WIDTH\n#define NM_WIDTH {0}\nnamespace by{0} {{\n{1}}}  // namespace by{0}\n",
        width, LanesText());
  }
  return text;
}

}  // namespace npumesh
