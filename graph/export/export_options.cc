#include "graph/export/export_options.h"

#include <algorithm>

namespace npumesh {

ExportWeight WeightFromTensor(std::string input, std::string parameter, Tensor tensor) {
  const TensorType type = tensor.type();
  const auto read = [tensor = std::move(tensor)](const WeightSink& sink) {
    return sink({tensor.data(), static_cast<size_t>(tensor.bytes())});
  };
  return {std::move(input), std::move(parameter), type, read};
}

std::string ProgressText(const ExportProgress& progress) {
  const size_t total = std::max<size_t>(progress.total, 1);
  std::string text = fmt::format("\r torchair dynamo export save weight {}% {}/{}",
                                 std::min<size_t>(100, progress.done * 100 / total), progress.done,
                                 progress.total);
  if (progress.done == progress.total) text += " \n";
  return text;
}

}  // namespace npumesh
