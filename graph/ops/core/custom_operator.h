// What an operator library includes: operators of a user's own, built apart from npumesh and loaded
// by `npumesh run --op-library FILE.so` (op_library.h). docs/custom_operators.md has the way from
// an empty file to a running graph.
//
//   NPUMESH_OPERATOR_LIBRARY(operators) {
//     operators.Add({.schema = {"Twice", {{"x"}}, {{"y"}}, {}},
//                    .infer = InferTwice,
//                    .make_kernel = MakeTwice});
//   }
//
// The library is a module that leaves npumesh's symbols undefined; the program that loads it
// provides them (CMake: npumesh::npumesh_operator). It is never unloaded.
#ifndef NPUMESH_GRAPH_OPS_CORE_CUSTOM_OPERATOR_H_
#define NPUMESH_GRAPH_OPS_CORE_CUSTOM_OPERATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/operator.h"
#include "runtime/base/files/shared_library.h"

namespace npumesh {

// What library and program must have in common. `version` always comes first, so that it can be
// read from a library of any age; the others are only compared when it is equal.
struct OperatorAbi {
  uint32_t version;        // raised whenever operator.h or what it includes changes its meaning
  uint32_t cxx11_strings;  // libstdc++'s _GLIBCXX_USE_CXX11_ABI
  uint32_t operator_bytes;
  uint32_t context_bytes;
  uint32_t node_bytes;
  uint32_t tensor_bytes;

  bool operator==(const OperatorAbi&) const = default;
};

inline constexpr OperatorAbi kOperatorAbi = {.version = 8,
                                             .cxx11_strings = kCxx11Strings,
                                             .operator_bytes = sizeof(Operator),
                                             .context_bytes = sizeof(OpContext),
                                             .node_bytes = sizeof(Node),
                                             .tensor_bytes = sizeof(Tensor)};

// Collects the operators of one library.
class OperatorList {
 public:
  // The names of a schema are views: use string literals. What is wrong with an operator, a name
  // that is taken for example, is what loading the library fails with.
  void Add(Operator op) { operators_.push_back(std::move(op)); }
  std::vector<Operator>& operators() { return operators_; }

 private:
  std::vector<Operator> operators_;
};

}  // namespace npumesh

// Defines the two symbols that npumesh looks for. Once in a library, outside of namespaces,
// followed by the body of a function with the parameter `npumesh::OperatorList& list`.
#define NPUMESH_OPERATOR_LIBRARY(list)                                                             \
  extern "C" __attribute__((visibility("default"))) const npumesh::OperatorAbi NpumeshOperatorAbi; \
  const npumesh::OperatorAbi NpumeshOperatorAbi = npumesh::kOperatorAbi;                           \
  extern "C" __attribute__((visibility("default"))) void NpumeshAddOperators(                      \
      [[maybe_unused]] npumesh::OperatorList& list)

#endif  // NPUMESH_GRAPH_OPS_CORE_CUSTOM_OPERATOR_H_
