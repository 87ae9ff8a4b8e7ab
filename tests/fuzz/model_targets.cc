#include "graph/io/model_file.h"
#include "graph/io/npy_header.h"
#include "graph/io/weights.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {

std::string CheckModel(std::string_view bytes) {
  const Result<Model> model = ParseModel(std::string(bytes), "fuzz.air");
  if (!model.ok()) return FlawOf(model.status());
  const Result<std::string> saved = SerializeAir(*model);
  if (!saved.ok()) return "cannot be saved: " + saved.status().ToString();
  const Result<Model> again = ParseModel(*saved, "fuzz.air");
  if (!again.ok()) return "cannot be loaded again: " + again.status().ToString();
  const Result<std::string> second = SerializeAir(*again);
  if (!second.ok() || *second != *saved) return "the second save differs";
  for (const Node& node : model->graph.nodes()) {
    const Result<Tensor> weight = LoadWeight(node, "fuzz.air");
    if (std::string flaw = FlawOf(weight.status()); !flaw.empty()) return flaw;
    if (weight.ok() && weight->bytes() > bytes.size() && node.type != "FileConstant") {
      return "a constant of more bytes than the file: " + node.name;
    }
  }
  return ToPbtxt(*model).empty() && !model->graph.nodes().empty() ? "no text" : "";
}

std::string CheckNpy(std::string_view bytes) {
  const Result<NpyHeader> header = ParseNpyHeader(bytes);
  if (!header.ok()) return FlawOf(header.status());
  if (header->data_offset > bytes.size()) return "the data start behind the file";
  const Result<std::string> text = FormatNpyHeader(header->type);
  if (!text.ok()) return "cannot be written: " + text.status().ToString();
  const Result<NpyHeader> again = ParseNpyHeader(*text);
  return again.ok() && again->type == header->type ? "" : "reads otherwise when written";
}

}  // namespace npumesh::fuzz
