// What operators on quantised numbers ask of a node besides check.h.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_QUANT_CHECKS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_QUANT_CHECKS_H_

#include <initializer_list>
#include <string_view>
#include <utility>

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

// The factors fed to a port: absent, or as many as one of the counts.
Factors FactorsOf(Check& check, const OpContext& op, std::string_view port,
                  std::initializer_list<int64_t> counts);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_QUANT_CHECKS_H_
