#include "graph/ops/quant_checks.h"

namespace npumesh {

void Only(Check& check, const OpContext& op, std::string_view attribute, int64_t value) {
  const int64_t seen = op.attr_int(attribute);
  Supported(check, op, seen == value, "{} is {}, expected {}", attribute, seen, value);
}

void NotFed(Check& check, const OpContext& op, std::initializer_list<std::string_view> ports) {
  for (const std::string_view port : ports) {
    Supported(check, op, SlotIfFed(op, port) < 0, "\"{}\" is fed, which is not supported", port);
  }
}

void RankBetween(Check& check, const OpContext& op, std::string_view port, TypeSet expected,
                 int least, int most) {
  check.RankAtLeast(port, expected, least);
  check.That(op.in(port).shape.rank() <= most, "{} is {}, expected at most {} dimensions", port,
             op.in(port).ToString(), most);
}

DataType TypeOf(Check& check, const OpContext& op, std::string_view attribute, TypeSet expected,
                Code code) {
  const DataType dtype = check.Take(op.attr_dtype(attribute));
  if (check.ok() && !expected.Contains(dtype)) {
    check.Keep(Error(code, "{}: {} is {}, expected {}", op.Who(), attribute, Name(dtype),
                     expected.ToString()));
  }
  return dtype;
}

Factors FactorsOf(Check& check, const OpContext& op, std::string_view port,
                  std::initializer_list<int64_t> counts) {
  const Factors factors = check.Take(Factors::Of(op, port));
  if (factors.given()) check.Elements(port, counts);
  return factors;
}

}  // namespace npumesh
