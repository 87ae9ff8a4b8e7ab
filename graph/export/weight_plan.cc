#include "graph/export/weight_plan.h"

#include <filesystem>
#include <map>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/io/model_file.h"
#include "graph/io/weights.h"
#include "graph/ops/builtin_ops.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"

namespace npumesh {
namespace {

// The file of an external weight, or of a constant its node.
std::string DefaultParameter(const Node& node) {
  if (!IsFileConstant(node)) return node.name;
  for (const char* attr : {"file_path", "location"}) {
    const std::filesystem::path file = node.StringAttr(attr, "");
    if (file.has_filename()) return file.filename().string();
  }
  return node.name;
}

std::string ParameterOf(const Node& node, const ExportOptions& options) {
  const auto named = options.weight_names.find(node.name);
  return named != options.weight_names.end() ? named->second : DefaultParameter(node);
}

// The same bytes whether they lie in memory or in a file.
WeightReader ReaderOf(Tensor tensor) {
  return WeightFromTensor("", "", std::move(tensor)).read;
}

// `node` as a Const of `type` without bytes.
void MakeHollow(const TensorType& type, Node* node) {
  TensorAttr value;
  value.desc = std::make_shared<TensorDesc>();
  value.desc->dtype = type.dtype;
  value.desc->shape = type.shape;
  value.data = std::make_shared<const std::string>();
  TensorDesc output;
  output.dtype = type.dtype;
  output.shape = type.shape;
  for (const char* attr :
       {"index", "shape", "dtype", "file_path", "file_id", "location", "offset", "length"}) {
    node->attrs.erase(attr);
  }
  node->type = "Const";
  node->inputs.clear();
  node->input_descs.clear();
  node->output_descs = {std::move(output)};
  node->attrs.insert_or_assign("value", AttrValue(std::move(value)));
}

// A constant that stands in the graph.
Result<PlannedWeight> TakeConstant(const Model& model, const ExportOptions& options, Node* node) {
  PlannedWeight weight;
  weight.node = node->id;
  weight.parameter = ParameterOf(*node, options);
  NPUMESH_ASSIGN_OR_RETURN(Tensor tensor, LoadWeight(*node, model.path));
  weight.type = tensor.type();
  if (IsFileConstant(*node)) {
    weight.read = ReaderOf(std::move(tensor));
    MakeHollow(weight.type, node);
    return weight;
  }
  // A copy of the attribute, so that the caller's model keeps its bytes.
  TensorAttr value = *node->FindAttr("value")->get<TensorAttr>();
  weight.bytes = value.data;
  weight.read = ReaderOf(std::move(tensor));
  value.data = std::make_shared<const std::string>();
  AttrValue hollow(std::move(value));
  hollow.set_opaque(node->FindAttr("value")->opaque());
  node->attrs.insert_or_assign("value", std::move(hollow));
  // As TorchAir writes weights.
  for (TensorDesc& output : node->output_descs) output.name.clear();
  return weight;
}

Status CheckGiven(const ExportWeight& given, const Graph& graph) {
  const NodeId id = graph.Find(given.input);
  if (id == kNoNode || !IsData(graph.node(id))) {
    return Error(Code::kNotFound, "\"{}\" is no Data node of the graph", given.input);
  }
  if (!given.read) return Error(Code::kInvalidArgument, "it has no reader");
  if (BitsOf(given.type.dtype) == 0 || !given.type.shape.Check().ok() ||
      !given.type.shape.is_static()) {
    return Error(Code::kInvalidArgument, "type {}; expected a static shape of fixed width",
                 given.type.ToString());
  }
  const std::vector<TensorDesc>& declared = graph.node(id).output_descs;
  if (!declared.empty() && declared[0].dtype != given.type.dtype) {
    return Error(Code::kInvalidArgument, "dtype {}, but input \"{}\" is declared as {}",
                 Name(given.type.dtype), given.input, Name(declared[0].dtype));
  }
  return Status();
}

// By node id: constants whose value inference needs.
std::vector<bool> ReadByValue(const Graph& graph, const OpRegistry& registry) {
  const BoundGraph bound(graph, registry);
  return NodesReadByValue(bound, NeededNodes(bound));
}

uint64_t BytesOfValue(const Node& node) {
  const AttrValue* value = node.FindAttr("value");
  const auto* tensor = value == nullptr ? nullptr : value->get<TensorAttr>();
  return tensor == nullptr ? 0 : tensor->data->size();
}

bool StaysInside(const Node& node, const std::vector<bool>& read_by_value) {
  if (IsFileConstant(node)) return false;
  if (node.FindAttr("_readable_value") != nullptr) return true;
  const uint64_t bytes = BytesOfValue(node);
  return bytes == 0 ||
         (read_by_value[static_cast<size_t>(node.id)] && bytes <= kMaxShapeValueBytes);
}

Status NameFiles(const PackageLayout& layout, int rank, std::vector<PlannedWeight>& weights) {
  std::map<std::string, std::string> owners = {{std::string(kPbtxtName), "the graph's text"}};
  if (!layout.distributed) owners.emplace(layout.AirName(rank), "the graph itself");
  for (PlannedWeight& weight : weights) {
    NPUMESH_ASSIGN_OR_RETURN(weight.file, WeightFileName(weight.parameter));
    const auto [owner, fresh] =
        owners.emplace(weight.file, fmt::format("weight \"{}\"", weight.parameter));
    if (fresh) continue;
    return Error(Code::kInvalidArgument,
                 "weight \"{}\" and {} would share the file \"{}\"; rename one of them",
                 weight.parameter, owner->second, weight.file);
  }
  return Status();
}

// All bytes of a weight in memory.
Result<std::string> ReadWhole(const PlannedWeight& weight) {
  std::string bytes;
  bytes.reserve(weight.type.bytes());
  NPUMESH_RETURN_IF_ERROR(ReadChecked(weight, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return Status();
  }));
  return bytes;
}

Status PutInside(const PlannedWeight& weight, Node* node) {
  auto bytes = weight.bytes;
  if (bytes == nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(std::string whole, ReadWhole(weight));
    bytes = std::make_shared<const std::string>(std::move(whole));
  }
  node->attrs.at("value").get<TensorAttr>()->data = std::move(bytes);
  return Status();
}

// As TorchAir has them: shape and dtype in attributes, a descriptor that says nothing.
void PutOutside(const PlannedWeight& weight, std::string stored_path, Node* node) {
  TensorDesc output;
  output.name = "y";
  output.dtype = DataType::kFloat;
  output.shape = Shape();
  node->type = "FileConstant";
  node->output_descs = {std::move(output)};
  node->attrs.erase("value");
  node->attrs.insert_or_assign("shape", AttrValue::Ints(weight.type.shape.dims()));
  node->attrs.insert_or_assign("dtype", AttrValue::Type(weight.type.dtype));
  node->attrs.insert_or_assign("file_path", AttrValue::String(std::move(stored_path)));
  node->attrs.insert_or_assign("file_id", AttrValue::String(""));
}

}  // namespace

Status ReadChecked(const PlannedWeight& weight, const WeightSink& sink) {
  const uint64_t expected = weight.type.bytes();
  uint64_t seen = 0;
  const auto misfit = [&] {
    return Error(Code::kInvalidArgument, "weight \"{}\": its reader gave {}{} bytes; {} has {}",
                 weight.parameter, seen > expected ? "at least " : "", seen, weight.type.ToString(),
                 expected);
  };
  NPUMESH_RETURN_IF_ERROR(weight.read([&](std::span<const std::byte> piece) {
    seen += piece.size();
    return seen > expected ? misfit() : sink(piece);
  }));
  return seen == expected ? Status() : misfit();
}

Result<WeightPlan> WeightPlan::Take(Model* model, const ExportOptions& options,
                                    const PackageLayout& layout, int rank,
                                    std::vector<ExportWeight> given) {
  Graph& graph = model->graph;
  const OpRegistry& registry = options.registry != nullptr ? *options.registry : BuiltinOps();
  WeightPlan plan;
  const std::vector<bool> read_by_value = ReadByValue(graph, registry);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Node& node = graph.node(static_cast<NodeId>(i));
    if (node.removed || !IsWeightNode(node) || StaysInside(node, read_by_value)) continue;
    NPUMESH_ASSIGN_OR_RETURN(PlannedWeight weight, TakeConstant(*model, options, &node));
    plan.weights_.push_back(std::move(weight));
  }
  for (ExportWeight& each : given) {
    NPUMESH_RETURN_IF_ERROR(
        CheckGiven(each, graph).WithContext(fmt::format("weight \"{}\"", each.parameter)));
    const NodeId id = graph.Find(each.input);
    MakeHollow(each.type, &graph.node(id));
    plan.weights_.push_back(
        {id, std::move(each.parameter), "", each.type, std::move(each.read), nullptr});
  }
  NPUMESH_RETURN_IF_ERROR(NameFiles(layout, rank, plan.weights_));
  NPUMESH_ASSIGN_OR_RETURN(const std::string hollow, SerializeAir(*model));
  plan.total_bytes_ = hollow.size();
  for (const PlannedWeight& weight : plan.weights_) plan.total_bytes_ += weight.type.bytes();
  plan.external_ = !plan.weights_.empty() && plan.total_bytes_ > options.weight_limit;
  return plan;
}

Status WeightPlan::Settle(const PackageLayout& layout, int rank, Model* model) {
  for (PlannedWeight& weight : weights_) {
    Node* node = &model->graph.node(weight.node);
    if (external_) {
      PutOutside(weight, layout.StoredPath(rank, weight.file), node);
    } else {
      NPUMESH_RETURN_IF_ERROR(PutInside(weight, node));
    }
  }
  return Status();
}

}  // namespace npumesh
