#include "tests/onnx/onnx_server.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/onnx/tensor_reader.h"
#include "graph/onnx/writer.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "graph/session/session_config.h"
#include "launch/view/value_types.h"
#include "tests/onnx/model_builder.h"

namespace npumesh {
namespace {

using Parts = std::vector<std::string>;
constexpr uint32_t kMostBytes = 1 << 28;

std::optional<uint32_t> ReadNumber(std::FILE* in) {
  uint32_t number = 0;
  const bool read = std::fread(&number, sizeof number, 1, in) == 1 && number < kMostBytes;
  return read ? std::optional(number) : std::nullopt;
}

// Nullopt: the requests end.
std::optional<Parts> ReadRequest(std::FILE* in) {
  const std::optional<uint32_t> count = ReadNumber(in);
  if (!count || *count < 2) return std::nullopt;
  Parts parts;
  for (uint32_t i = 0; i < *count; ++i) {
    const std::optional<uint32_t> size = ReadNumber(in);
    if (!size) return std::nullopt;
    std::string& part = parts.emplace_back(*size, '\0');
    if (std::fread(part.data(), 1, *size, in) != *size) return std::nullopt;
  }
  return parts;
}

Status WriteAnswer(std::FILE* out, const Parts& parts) {
  const auto put = [&](const void* data, size_t size) {
    return std::fwrite(data, 1, size, out) == size;
  };
  const auto number = [&](size_t value) {
    const auto narrow = static_cast<uint32_t>(value);
    return put(&narrow, sizeof narrow);
  };
  bool written = number(parts.size());
  for (const std::string& part : parts) {
    written = written && number(part.size()) && put(part.data(), part.size());
  }
  written = written && std::fflush(out) == 0;
  return written ? Status() : Error(Code::kIo, "the answer cannot be written");
}

Result<Parts> RunModel(World& world, DeviceMemory& memory, Model model, const Parts& request) {
  std::vector<Tensor> inputs;
  for (size_t i = 2; i < request.size(); ++i) {
    onnx::TensorProto proto;
    if (!proto.ParseFromString(request[i])) return Error(Code::kCorrupt, "input {}", i - 2);
    NPUMESH_ASSIGN_OR_RETURN(Tensor tensor, TakeTensor(proto, ""));
    inputs.push_back(std::move(tensor));
  }
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Create(world, memory, std::move(model), DefaultSessionOptions()));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(inputs));
  Parts parts;
  for (const Tensor& output : outputs) {
    parts.push_back(testing::ToProto("", output).SerializeAsString());
  }
  return parts;
}

Result<Parts> Answered(World& world, DeviceMemory& memory, const Parts& request) {
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel onnx, ReadOnnx(request[1], ""));
  NPUMESH_ASSIGN_OR_RETURN(Model model, ImportOnnx(onnx, BuiltinOps()));
  if (request[0] == "import") return Parts();
  if (request[0] == "back") {
    (void)InferTypes(BuiltinOps(), nullptr, model);
    NPUMESH_ASSIGN_OR_RETURN(std::string bytes, WriteOnnx(model));
    return Parts{std::move(bytes)};
  }
  Result<Parts> run = RunModel(world, memory, std::move(model), request);
  if (!run.ok()) return run.status().WithContext("run");
  return run;
}

}  // namespace

Status ServeOnnx(std::FILE* in, std::FILE* out) {
  Env env;
  env.hbm_bytes = uint64_t{256} << 20;
  env.connect_timeout = std::chrono::seconds(60);
  env.exec_timeout = std::chrono::seconds(60);
  return RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    while (const std::optional<Parts> request = ReadRequest(in)) {
      Result<Parts> answer = Answered(world, *memory, *request);
      Parts parts = {answer.ok() ? "ok" : "error"};
      if (answer.ok()) {
        parts.insert(parts.end(), answer->begin(), answer->end());
      } else {
        parts.emplace_back(answer.status().message());
      }
      NPUMESH_RETURN_IF_ERROR(WriteAnswer(out, parts));
    }
    return Status();
  })[0];
}

}  // namespace npumesh
