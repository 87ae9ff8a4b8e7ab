#include "graph/io/offline_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "graph/io/model_file.h"
#include "graph/io/offline_header.h"
#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr std::string_view kMaker = "npumesh offline model 1";
constexpr std::string_view kMakerWithoutVersion = "npumesh offline model ";
constexpr std::string_view kBundleMaker = "npumesh bundle of models 1";
constexpr size_t kPartitions = 3;  // description, graph, weights
constexpr size_t kBeforeParts =
    kOfflineHeaderBytes + kTableHead + kPartitions * sizeof(OfflinePartition);
constexpr uint64_t kWeightsAlignment = 4096;
constexpr uint64_t kWeightAlignment = 64;
// Smaller constants stay in the graph, where a reader of the text sees them.
constexpr uint64_t kLeavesGraph = 4096;

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

std::string_view TextOf(const char* field, size_t size) {
  return {field, strnlen(field, size)};
}

OfflineHeader HeaderOf(std::string_view bytes) {
  OfflineHeader header;
  std::memcpy(&header, bytes.data(), std::min<size_t>(bytes.size(), sizeof header));
  return header;
}

// Sixteen digits.
std::string Checksum(std::string_view bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

// The checksum of the weights stands in the first quarter of the header's field, that of all other
// bytes in the second, which counts as empty for it.
std::string ChecksumOfRest(OfflineHeader header, std::string_view after_header) {
  std::memset(header.checksum + 16, 0, 16);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += after_header;
  return Checksum(bytes);
}

void Put(std::string_view text, char* field, size_t size) {
  std::memcpy(field, text.data(), std::min(text.size(), size - 1));
}

struct Weight {
  uint64_t offset = 0;  // in the partition
  Tensor value;
};

// The weights that leave the graph, in the order of its nodes, each at its place.
class WeightShelf {
 public:
  uint64_t bytes() const { return bytes_; }
  const std::vector<Weight>& weights() const { return weights_; }

  // The node becomes a FileConstant of the file.
  void Take(Node& node, const Tensor& value) {
    bytes_ = RoundUp(bytes_, kWeightAlignment);
    Weight weight{bytes_, value};
    bytes_ += value.bytes();
    weights_.push_back(std::move(weight));
    node.type = "FileConstant";
    for (const char* attr : {"value", "file_path", "file_id", "length"}) node.attrs.erase(attr);
    node.attrs["location"] = AttrValue::String(std::string(kInThisFile));
    node.attrs["offset"] = AttrValue::Int(static_cast<int64_t>(weights_.back().offset));
    node.attrs["length"] = AttrValue::Int(static_cast<int64_t>(value.bytes()));
    node.attrs["dtype"] = AttrValue::Type(value.dtype());
    node.attrs["shape"] = AttrValue::Ints(value.shape().dims());
    taken_.push_back(&node);
  }

  // After all were taken and the place of the partition is known.
  void MoveTo(uint64_t first) {
    for (size_t i = 0; i < taken_.size(); ++i) {
      const uint64_t offset = first + weights_[i].offset;
      taken_[i]->attrs["offset"] = AttrValue::Int(static_cast<int64_t>(offset));
    }
  }

 private:
  uint64_t bytes_ = 0;
  std::vector<Weight> weights_;
  std::vector<Node*> taken_;  // the graphs do not change meanwhile
};

// A constant whose bytes are those of its type, without a private format.
bool IsPlain(const Node& node, const Tensor& value) {
  const AttrValue* attr = node.FindAttr("value");
  const TensorAttr* tensor = attr == nullptr ? nullptr : attr->get<TensorAttr>();
  if (tensor == nullptr || tensor->data->size() != value.bytes()) return false;
  const std::string& layout = tensor->desc->layout;
  const bool named_plain = layout.empty() || layout == "ND" || layout == "NCHW";
  return named_plain && !node.output_descs.empty() && node.output_descs[0].attrs.empty();
}

Status TakeWeights(Graph& graph, const std::string& path, WeightHome home, WeightShelf& shelf) {
  for (const Node& seen : graph.nodes()) {
    if (seen.removed || !IsWeightNode(seen)) continue;
    Node& node = graph.node(seen.id);
    if (IsFileConstant(node) && home == WeightHome::kBeside) continue;
    NPUMESH_ASSIGN_OR_RETURN(const Tensor value, LoadWeight(node, path));
    const bool leaves =
        IsFileConstant(node) ||
        (home == WeightHome::kInside && value.bytes() >= kLeavesGraph && IsPlain(node, value));
    if (leaves) shelf.Take(node, value);
  }
  return Status();
}

// The graph as bytes, with the offsets of its weights, which depend on how many bytes it has: an
// offset is a number of at most ten bytes, so the second or third try has the length of the one
// before.
Result<std::string> SettleGraph(const Model& model, size_t description, WeightShelf& shelf) {
  std::string bytes;
  for (int tries = 0; tries < 8; ++tries) {
    NPUMESH_ASSIGN_OR_RETURN(std::string next, SerializeAir(model));
    const bool settled = tries > 0 && next.size() == bytes.size();
    bytes = std::move(next);
    if (settled) return bytes;
    shelf.MoveTo(RoundUp(kBeforeParts + description + bytes.size(), kWeightsAlignment));
  }
  return Error(Code::kInternal, "a bug of npumesh: the offsets of weights do not settle");
}

// XXH3 of what passes through.
class RunningChecksum {
 public:
  RunningChecksum() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~RunningChecksum() { XXH3_freeState(state_); }
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;
  void Add(const void* bytes, size_t size) { XXH3_64bits_update(state_, bytes, size); }
  std::string Text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_)); }

 private:
  XXH3_state_t* state_;
};

// Weights with the gaps between them, piece by piece, into `take`.
Status ForEachPiece(const WeightShelf& shelf,
                    const std::function<Status(std::span<const std::byte>)>& take) {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  constexpr std::array<std::byte, kWeightAlignment> kZeros{};
  uint64_t at = 0;
  for (const Weight& weight : shelf.weights()) {
    NPUMESH_RETURN_IF_ERROR(take(std::span(kZeros).first(weight.offset - at)));
    Status status;
    weight.value.Stream(kPiece, [&](uint64_t offset, uint64_t bytes) {
      if (status.ok()) status = take({weight.value.data() + offset, bytes});
    });
    NPUMESH_RETURN_IF_ERROR(status);
    at = weight.offset + weight.value.bytes();
  }
  return Status();
}

std::string TableText(std::span<const OfflinePartition> partitions) {
  std::string table(kTableHead, '\0');
  const auto count = static_cast<uint32_t>(partitions.size());
  std::memcpy(table.data(), &count, sizeof count);
  table.append(reinterpret_cast<const char*>(partitions.data()), partitions.size_bytes());
  return table;
}

std::string_view BytesIn(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.data()), static_cast<size_t>(file.size())};
}

OfflineHeader NewHeader(const Model& model, uint64_t length) {
  OfflineHeader header;
  header.long_length = length;
  header.length = length > UINT32_MAX ? 0 : static_cast<uint32_t>(length);
  Put(model.graph.name(), header.name, sizeof header.name);
  Put(kMaker, header.maker, sizeof header.maker);
  return header;
}

Status Damaged(std::string_view what, std::string_view expected, std::string_view seen) {
  return Error(Code::kCorrupt,
               "the offline model is damaged: {}; expected {}, seen {}; write it again with "
               "`npumesh atc`",
               what, expected, seen);
}

struct Located {
  OfflineHeader header;
  OfflineParts parts;
  std::string_view before_weights;  // what stands between header and weights
};

// The parts where the table says, without a look at their content.
Result<Located> Locate(std::string_view bytes) {
  if (bytes.size() < kBeforeParts) {
    return Damaged("its length", fmt::format("at least {} bytes", kBeforeParts),
                   std::to_string(bytes.size()));
  }
  Located located;
  located.header = HeaderOf(bytes);
  const std::string_view maker = TextOf(located.header.maker, sizeof located.header.maker);
  if (maker != kMaker) {
    return Error(Code::kUnsupported,
                 "the offline model is of the form \"{}\"; this npumesh reads \"{}\"", maker,
                 kMaker);
  }
  const uint64_t length = bytes.size() - kOfflineHeaderBytes;
  if (located.header.long_length != length) {
    return Damaged("its length after the header", std::to_string(located.header.long_length),
                   std::to_string(length));
  }
  std::array<OfflinePartition, kPartitions> table;
  std::memcpy(table.data(), bytes.data() + kOfflineHeaderBytes + kTableHead, sizeof table);
  const std::string_view body = bytes.substr(kBeforeParts);
  std::array<std::string_view, kPartitions> parts;
  constexpr std::array kKinds = {kDescriptionPartition, kGraphPartition, kWeightPartition};
  for (size_t i = 0; i < kPartitions; ++i) {
    const OfflinePartition& at = table[i];
    if (at.kind != kKinds[i] || at.offset > body.size() || at.bytes > body.size() - at.offset) {
      return Damaged(fmt::format("entry {} of its table", i),
                     fmt::format("partition {} inside of {} bytes", kKinds[i], body.size()),
                     fmt::format("{} at {} with {} bytes", at.kind, at.offset, at.bytes));
    }
    parts[i] = body.substr(at.offset, at.bytes);
  }
  located.parts = {parts[0], parts[1], parts[2]};
  const auto weights = static_cast<size_t>(parts[2].data() - bytes.data());
  located.before_weights = bytes.substr(kOfflineHeaderBytes, weights - kOfflineHeaderBytes);
  return located;
}

Status CheckRest(const Located& located) {
  const std::string_view stored(located.header.checksum + 16, 16);
  const std::string seen = ChecksumOfRest(located.header, located.before_weights);
  return stored == seen ? Status() : Damaged("the checksum of its graph", stored, seen);
}

Status CheckWeights(const Located& located) {
  const std::string_view stored(located.header.checksum, 16);
  const std::string seen = Checksum(located.parts.weights);
  return stored == seen ? Status() : Damaged("the checksum of its weights", stored, seen);
}

Status TakeInside(std::string_view bytes, Graph& graph) {
  for (const Node& seen : graph.nodes()) {
    if (seen.removed || !IsFileConstant(seen)) continue;
    if (seen.StringAttr("location", "") != kInThisFile) continue;
    Node& node = graph.node(seen.id);
    const int64_t offset = node.IntAttr("offset", -1), length = node.IntAttr("length", -1);
    const auto size = static_cast<int64_t>(bytes.size());
    if (offset < 0 || length < 0 || offset > size || length > size - offset) {
      return Error(Code::kCorrupt, "node \"{}\": offset {} and length {} in a file of {} bytes",
                   node.name, offset, length, size);
    }
    const std::optional<DataType> dtype = DataTypeFromRuntime(node.IntAttr("dtype", -1));
    TensorAttr value;
    value.desc = std::make_shared<TensorDesc>();
    value.desc->dtype = dtype.value_or(DataType::kUndefined);
    value.desc->shape = Shape(node.IntsAttr("shape"));
    value.data = std::make_shared<const std::string>(
        bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length)));
    node.type = "Const";
    for (const char* attr : {"location", "offset", "length", "dtype", "shape"}) {
      node.attrs.erase(attr);
    }
    node.attrs["value"] = AttrValue(std::move(value));
  }
  return Status();
}

// Of weights in the file of a model that lies `by` bytes further on in another file.
void MoveWeights(int64_t by, Graph& graph) {
  for (const Node& seen : graph.nodes()) {
    if (seen.removed || !IsFileConstant(seen)) continue;
    if (seen.StringAttr("location", "") != kInThisFile) continue;
    const int64_t offset = seen.IntAttr("offset", 0);
    graph.node(seen.id).attrs["offset"] = AttrValue::Int(offset + by);
  }
}

}  // namespace

bool IsOfflineFile(std::string_view bytes) {
  if (bytes.size() < sizeof(OfflineHeader)) return false;
  const OfflineHeader header = HeaderOf(bytes);
  return header.magic == kOfflineMagic &&
         TextOf(header.maker, sizeof header.maker).starts_with(kMakerWithoutVersion);
}

std::string DescribeForeignOffline(std::string_view bytes) {
  std::string text = "an offline model (.om)";
  if (bytes.size() < kOfflineHeaderBytes + kTableHead) return text + " that is cut off";
  const OfflineHeader header = HeaderOf(bytes);
  const auto name = TextOf(header.name, sizeof header.name);
  const auto platform = TextOf(header.platform, sizeof header.platform);
  if (!name.empty()) text += fmt::format(" \"{}\"", Printable(name));
  text +=
      fmt::format(", compiled for {}", platform.empty() ? "one kind of NPU" : Printable(platform));
  if (header.encrypted != 0) return text + ", encrypted";
  uint32_t count = 0;
  std::memcpy(&count, bytes.data() + kOfflineHeaderBytes, sizeof count);
  uint64_t graph = 0, weights = 0, kernels = 0;
  for (uint32_t i = 0; i < std::min<uint32_t>(count, 64); ++i) {
    const size_t at = kOfflineHeaderBytes + kTableHead + i * sizeof(OfflinePartition);
    if (at + sizeof(OfflinePartition) > bytes.size()) break;
    OfflinePartition partition;
    std::memcpy(&partition, bytes.data() + at, sizeof partition);
    if (partition.kind == kGraphPartition) graph += partition.bytes;
    if (partition.kind == kWeightPartition) weights += partition.bytes;
    const bool kernel = partition.kind == kKernelPartition ||
                        partition.kind == kHostKernelPartition || partition.kind == kTaskPartition;
    if (kernel) kernels += partition.bytes;
  }
  return text + fmt::format(", with {} bytes of graph, {} of weights and {} of kernels and tasks",
                            graph, weights, kernels);
}

Status SaveOffline(Model model, std::string_view description, WeightHome home,
                   const std::string& path, FileSystem& fs) {
  WeightShelf shelf;
  NPUMESH_RETURN_IF_ERROR(TakeWeights(model.graph, model.path, home, shelf));
  for (Graph& graph : model.subgraphs) {
    NPUMESH_RETURN_IF_ERROR(TakeWeights(graph, model.path, home, shelf));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::string graph, SettleGraph(model, description.size(), shelf));
  const uint64_t weights_at =
      RoundUp(kBeforeParts + description.size() + graph.size(), kWeightsAlignment);
  const std::array<OfflinePartition, kPartitions> partitions = {
      OfflinePartition{kDescriptionPartition, 0, 0, description.size()},
      OfflinePartition{kGraphPartition, 0, description.size(), graph.size()},
      OfflinePartition{kWeightPartition, 0, weights_at - kBeforeParts, shelf.bytes()}};
  OfflineHeader header = NewHeader(model, weights_at + shelf.bytes() - kOfflineHeaderBytes);
  RunningChecksum sum;
  NPUMESH_RETURN_IF_ERROR(ForEachPiece(shelf, [&](std::span<const std::byte> piece) {
    sum.Add(piece.data(), piece.size());
    return Status();
  }));
  std::memcpy(header.checksum, sum.Text().data(), 16);
  std::string front = TableText(partitions);
  front.append(description).append(graph);
  front.resize(weights_at - kOfflineHeaderBytes);
  std::memcpy(header.checksum + 16, ChecksumOfRest(header, front).data(), 16);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<SecureFile> file,
                           SecureFile::Create(path, FileKind::kData, fs));
  NPUMESH_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(&header, 1))));
  NPUMESH_RETURN_IF_ERROR(file->Append(front));
  NPUMESH_RETURN_IF_ERROR(
      ForEachPiece(shelf, [&](std::span<const std::byte> piece) { return file->Append(piece); }));
  return file->Commit();
}

Result<OfflineParts> ReadOfflineParts(std::string_view bytes) {
  NPUMESH_ASSIGN_OR_RETURN(const Located located, Locate(bytes));
  NPUMESH_RETURN_IF_ERROR(CheckRest(located));
  NPUMESH_RETURN_IF_ERROR(CheckWeights(located));
  return located.parts;
}

Result<std::string> ReadDescription(std::string_view bytes) {
  NPUMESH_ASSIGN_OR_RETURN(const Located located, Locate(bytes));
  NPUMESH_RETURN_IF_ERROR(CheckRest(located));
  return std::string(located.parts.description);
}

Status TakeWeightsInside(std::string_view bytes, Model* model) {
  NPUMESH_RETURN_IF_ERROR(TakeInside(bytes, model->graph));
  for (Graph& graph : model->subgraphs) NPUMESH_RETURN_IF_ERROR(TakeInside(bytes, graph));
  return Status();
}

// ---- Bundles ----

bool IsOfflineBundle(std::string_view bytes) {
  if (bytes.size() < sizeof(OfflineHeader)) return false;
  const OfflineHeader header = HeaderOf(bytes);
  return header.magic == kOfflineMagic && TextOf(header.maker, sizeof header.maker) == kBundleMaker;
}

Status SaveBundle(const std::vector<std::string>& files, const std::string& path, FileSystem& fs) {
  std::vector<std::shared_ptr<const MappedFile>> models;
  std::vector<OfflinePartition> partitions;
  const uint64_t table = kTableHead + files.size() * sizeof(OfflinePartition);
  uint64_t at = RoundUp(kOfflineHeaderBytes + table, kWeightsAlignment);
  for (const std::string& file : files) {
    NPUMESH_ASSIGN_OR_RETURN(models.emplace_back(), MappedFile::Open(file));
    const std::string_view bytes = BytesIn(*models.back());
    if (!IsOfflineFile(bytes)) {
      return Error(Code::kInvalidArgument, "{}: it is no offline model; `npumesh atc` makes one",
                   file);
    }
    const Status whole = ReadOfflineParts(bytes).status();
    if (!whole.ok()) return whole.WithContext(file);
    partitions.push_back({kModelPartition, 0, at - kOfflineHeaderBytes - table, bytes.size()});
    at = RoundUp(at + bytes.size(), kWeightsAlignment);
  }
  OfflineHeader header;
  header.models = static_cast<uint32_t>(files.size());
  header.long_length = at - kOfflineHeaderBytes;
  header.length = header.long_length > UINT32_MAX ? 0 : static_cast<uint32_t>(header.long_length);
  Put(kBundleMaker, header.maker, sizeof header.maker);
  const std::string front = TableText(partitions);
  std::memcpy(header.checksum + 16, ChecksumOfRest(header, front).data(), 16);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<SecureFile> out,
                           SecureFile::Create(path, FileKind::kData, fs));
  NPUMESH_RETURN_IF_ERROR(out->Append(std::as_bytes(std::span(&header, 1))));
  NPUMESH_RETURN_IF_ERROR(out->Append(front));
  uint64_t written = kOfflineHeaderBytes + front.size();
  for (const auto& model : models) {
    NPUMESH_RETURN_IF_ERROR(
        out->Append(std::string(RoundUp(written, kWeightsAlignment) - written, '\0')));
    NPUMESH_RETURN_IF_ERROR(out->Append(BytesIn(*model)));
    written = RoundUp(written, kWeightsAlignment) + model->size();
  }
  NPUMESH_RETURN_IF_ERROR(out->Append(std::string(at - written, '\0')));
  return out->Commit();
}

Result<std::vector<std::string_view>> ReadBundle(std::string_view bytes) {
  const OfflineHeader header = HeaderOf(bytes);
  const uint64_t length = bytes.size() - kOfflineHeaderBytes;
  if (header.long_length != length) {
    return Damaged("the length of the bundle after its header", std::to_string(header.long_length),
                   std::to_string(length));
  }
  const std::string_view body = bytes.substr(kOfflineHeaderBytes);
  const uint64_t table = kTableHead + uint64_t{header.models} * sizeof(OfflinePartition);
  if (header.models == 0 || table > body.size()) {
    return Damaged("the table of the bundle", fmt::format("{} bytes", table),
                   std::to_string(body.size()));
  }
  const std::string_view stored(header.checksum + 16, 16);
  const std::string seen = ChecksumOfRest(header, body.substr(0, table));
  if (stored != seen) return Damaged("the checksum of the bundle", stored, seen);
  std::vector<std::string_view> models;
  for (uint32_t i = 0; i < header.models; ++i) {
    OfflinePartition at;
    std::memcpy(&at, body.data() + kTableHead + i * sizeof at, sizeof at);
    const uint64_t room = body.size() - table;
    if (at.kind != kModelPartition || at.offset > room || at.bytes > room - at.offset) {
      return Damaged(fmt::format("entry {} of the bundle", i), fmt::format("{} bytes", room),
                     fmt::format("{} at {}", at.bytes, at.offset));
    }
    models.push_back(body.substr(table + at.offset, at.bytes));
  }
  return models;
}

Result<Model> LoadFromBundle(std::string_view bytes, size_t index, const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string_view> models, ReadBundle(bytes));
  if (index >= models.size()) {
    return Error(Code::kInvalidArgument, "index is {}, the bundle has {} models", index,
                 models.size());
  }
  NPUMESH_ASSIGN_OR_RETURN(Model model, ParseOfflineFile(models[index], path));
  const int64_t begin = models[index].data() - bytes.data();
  MoveWeights(begin, model.graph);
  for (Graph& graph : model.subgraphs) MoveWeights(begin, graph);
  return model;
}

}  // namespace npumesh
