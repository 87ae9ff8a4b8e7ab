#include "graph/io/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr int64_t kMaxSubFormat = 0xffff;

}  // namespace

int64_t LayoutNumber(std::string_view layout) {
  const size_t colon = layout.find(':');
  const std::string_view name = layout.substr(0, colon);
  const std::span<const LayoutNames> layouts = LayoutsByNumber();
  const auto found = std::find_if(layouts.begin(), layouts.end(),
                                  [name](const LayoutNames& each) { return each.graph == name; });
  if (found == layouts.end()) return kReservedLayout;
  const int64_t primary = found - layouts.begin();
  if (colon == std::string_view::npos) return primary;
  const Result<int64_t> sub = ParseInt(layout.substr(colon + 1), 0, kMaxSubFormat, "sub-format");
  return sub.ok() ? primary | *sub << 8 : kReservedLayout;
}

std::string LayoutName(int64_t number) {
  const auto primary = static_cast<size_t>(number & 0xff);
  const std::span<const LayoutNames> layouts = LayoutsByNumber();
  if (number < 0 || primary >= layouts.size()) return "FORMAT_RESERVED";
  const int64_t sub = number >> 8 & kMaxSubFormat;
  if (sub == 0) return std::string(layouts[primary].graph);
  return fmt::format("{}:{}", layouts[primary].graph, sub);
}

bool IsPrivateLayout(int64_t number) {
  const std::string name = LayoutName(number & 0xff);
  static constexpr std::array<std::string_view, 9> kPlain = {
      "NCHW", "NHWC", "ND", "CHWN", "HWCN", "NDHWC", "NCDHW", "NCL", "FORMAT_RESERVED"};
  return std::find(kPlain.begin(), kPlain.end(), name) == kPlain.end();
}

}  // namespace npumesh
