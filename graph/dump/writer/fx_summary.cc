#include "graph/dump/writer/fx_summary.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/dump/format/format_name.h"
#include "graph/ir/node_kind.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr std::string_view kHead =
    "\xef\xbb\xbf"
    "目标函数,函数类型,支持状态,调用次数,输入统计,输出统计\n";
constexpr std::string_view kKind = "ascend_ir";

// How often each text occurs, in the order of the first.
class Counts {
 public:
  void Add(const std::string& text) {
    const auto known = std::find_if(counts_.begin(), counts_.end(),
                                    [&](const auto& entry) { return entry.first == text; });
    if (known != counts_.end()) {
      ++known->second;
    } else {
      counts_.emplace_back(text, 1);
    }
  }
  std::string ToString() const {
    std::string result;
    for (const auto& [text, count] : counts_) {
      if (!result.empty()) result += "; ";
      result += fmt::format("{}次：{}", count, text);
    }
    return result;
  }

 private:
  std::vector<std::pair<std::string, int>> counts_;
};

struct Row {
  std::string type;
  int calls = 0;
  Counts inputs;
  Counts outputs;
};

std::string TypesOf(const std::vector<TensorDesc>& descs) {
  std::string types;
  for (const TensorDesc& desc : descs) {
    if (!types.empty()) types += ", ";
    types += Name(desc.dtype);
    types += desc.shape ? desc.shape->ToString() : "[?]";
  }
  return "(" + types + ")";
}

std::string_view StateOf(const OpRegistry& registry, std::string_view type) {
  const Operator* op = registry.Find(type);
  if (op == nullptr) return "未注册";
  return op->furniture() || op->view || op->make_kernel ? "已支持" : "未实现";
}

std::string Quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += c;
    result += c;
  }
  return result + "\"";
}

bool IsOperator(const Node& node) {
  return !node.removed && !IsData(node) && !IsRefData(node) && !IsNetOutput(node);
}

}  // namespace

std::string FxSummary(const Graph& graph, const OpRegistry& registry) {
  std::vector<Row> rows;
  for (const Node& node : graph.nodes()) {
    if (!IsOperator(node)) continue;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& each) { return each.type == node.type; });
    if (row == rows.end()) row = rows.insert(rows.end(), Row{node.type});
    ++row->calls;
    row->inputs.Add(TypesOf(node.input_descs));
    row->outputs.Add(TypesOf(node.output_descs));
  }
  std::string text(kHead);
  for (const Row& row : rows) {
    text += fmt::format("{},{},{},{},{},{}\n", Quoted(row.type), kKind, StateOf(registry, row.type),
                        row.calls, Quoted(row.inputs.ToString()), Quoted(row.outputs.ToString()));
  }
  return text;
}

Result<std::string> WriteFxSummary(const Graph& graph, const OpRegistry& registry,
                                   const std::string& folder, int rank, FileSystem& fs) {
  const std::string path =
      fmt::format("{}/summary_rank_{}_pid_{}_ts_{}.csv", folder, rank, getpid(), UtcTimestamp());
  NPUMESH_RETURN_IF_ERROR(WriteFile(path, FxSummary(graph, registry), FileKind::kDebug, fs));
  return path;
}

}  // namespace npumesh
