// OpRegistry: the operators npumesh can run, by type name.
#ifndef NPUMESH_GRAPH_OPS_CORE_OP_REGISTRY_H_
#define NPUMESH_GRAPH_OPS_CORE_OP_REGISTRY_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

class OpRegistry {
 public:
  // REQUIRES: the type is not registered yet.
  void Add(Operator op);
  // Operators that are added from now on and are grey are of this class.
  void Usually(PrecisionClass precision) { usually_ = precision; }
  // The same operator under a second name (Constant for Const).
  void Alias(std::string_view type, std::string_view same_as);
  const Operator* Find(std::string_view type) const;
  // Up to `most` registered names that look like `type`, nearest first.
  std::vector<std::string> Nearest(std::string_view type, int most = 3) const;
  std::vector<std::string_view> Types() const;  // sorted

 private:
  std::map<std::string, Operator, std::less<>> ops_;
  PrecisionClass usually_ = PrecisionClass::kGrey;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_OP_REGISTRY_H_
