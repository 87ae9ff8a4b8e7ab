#include "tests/unit/op_reference.h"

namespace npumesh {

size_t SourceOf(const Shape& from, const Shape& to, size_t linear) {
  size_t index = 0;
  size_t stride = 1;
  for (int i = 1; i <= to.rank(); ++i) {
    const auto size = static_cast<size_t>(to[to.rank() - i]);
    const size_t position = linear % size;
    linear /= size;
    if (i > from.rank()) continue;
    const auto own = static_cast<size_t>(from[from.rank() - i]);
    index += (own == 1 ? 0 : position) * stride;
    stride *= own;
  }
  return index;
}

int64_t UlpsBetween(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<int64_t>::max();
  }
  const auto place = [](float x) {
    const int32_t bits = std::bit_cast<int32_t>(x);
    return bits < 0 ? -static_cast<int64_t>(bits & 0x7fffffff) : static_cast<int64_t>(bits);
  };
  return std::abs(place(a) - place(b));
}

std::vector<float> SpecialFloats() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,
                               0x1p-149f,
                               0x1.fffffcp-127f,
                               0x1p-126f,
                               0x1p-30f,
                               0x1p-14f,
                               0x1p-8f,
                               0.25f,
                               0.5f,
                               0.70710677f,
                               1.0f,
                               1.5f,
                               2.0f,
                               3.0f,
                               10.0f,
                               11.0f,
                               20.0f,
                               88.7f,
                               88.8f,
                               103.9f,
                               104.1f,
                               150.0f,
                               700.5f,
                               710.0f,
                               1048576.0f,
                               1048577.0f,
                               0x1p60f,
                               0x1.fffffep127f,
                               infinity};
  for (size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  return values;
}

}  // namespace npumesh
