// Which of the forms a file has is decided by its content.
#include "graph/io/model_file.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <set>

#include "graph/io/foreign_file.h"
#include "graph/io/model_codec.h"
#include "graph/io/offline_file.h"
#include "graph/io/wire.h"
#include "runtime/base/files/mapped_file.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

bool IsText(std::string_view bytes) {
  constexpr size_t kSample = 4096;
  const std::string_view sample = bytes.substr(0, kSample);
  return std::all_of(sample.begin(), sample.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : (c == '\n' || c == '\t' || c == '\r' || c == '\f');
  });
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Position after the quoted string that starts at `i`.
size_t SkipString(std::string_view text, size_t i) {
  const char quote = text[i++];
  while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

// The names of the fields outside all braces.
std::set<std::string, std::less<>> TopLevelFields(std::string_view text) {
  std::set<std::string, std::less<>> fields;
  int64_t depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = SkipString(text, i);
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (IsWordByte(c)) {
      const size_t start = i;
      while (i < text.size() && IsWordByte(text[i])) ++i;
      if (depth == 0) fields.emplace(text.substr(start, i - start));
    } else {
      if (c == '{' || c == '<') ++depth;
      if (c == '}' || c == '>') --depth;
      ++i;
    }
  }
  return fields;
}

// Text can say what an .air file cannot: names that are not UTF-8, nesting one level too deep.
Result<Model> DecodeTextModel(pb::ModelDef& model, const std::string& path) {
  const std::string bytes = SerializeWire(model);
  model.Clear();
  if (!ParseWire(bytes, &model).ok()) {
    return Error(Code::kCorrupt,
                 "the text has names that are not UTF-8 or nests deeper than {} messages",
                 kMaxDepth);
  }
  return DecodeModel(model, path);
}

// A bare GraphDef is a model of one graph.
Result<Model> DecodeGraphOnly(pb::GraphDef graph, const std::string& path) {
  pb::ModelDef model;
  *model.add_graph() = std::move(graph);
  if (model.graph(0).name().empty()) model.mutable_graph(0)->set_name("graph_1");
  return DecodeTextModel(model, path);
}

Result<Model> ParseTextModel(std::string_view text, const std::string& path) {
  const auto fields = TopLevelFields(text);
  if (fields.contains("ir_version") || fields.contains("producer_name")) {
    return Error(Code::kUnsupported,
                 "a ge_onnx dump, which has lost the dtypes of attributes; load the ge_proto dump "
                 "or the .air file instead");
  }
  if (fields.contains("node")) {
    NPUMESH_ASSIGN_OR_RETURN(pb::GraphDef graph, ParsePbtxt(text));
    return DecodeGraphOnly(std::move(graph), path);
  }
  if (fields.contains("op")) {
    pb::GraphDef graph;
    NPUMESH_RETURN_IF_ERROR(ParseText(text, &graph));
    return DecodeGraphOnly(std::move(graph), path);
  }
  if (fields.contains("graph")) {
    pb::ModelDef model;
    NPUMESH_RETURN_IF_ERROR(ParseText(text, &model));
    return DecodeTextModel(model, path);
  }
  return Error(
      Code::kCorrupt,
      "not a model: a text without \"graph\", \"op\" or \"node\" ({} bytes); expected an .air, "
      ".pbtxt, ge_proto*.txt or .onnx file",
      text.size());
}

Result<Model> ParseBinary(std::string_view bytes, const std::string& path) {
  google::protobuf::Arena arena;
  auto& model = *google::protobuf::Arena::CreateMessage<pb::ModelDef>(&arena);
  NPUMESH_RETURN_IF_ERROR(ParseWire(bytes, &model));
  return DecodeModel(model, path);
}

// Weights of a file stay in it; those of bytes in memory become part of the graph.
enum class BytesAre : uint8_t { kFile, kMemory };

Result<Model> ParseOffline(std::string_view bytes, const std::string& path, BytesAre where) {
  NPUMESH_ASSIGN_OR_RETURN(const OfflineParts parts, ReadOfflineParts(bytes));
  NPUMESH_ASSIGN_OR_RETURN(Model model, ParseBinary(parts.graph, path));
  if (where == BytesAre::kMemory) NPUMESH_RETURN_IF_ERROR(TakeWeightsInside(bytes, &model));
  return model;
}

Result<Model> ParseAnyForm(std::string_view bytes, const std::string& path, BytesAre where) {
  if (bytes.empty()) return Error(Code::kCorrupt, "not a model: the file is empty");
  if (IsOfflineFile(bytes)) return ParseOffline(bytes, path, where);
  if (IsOfflineBundle(bytes)) {
    return Error(Code::kUnsupported,
                 "a bundle of offline models; aclmdlBundleLoadFromFile loads it, and the models "
                 "that it was made of run alone");
  }
  NPUMESH_RETURN_IF_ERROR(RefuseForeignFile(bytes));
  // A map that is half read when memory ends cannot be destroyed on the heap (libprotobuf 3.21).
  google::protobuf::Arena arena;
  auto& model = *google::protobuf::Arena::CreateMessage<pb::ModelDef>(&arena);
  const Status binary = ParseWire(bytes, &model);
  if (binary.ok() && model.graph_size() > 0) return DecodeModel(model, path);
  if (IsText(bytes)) return ParseTextModel(bytes, path);
  return binary.ok() ? Error(Code::kCorrupt, "not a model: the ModelDef has no graph") : binary;
}

Result<Model> NameFile(Result<Model> model, const std::string& path) {
  if (model.ok() || path.empty()) return model;
  return model.status().WithContext(path);
}

}  // namespace

Result<Model> LoadModel(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return LoadModel(*file, path);
}

Result<Model> LoadModel(const MappedFile& file, const std::string& path) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  return NameFile(ParseAnyForm(bytes, path, BytesAre::kFile), path);
}

Result<Model> ParseOfflineFile(std::string_view bytes, const std::string& path) {
  return NameFile(ParseOffline(bytes, path, BytesAre::kFile), path);
}

Result<Model> ParseModel(std::string bytes, const std::string& path) {
  return NameFile(ParseAnyForm(bytes, path, BytesAre::kMemory), path);
}

}  // namespace npumesh
