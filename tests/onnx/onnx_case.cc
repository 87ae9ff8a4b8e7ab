#include "tests/onnx/onnx_case.h"

#include <onnx/onnx-data_pb.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/onnx/tensor_reader.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/session/session.h"
#include "graph/session/session_config.h"
#include "runtime/base/files/mapped_file.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

Result<std::string> BytesOf(const fs::path& file) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> mapped,
                           MappedFile::Open(file.string()));
  return std::string(reinterpret_cast<const char*>(mapped->data()), mapped->size());
}

// The tensors of one file of data, in the order in which the import makes ports of them.
class DataReader {
 public:
  Result<std::vector<Tensor>> Read(const OnnxType& type, const std::string& bytes) {
    bfloat16_ = type.tensor.dtype == DataType::kBfloat16;
    NPUMESH_RETURN_IF_ERROR(ReadAs(type, bytes));
    return std::move(tensors_);
  }

 private:
  template <typename Proto>
  static Status Parse(const std::string& bytes, Proto& proto) {
    return proto.ParseFromString(bytes) ? Status() : Error(Code::kCorrupt, "damaged test data");
  }

  Status ReadAs(const OnnxType& type, const std::string& bytes) {
    if (type.kind == OnnxKind::kSequence) {
      onnx::SequenceProto sequence;
      NPUMESH_RETURN_IF_ERROR(Parse(bytes, sequence));
      return AddSequence(sequence);
    }
    if (type.kind == OnnxKind::kOptional) {
      onnx::OptionalProto optional;
      NPUMESH_RETURN_IF_ERROR(Parse(bytes, optional));
      if (optional.has_tensor_value()) return Add(optional.tensor_value());
      return optional.has_sequence_value() ? AddSequence(optional.sequence_value()) : Status();
    }
    onnx::TensorProto tensor;
    NPUMESH_RETURN_IF_ERROR(Parse(bytes, tensor));
    return Add(tensor);
  }

  Status AddSequence(const onnx::SequenceProto& sequence) {
    for (const auto& tensor : sequence.tensor_values()) NPUMESH_RETURN_IF_ERROR(Add(tensor));
    return Status();
  }

  Status Add(onnx::TensorProto proto) {
    NPUMESH_ASSIGN_OR_RETURN(Tensor tensor, TakeTensor(proto, ""));
    // NumPy has no bfloat16: the suite stores the bits as uint16.
    const bool bits = bfloat16_ && tensor.dtype() == DataType::kUint16;
    tensors_.push_back(bits ? tensor.WithType({DataType::kBfloat16, tensor.shape()}) : tensor);
    return Status();
  }

  std::vector<Tensor> tensors_;
  bool bfloat16_ = false;
};

struct DataSet {
  std::vector<std::vector<Tensor>> inputs;  // by input of the graph
  std::vector<Tensor> outputs;
};

Result<DataSet> ReadDataSet(const OnnxGraph& graph, const fs::path& folder) {
  DataSet data;
  int number = 0;
  for (const OnnxValueInfo& input : graph.inputs) {
    const fs::path file = folder / fmt::format("input_{}.pb", number++);
    data.inputs.emplace_back();
    if (!fs::exists(file)) continue;  // an input with an initialiser
    NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, BytesOf(file));
    NPUMESH_ASSIGN_OR_RETURN(data.inputs.back(), DataReader().Read(input.type, bytes));
  }
  number = 0;
  for (const OnnxValueInfo& output : graph.outputs) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string bytes,
                             BytesOf(folder / fmt::format("output_{}.pb", number++)));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors,
                             DataReader().Read(output.type, bytes));
    data.outputs.insert(data.outputs.end(), tensors.begin(), tensors.end());
  }
  return data;
}

// A value whose elements the import has to count; an optional is one when it is empty.
bool IsCounted(const OnnxType& type, const std::vector<Tensor>& tensors) {
  return type.kind == OnnxKind::kSequence ||
         (type.kind == OnnxKind::kOptional && type.element != nullptr &&
          (tensors.empty() || type.element->kind == OnnxKind::kSequence));
}

bool Near(double seen, double expected, const CaseBounds& bounds) {
  if (std::isnan(expected) || std::isnan(seen)) return std::isnan(expected) && std::isnan(seen);
  if (std::isinf(expected) || std::isinf(seen)) return expected == seen;
  return std::fabs(seen - expected) <= bounds.atol + bounds.rtol * std::fabs(expected);
}

std::vector<double> NumbersOf(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  FindConvert(tensor.dtype(), DataType::kDouble)(tensor.data(), numbers.data(), numbers.size());
  return numbers;
}

Status Compare(const Tensor& seen, const Tensor& expected, const CaseBounds& bounds,
               size_t output) {
  if (seen.type() != expected.type()) {
    return Error(Code::kMismatch, "output {} is {}, expected {}", output, seen.type(),
                 expected.type());
  }
  const std::vector<double> a = NumbersOf(seen), b = NumbersOf(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (Near(a[i], b[i], bounds)) continue;
    return Error(Code::kMismatch, "output {} ({}) differs at element {}: {}, expected {}", output,
                 seen.type(), i, a[i], b[i]);
  }
  return Status();
}

Status RunDataSet(const OnnxModel& model, const DataSet& data, const CaseBounds& bounds,
                  World& world, DeviceMemory& memory) {
  OnnxImportOptions options;
  std::vector<Tensor> fed;
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const OnnxValueInfo& input = model.graph.inputs[i];
    if (IsCounted(input.type, data.inputs[i])) {
      options.sequence_lengths[input.name] = static_cast<int>(data.inputs[i].size());
    }
    if (model.graph.initialisers.count(input.name) > 0) continue;
    fed.insert(fed.end(), data.inputs[i].begin(), data.inputs[i].end());
  }
  Result<Model> imported = ImportOnnx(model, BuiltinOps(), options);
  if (!imported.ok()) return imported.status().WithContext("import");
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Create(world, memory, *std::move(imported), DefaultSessionOptions()));
  Result<std::vector<Tensor>> outputs = session->Run(fed);
  if (!outputs.ok()) return outputs.status().WithContext("run");
  if (outputs->size() != data.outputs.size()) {
    return Error(Code::kMismatch, "{} outputs, expected {}", outputs->size(), data.outputs.size());
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(Compare((*outputs)[i], data.outputs[i], bounds, i));
  }
  return Status();
}

Status RunDataSets(const std::string& folder, const CaseBounds& bounds, World& world,
                   DeviceMemory& memory) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, BytesOf(fs::path(folder) / "model.onnx"));
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnx(bytes, ""));
  for (int set = 0;; ++set) {
    const fs::path data = fs::path(folder) / fmt::format("test_data_set_{}", set);
    if (!fs::is_directory(data)) return Status();
    NPUMESH_ASSIGN_OR_RETURN(const DataSet read, ReadDataSet(model.graph, data));
    NPUMESH_RETURN_IF_ERROR(RunDataSet(model, read, bounds, world, memory));
  }
}

}  // namespace

Status RunOnnxCase(const std::string& folder, const CaseBounds& bounds) {
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  env.connect_timeout = std::chrono::seconds(300);
  env.exec_timeout = std::chrono::seconds(300);
  return RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    return RunDataSets(folder, bounds, world, *memory);
  })[0];
}

}  // namespace npumesh
