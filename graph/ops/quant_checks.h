// What operators on quantised numbers ask of a node besides check.h.
#ifndef NPUMESH_GRAPH_OPS_QUANT_CHECKS_H_
#define NPUMESH_GRAPH_OPS_QUANT_CHECKS_H_

#include <initializer_list>
#include <string_view>
#include <utility>

#include "graph/ops/check.h"
#include "graph/ops/numbers.h"

namespace npumesh {

// Objects (kUnsupported) with the node and the text unless `holds`.
template <typename... Args>
void Supported(Check& check, const OpContext& op, bool holds, fmt::format_string<Args...> text,
               Args&&... args) {
  if (holds) return;
  check.Keep(Error(Code::kUnsupported, "{}: {}", op.Who(),
                   fmt::format(text, std::forward<Args>(args)...)));
}

// Objects (kUnsupported) to another value of an integer attribute.
void Only(Check& check, const OpContext& op, std::string_view attribute, int64_t value);

// Objects (kUnsupported) to the first of the inputs that is fed.
void NotFed(Check& check, const OpContext& op, std::initializer_list<std::string_view> ports);

// A tensor of one of the types with `least` to `most` dimensions.
void RankBetween(Check& check, const OpContext& op, std::string_view port, TypeSet expected,
                 int least, int most);

// A type attribute; objects with `code` to one that is not expected.
DataType TypeOf(Check& check, const OpContext& op, std::string_view attribute, TypeSet expected,
                Code code = Code::kUnsupported);

// The factors fed to a port: absent, or as many as one of the counts.
Factors FactorsOf(Check& check, const OpContext& op, std::string_view port,
                  std::initializer_list<int64_t> counts);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_CHECKS_H_
