#include "launch/catalog/onnx_table.h"

#include "graph/onnx/op_table.h"
#include "launch/report/json_parts.h"

namespace npumesh {
namespace {

std::string NameOf(const OnnxOp& op) {
  return op.domain.empty() ? std::string(op.name) : fmt::format("{}.{}", op.domain, op.name);
}

}  // namespace

std::string OnnxOpsAsText() {
  std::string text;
  for (const OnnxOp& op : OnnxOps()) {
    text += fmt::format("{} (since {}): {}\n", NameOf(op), op.since, op.text);
  }
  return text;
}

std::string OnnxOpsAsMarkdown() {
  std::string text = "| ONNX operator | since version | becomes |\n|---|---|---|\n";
  for (const OnnxOp& op : OnnxOps()) {
    text += fmt::format("| {} | {} | {} |\n", NameOf(op), op.since, op.text);
  }
  return text;
}

CommandReport OnnxOpsReport() {
  const auto row = [](const OnnxOp& op) -> nlohmann::json {
    return {{"domain", op.domain}, {"name", op.name}, {"since", op.since}, {"becomes", op.text}};
  };
  return {.details = {{"operators", ListOf(OnnxOps(), row)}}};
}

}  // namespace npumesh
