#include "graph/ops/toolbox/rows/quant_checks.h"

namespace npumesh {

Factors FactorsOf(Check& check, const OpContext& op, std::string_view port,
                  std::initializer_list<int64_t> counts) {
  const Factors factors = check.Take(Factors::Of(op, port));
  if (factors.given()) check.Elements(port, counts);
  return factors;
}

}  // namespace npumesh
