#include "launch/atc/atc_edits.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "graph/config/system_options.h"
#include "graph/config/validation.h"
#include "graph/ir/graph_input.h"
#include "graph/ir/node_draft.h"
#include "graph/ir/node_kind.h"
#include "launch/atc/atc_error.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

std::vector<std::string> Parts(std::string_view text, std::string_view separators = ";") {
  std::vector<std::string> parts;
  for (const std::string_view part : Split(text, separators)) {
    if (!Trimmed(part).empty()) parts.emplace_back(Trimmed(part));
  }
  return parts;
}

// "node:0".
Result<Value> ReadValue(std::string_view flag, const std::string& text, const Graph& graph) {
  const size_t colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  const auto port =
      ParseInt(colon == std::string::npos ? "" : text.substr(colon + 1), 0, 1 << 20, "port");
  if (!port.ok()) {
    return AtcError(atc_code::kValue, flag, "has \"{}\"; expected NODE:PORT for each", text);
  }
  const NodeId node = graph.Find(name);
  const bool known = node != kNoNode && !IsNetOutput(graph.node(node)) &&
                     static_cast<size_t>(*port) < graph.node(node).output_descs.size();
  if (!known) {
    return AtcError(atc_code::kNoNode, flag, "names \"{}\", which the graph does not have", text);
  }
  return Value{node, static_cast<int>(*port)};
}

Node CastNode(const std::string& name, Value from, DataType to, const TensorDesc& like) {
  Node cast = MakeNode({.type = "Cast",
                        .name = name,
                        .inputs = {{"x", from}},
                        .attrs = {{"dst_type", AttrValue::Int(static_cast<int64_t>(to))}}});
  cast.input_descs = {like};
  cast.input_descs[0].name = "x";
  cast.output_descs = {like};
  cast.output_descs[0].name = "y";
  cast.output_descs[0].dtype = to;
  return cast;
}

Status ChooseOutputs(const std::string& text, Graph& graph) {
  constexpr std::string_view kFlag = "out_nodes";
  std::vector<Value> values;
  for (const std::string& part : Parts(text)) {
    NPUMESH_ASSIGN_OR_RETURN(values.emplace_back(), ReadValue(kFlag, part, graph));
  }
  const NodeId sink = graph.NetOutput();
  if (values.empty() || sink == kNoNode) {
    return AtcError(atc_code::kValue, kFlag, "names no output of a graph");
  }
  Node& output = graph.node(sink);
  output.inputs.clear();
  output.input_descs.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    AddInput(graph, fmt::format("input{}", i), values[i], output);
  }
  graph.output_records().clear();
  return Status();
}

Status FeedHalf(const std::string& text, Graph& graph) {
  constexpr std::string_view kFlag = "input_fp16_nodes";
  for (const std::string& name : Parts(text)) {
    const NodeId id = graph.Find(name);
    if (id == kNoNode || !IsInputNode(graph.node(id))) {
      return AtcError(atc_code::kNoNode, kFlag, "names \"{}\", which is no input of the graph",
                      name);
    }
    const TensorDesc declared = GraphInputDesc(graph.node(id));
    if (declared.dtype == DataType::kFloat16) continue;
    if (declared.dtype != DataType::kFloat) {
      return AtcError(atc_code::kValue, kFlag, "names \"{}\", which is {}; expected float32", name,
                      Name(declared.dtype));
    }
    NPUMESH_ASSIGN_OR_RETURN(const NodeId cast,
                             graph.Add(CastNode(FreshName(graph, name + "_from_fp16"), {id, 0},
                                                declared.dtype, declared)));
    graph.ReplaceUses({id, 0}, {cast, 0});
    graph.node(cast).inputs[0] = Value{id, 0};
    graph.node(cast).input_descs[0].dtype = DataType::kFloat16;
    for (auto* descs : {&graph.node(id).input_descs, &graph.node(id).output_descs}) {
      for (TensorDesc& desc : *descs) desc.dtype = DataType::kFloat16;
    }
  }
  return Status();
}

Result<DataType> OutputType(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, DataType>, 5> kTypes = {{
      {"FP32", DataType::kFloat},
      {"FP16", DataType::kFloat16},
      {"UINT8", DataType::kUint8},
      {"INT8", DataType::kInt8},
      {"HIF8", DataType::kHifloat8},
  }};
  for (const auto& [name, dtype] : kTypes) {
    if (text == name) return dtype;
  }
  return AtcError(atc_code::kValue, "output_type", "has \"{}\"; expected FP32, FP16, UINT8 or INT8",
                  text);
}

// `input` of NetOutput gets another type, if it has one that can be cast.
Status CastOutput(Graph& graph, size_t input, DataType to) {
  const NodeId sink = graph.NetOutput();
  const std::optional<Value> from = graph.node(sink).inputs[input];
  if (!from) return Status();
  const std::string name =
      FreshName(graph, fmt::format("{}_output_type", graph.node(from->node).name));
  NPUMESH_ASSIGN_OR_RETURN(
      const NodeId cast, graph.Add(CastNode(name, *from, to, graph.node(sink).input_descs[input])));
  Node& output = graph.node(sink);
  output.inputs[input] = Value{cast, 0};
  output.input_descs[input].dtype = to;
  return Status();
}

// "FP16" for all, or "node:0:FP16;...".
Status GiveOutputTypes(const std::string& text, Graph& graph) {
  constexpr std::string_view kFlag = "output_type";
  const NodeId sink = graph.NetOutput();
  if (sink == kNoNode) return Status();
  if (text.find(':') == std::string::npos) {
    NPUMESH_ASSIGN_OR_RETURN(const DataType to, OutputType(text));
    for (size_t i = 0; i < graph.node(sink).inputs.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(CastOutput(graph, i, to));
    }
    return Status();
  }
  for (const std::string& part : Parts(text)) {
    const size_t colon = part.rfind(':');
    NPUMESH_ASSIGN_OR_RETURN(const DataType to, OutputType(part.substr(colon + 1)));
    NPUMESH_ASSIGN_OR_RETURN(const Value value, ReadValue(kFlag, part.substr(0, colon), graph));
    const auto& inputs = graph.node(sink).inputs;
    const auto found = std::find(inputs.begin(), inputs.end(), std::optional<Value>(value));
    if (found == inputs.end()) {
      return AtcError(atc_code::kNoNode, kFlag, "names \"{}\", which is no output of the graph",
                      part.substr(0, colon));
    }
    NPUMESH_RETURN_IF_ERROR(CastOutput(graph, static_cast<size_t>(found - inputs.begin()), to));
  }
  return Status();
}

// The words of the newer flag by those of the older one.
Result<std::string> PrecisionWord(const AtcOptions& options) {
  if (!options.precision_mode.empty() && !options.precision_mode_v2.empty()) {
    return AtcError(atc_code::kExclusive, "precision_mode", "excludes --precision_mode_v2");
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNewer = {{
      {"fp16", "force_fp16"},
      {"origin", "must_keep_origin_dtype"},
      {"mixed_float16", "allow_mix_precision_fp16"},
      {"mixed_bfloat16", "allow_mix_precision_bf16"},
      {"cube_fp16in_fp32out", "cube_fp16in_fp32out"},
  }};
  if (options.precision_mode_v2.empty()) return options.precision_mode;
  for (const auto& [newer, older] : kNewer) {
    if (options.precision_mode_v2 == newer) return std::string(older);
  }
  return AtcError(atc_code::kValue, "precision_mode_v2",
                  "has \"{}\"; expected fp16, origin, mixed_float16, mixed_bfloat16 or "
                  "cube_fp16in_fp32out",
                  options.precision_mode_v2);
}

// Lines "OpType::Type", and names of nodes.
Status ReadKept(const std::string& path, PrecisionOptions* precision) {
  constexpr std::string_view kType = "OpType::";
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  for (const std::string& line : Parts(text, "\n,\r")) {
    if (line.starts_with(kType)) {
      precision->kept_types.push_back(line.substr(kType.size()));
    } else {
      precision->kept_nodes.push_back(line);
    }
  }
  return Status();
}

}  // namespace

Status ApplyEdits(const AtcOptions& options, Model* model) {
  Graph& graph = model->graph;
  if (!options.out_nodes.empty()) NPUMESH_RETURN_IF_ERROR(ChooseOutputs(options.out_nodes, graph));
  if (!options.input_fp16_nodes.empty()) {
    NPUMESH_RETURN_IF_ERROR(FeedHalf(options.input_fp16_nodes, graph));
  }
  if (options.output_type.empty()) return Status();
  return GiveOutputTypes(options.output_type, graph);
}

Status CheckKept(const PrecisionOptions& precision, const Model& model) {
  for (const std::string& name : precision.kept_nodes) {
    if (model.graph.Find(name) != kNoNode) continue;
    return AtcError(atc_code::kNoNode, "keep_dtype",
                    "has the node \"{}\", which the graph has not; OpType::Conv2D keeps all "
                    "operators of a type",
                    name);
  }
  return Status();
}

Result<PrecisionOptions> PrecisionFor(const AtcOptions& options) {
  SystemOptions system;
  NPUMESH_ASSIGN_OR_RETURN(const std::string mode, PrecisionWord(options));
  if (!mode.empty()) system.precision_mode = mode;
  if (!options.modify_mixlist.empty()) system.modify_mixlist = options.modify_mixlist;
  if (!options.op_select_implmode.empty()) system.op_select_implmode = options.op_select_implmode;
  if (!options.optypelist_for_implmode.empty()) {
    system.optypelist_for_implmode = options.optypelist_for_implmode;
  }
  NPUMESH_RETURN_IF_ERROR(Validate(system).WithContext(std::string(atc_code::kValue)));
  NPUMESH_ASSIGN_OR_RETURN(PrecisionOptions precision, PrecisionOf(system));
  if (!options.keep_dtype.empty()) {
    NPUMESH_RETURN_IF_ERROR(ReadKept(options.keep_dtype, &precision));
  }
  return precision;
}

}  // namespace npumesh
