// write_samples FOLDER: the graphs that the commands of the documentation name: FOLDER/mp (a
// decoder on 4 ranks), whole.air (the same on one), export.air and model.air (one rank),
// dynamic.air and model.onnx (x of any height).
#include <cstdio>
#include <string>

#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"
#include "graph/onnx/writer.h"
#include "launch/samples/decoder_model.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kWidth = 32;

Status WriteDecoder(const std::string& folder) {
  const DecoderConfig config = {
      .layers = 2, .hidden = kWidth, .heads = 4, .ffn = 64, .sequence = 8};
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder + "/mp", FileKind::kData));
  for (int rank = 0; rank < kRanks; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(const Model model, BuildDecoder(config, rank, kRanks));
    NPUMESH_RETURN_IF_ERROR(SaveAir(model, fmt::format("{}/mp/mp_rank{}.air", folder, rank)));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Model whole, BuildDecoder(config, 0, 1));
  return SaveAir(whole, folder + "/whole.air");
}

// Eight layers of x = RmsNorm(x + x * w).
Result<Model> BuildLayers(int64_t height) {
  GraphBuilder g("graph_1");
  Value x = g.Data("x", {DataType::kFloat, {height, kWidth}});
  for (int layer = 0; layer < 8; ++layer) {
    std::vector<float> weights(static_cast<size_t>(kWidth * kWidth));
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>((i * 37 + static_cast<size_t>(layer)) % 17) / 64.0f - 0.125f;
    }
    const TensorType type = {DataType::kFloat, {kWidth, kWidth}};
    const Value w =
        g.Const(fmt::format("arg{}_1", layer), Tensor::FromVector<float>(type, weights));
    const Value product = g.Op("MatMul", {{"x1", x}, {"x2", w}});
    const Value sum = g.Op("Add", {{"x1", x}, {"x2", product}});
    const Value gamma = g.Const(
        fmt::format("gamma_{}", layer),
        Tensor::FromVector<float>({DataType::kFloat, {kWidth}}, std::vector<float>(kWidth, 1.0f)));
    x = g.Op("RmsNorm", {{"x", sum}, {"gamma", gamma}}, {}, {}, 2);
  }
  g.Output({x});
  return g.Build();
}

// Relu(x * w), as ONNX.
Status WriteNetwork(const std::string& path) {
  GraphBuilder g("network");
  const Value x = g.Data("x", {DataType::kFloat, {-1, kWidth}});
  const TensorType type = {DataType::kFloat, {kWidth, kWidth}};
  const Value w =
      g.Const("w", Tensor::FromVector<float>(type, std::vector<float>(kWidth * kWidth, 0.125f)));
  g.Output({g.Op("Relu", {{"x", g.Op("MatMul", {{"x1", x}, {"x2", w}})}})});
  NPUMESH_ASSIGN_OR_RETURN(const Model model, g.Build());
  NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, WriteOnnx(model));
  return WriteFile(path, bytes, FileKind::kData);
}

Status WriteAll(const std::string& folder) {
  NPUMESH_RETURN_IF_ERROR(WriteDecoder(folder));
  NPUMESH_ASSIGN_OR_RETURN(const Model layers, BuildLayers(8));
  NPUMESH_ASSIGN_OR_RETURN(const Model dynamic, BuildLayers(-1));
  NPUMESH_RETURN_IF_ERROR(WriteNetwork(folder + "/model.onnx"));
  NPUMESH_RETURN_IF_ERROR(SaveAir(layers, folder + "/export.air"));
  NPUMESH_RETURN_IF_ERROR(SaveAir(layers, folder + "/model.air"));
  return SaveAir(dynamic, folder + "/dynamic.air");
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const npumesh::Status status = npumesh::WriteAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
