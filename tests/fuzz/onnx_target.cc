#include "graph/onnx/reader.h"
#include "runtime/base/text/printable.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {
namespace {

// Walks a model and adds up what its tensors hold.
class TensorWalk {
 public:
  void Look(const OnnxGraph& graph) {
    for (const auto& [name, tensor] : graph.initialisers) Look(tensor);
    Look(graph.nodes);
  }

  void Look(const std::vector<OnnxNode>& nodes) {
    for (const OnnxNode& node : nodes) {
      if (PrintableMessage(node.Who()) != node.Who()) flaw_ = "a name unfit for a terminal";
      for (const OnnxAttribute& attribute : node.attributes) {
        Look(attribute.tensor);
        if (attribute.graph != nullptr) Look(*attribute.graph);
      }
    }
  }

  const std::string& flaw() const { return flaw_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // Strings are not read: such a tensor has a type only.
  void Look(const Tensor& tensor) {
    if (tensor.dtype() == DataType::kString || tensor.dtype() == DataType::kUndefined) return;
    if (tensor.bytes() != tensor.type().bytes()) flaw_ = "a tensor of other bytes than its type";
    bytes_ += tensor.bytes();
  }

  std::string flaw_;
  uint64_t bytes_ = 0;
};

}  // namespace

std::string CheckOnnx(std::string_view bytes) {
  const std::string flaw = FlawOf(ReadOnnxTensor(bytes).status());
  if (!flaw.empty()) return flaw;
  const Result<OnnxModel> model = ReadOnnx(bytes, "no_such_folder/fuzz.onnx");
  if (!model.ok()) return FlawOf(model.status());
  TensorWalk walk;
  walk.Look(model->graph);
  for (const OnnxFunction& function : model->functions) walk.Look(function.nodes);
  if (!walk.flaw().empty()) return walk.flaw();
  // A number of 8 bytes may take one byte of the file.
  return walk.bytes() > 8 * bytes.size() ? "tensors of many times the bytes of the file" : "";
}

}  // namespace npumesh::fuzz
