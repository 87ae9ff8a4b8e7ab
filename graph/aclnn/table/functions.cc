// The tables of functions/*.aclnn.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "graph/aclnn/table/function_texts.h"
#include "graph/aclnn/table/table.h"

namespace npumesh {

const AclnnTable& AclnnFunctions() {
  static const auto* const table = [] {
    auto* const made = new AclnnTable;
    for (const auto& [name, text] :
         {std::pair("math.aclnn", AclnnMathText()), std::pair("nn.aclnn", AclnnNnText()),
          std::pair("operators.aclnn", AclnnOperatorsText()),
          std::pair("image.aclnn", AclnnImageText()), std::pair("quant.aclnn", AclnnQuantText()),
          std::pair("attention.aclnn", AclnnAttentionText()),
          std::pair("private_formats.aclnn", AclnnPrivateFormatsText())}) {
      if (const Status status = made->Add(name, text); !status.ok()) {
        std::fprintf(stderr, "npumesh: %s\n", std::string(status.message()).c_str());
        std::abort();
      }
    }
    return made;
  }();
  return *table;
}

// A line in brackets is the reason of the names below it.
const std::map<std::string_view, std::string_view>& AclnnAbsences() {
  static const auto* const absences = [] {
    auto* const made = new std::map<std::string_view, std::string_view>;
    std::string_view reason, text = AclnnAbsentText();
    while (!text.empty()) {
      const size_t end = std::min(text.find_first_of(" \n"), text.size());
      const size_t line = std::min(text.find('\n'), text.size());
      const bool whole = text[0] == '#' || text[0] == '[';
      if (text[0] == '[') reason = text.substr(1, line - 2);
      if (!whole && end > 0) made->emplace(text.substr(0, end), reason);
      text.remove_prefix(std::min((whole ? line : end) + 1, text.size()));
    }
    return made;
  }();
  return *absences;
}

}  // namespace npumesh
