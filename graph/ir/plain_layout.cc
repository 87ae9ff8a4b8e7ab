#include "graph/ir/plain_layout.h"

#include <algorithm>
#include <string_view>

namespace npumesh {
namespace {

bool IsPlainLayout(std::string_view layout) {
  constexpr std::string_view kPlain[] = {"ND",   "NCHW",  "NHWC",  "HWCN",
                                         "CHWN", "NCDHW", "NDHWC", "DHWCN"};
  return std::ranges::find(kPlain, layout) != std::end(kPlain);
}

}  // namespace

std::string PlainLayoutOf(const TensorDesc& desc) {
  if (IsPlainLayout(desc.layout)) return desc.layout;
  const auto origin = desc.attrs.find("origin_format");
  if (origin != desc.attrs.end()) {
    const auto* name = origin->second.get<std::string>();
    if (name != nullptr && IsPlainLayout(*name)) return *name;
  }
  return "ND";
}

}  // namespace npumesh
