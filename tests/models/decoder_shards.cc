// What a rank holds of the parameters of decoder_training.h.
#include "tests/models/decoder_training.h"

namespace npumesh::models {
namespace {

bool EndsWith(const std::string& name, std::string_view end) {
  return name.ends_with(end);
}

// Elements of `whole` whose row and column (row-major, `columns` each) `take` accepts.
template <typename Take>
std::vector<double> Taken(const Parameter& whole, int64_t columns, Take take) {
  std::vector<double> values;
  for (size_t i = 0; i < whole.values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (take(at / columns, at % columns)) values.push_back(whole.values[i]);
  }
  return values;
}

}  // namespace

Parameter ShardOf(const TrainingConfig& config, const Parameter& parameter, int rank) {
  const int64_t parts = config.tensor_parallel;
  Parameter own = parameter;
  if (config.fully_sharded) {
    const int64_t count = parameter.shape.elements() / config.data_parallel;
    const auto first = parameter.values.begin() + rank * count;
    return {parameter.name, {count}, {first, first + count}};
  }
  if (parts == 1) return own;
  const int64_t part = rank, hidden = config.hidden / parts, ffn = config.ffn / parts;
  const std::string& name = parameter.name;
  const int64_t columns = parameter.shape[parameter.shape.rank() - 1];
  if (EndsWith(name, ".wqkv")) {  // rows of q, of k and of v
    own.shape = {3 * hidden, columns};
    own.values = Taken(parameter, columns,
                       [&](int64_t row, int64_t) { return row % config.hidden / hidden == part; });
  } else if (EndsWith(name, ".w1")) {
    own.shape = {ffn, columns};
    own.values = Taken(parameter, columns, [&](int64_t row, int64_t) { return row / ffn == part; });
  } else if (EndsWith(name, ".b1")) {
    own.shape = {ffn};
    own.values = Taken(parameter, 1, [&](int64_t row, int64_t) { return row / ffn == part; });
  } else if (EndsWith(name, ".wo") || EndsWith(name, ".w2")) {
    const int64_t width = columns / parts;
    own.shape = {parameter.shape[0], width};
    own.values =
        Taken(parameter, columns, [&](int64_t, int64_t column) { return column / width == part; });
  }
  return own;
}

}  // namespace npumesh::models
