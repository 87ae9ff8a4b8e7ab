#include "graph/dump/format/format_types.h"

#include <algorithm>
#include <span>

#include "graph/ir/layout_numbers.h"

namespace npumesh {
int DumpTypeNumber(DataType dtype) {
  return ProtoNumber(dtype);
}

DataType DataTypeFromDump(int number) {
  return DataTypeFromProto(number).value_or(DataType::kUndefined);
}

std::string_view DumpTypeName(DataType dtype) {
  return dtype == DataType::kBfloat16 ? "DT_BF16" : SerialName(dtype);
}

int DumpFormatNumber(std::string_view name) {
  if (name.empty()) return kFormatNd;
  const std::span<const LayoutNames> layouts = LayoutsByNumber();
  const auto found = std::find_if(layouts.begin(), layouts.end(),
                                  [name](const LayoutNames& each) { return each.dump == name; });
  return found == layouts.end() ? kFormatNd : static_cast<int>(found - layouts.begin());
}

std::string_view DumpFormatName(int number) {
  const std::span<const LayoutNames> layouts = LayoutsByNumber();
  if (number < 0 || static_cast<size_t>(number) >= layouts.size()) return "-";
  const std::string_view name = layouts[static_cast<size_t>(number)].dump;
  return name.empty() ? "-" : name;
}

}  // namespace npumesh
