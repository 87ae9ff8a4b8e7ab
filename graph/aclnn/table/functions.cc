// The tables of functions/*.aclnn.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "graph/aclnn/table/function_texts.h"
#include "graph/aclnn/table/table.h"

namespace npumesh {

const AclnnTable& AclnnFunctions() {
  static const auto* const table = [] {
    auto* const made = new AclnnTable;
    for (const auto& [name, text] :
         {std::pair("math.aclnn", AclnnMathText()), std::pair("nn.aclnn", AclnnNnText()),
          std::pair("operators.aclnn", AclnnOperatorsText())}) {
      if (const Status status = made->Add(name, text); !status.ok()) {
        std::fprintf(stderr, "npumesh: %s\n", std::string(status.message()).c_str());
        std::abort();
      }
    }
    return made;
  }();
  return *table;
}

}  // namespace npumesh
