#include "tests/mpi/cli/run_command.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "graph/io/model_file.h"
#include "graph/io/npy.h"
#include "launch/mpirun/child_process.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

CommandRun Run(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.emplace_back(NPUMESH_COMMAND);
  words.insert(words.end(), more.begin(), more.end());
  CommandRun run;
  const Result<int> code = RunChild(
      words, [&](std::string_view bytes) { run.out += bytes; },
      [&](std::string_view bytes) { run.err += bytes; });
  EXPECT_TRUE(code.ok()) << code.status().message();
  if (code.ok()) run.code = *code;
  return run;
}

Value AllReduce(GraphBuilder& g, Value x) {
  return g.Op(
      "HcomAllReduce", {{"x", x}},
      {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String("hccl_world_group")}});
}

}  // namespace

std::vector<std::string> CommandRun::FailureLines() const {
  std::vector<std::string> lines;
  std::istringstream stream(err);
  for (std::string line; std::getline(stream, line);) {
    if (line.find("npumesh") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

CommandRun RunRanksOf(int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> mpirun;
  std::istringstream stream(NPUMESH_MPIRUN_WORDS);
  for (std::string word; stream >> word;) mpirun.push_back(word);
  mpirun.insert(mpirun.end(), {"-n", std::to_string(ranks)});
  return Run(std::move(mpirun), words);
}

CommandRun RunAlone(const std::vector<std::string>& words) {
  return Run({}, words);
}

namespace {

Tensor OneFloat(float value) {
  Tensor tensor = Tensor::Allocate({DataType::kFloat, {1}});
  std::memcpy(tensor.mutable_data(), &value, sizeof(value));
  return tensor;
}

}  // namespace

TestFolder::TestFolder() {
  std::string path = testing::TempDir() + "/npumesh-cli-XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr) << path;
  path_ = path;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TestFolder::Save(int rank, GraphBuilder& g) const {
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Status saved = SaveAir(*model, *this / ("m" + std::to_string(rank) + ".air"));
  ASSERT_TRUE(saved.ok()) << saved.message();
}

void TestFolder::PutModels(int ranks) const {
  for (int rank = 0; rank < ranks; ++rank) {
    GraphBuilder g("small");
    const Value x = g.Data("x", {DataType::kFloat, {4}});
    g.Output({ranks == 1 ? g.Op("Add", {{"x1", x}, {"x2", x}}) : AllReduce(g, x)});
    Save(rank, g);
  }
}

void TestFolder::PutChains(int ranks) const {
  for (int rank = 0; rank < ranks; ++rank) {
    GraphBuilder g("chain");
    const Value x = g.Data("x", {DataType::kFloat, {3, 20}});
    const Value sum = ranks == 1 ? x : AllReduce(g, x);
    const Value one = g.Const("one", OneFloat(1));
    const Value relu = g.Op("Relu", {{"x", g.Op("Add", {{"x1", sum}, {"x2", one}})}});
    const Value product = g.Op("Mul", {{"x1", relu}, {"x2", sum}});
    g.Output({g.Op("SoftmaxV2", {{"x", product}})});
    Save(rank, g);
  }
}

void TestFolder::PutProducts(int ranks) const {
  for (int rank = 0; rank < ranks; ++rank) {
    GraphBuilder g("product");
    const Value x = g.Data("x", {DataType::kFloat16, {4, 64}});
    const Value w = g.Const("w", Tensor::Allocate({DataType::kFloat16, {64, 64}}));
    g.Output({g.Op("MatMulV2", {{"x1", x}, {"x2", w}})});
    Save(rank, g);
  }
}

void TestFolder::PutGatings(int ranks, int64_t experts) const {
  for (int rank = 0; rank < ranks; ++rank) {
    GraphBuilder g("gating");
    const Value x = g.Data("x", {DataType::kFloat, {2, experts}});
    g.Output({g.Op("MoeGatingTopK", {{"x", x}}, {{"k", AttrValue::Int(2)}}, "gate", 3)});
    Save(rank, g);
  }
}

void TestFolder::PutPackage(const std::string& name, const std::string& recorded,
                            float value) const {
  GraphBuilder g("package");
  const TensorType type{DataType::kFloat, {4}};
  const Value x = g.Data("x", type);
  g.Output({g.Op("Add", {{"x1", x}, {"x2", g.FileConstant("w", type, recorded)}})});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().message();
  fs::create_directories(path_ / name);
  const Status saved = SaveAir(*model, (path_ / name / "export.air").string());
  ASSERT_TRUE(saved.ok()) << saved.message();
  const std::vector<float> values(4, value);
  std::ofstream(path_ / name / "w", std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), 4 * sizeof(float));
}

void TestFolder::PutModelsThatFailOnRank0() const {
  for (const int rank : {0, 1}) {
    GraphBuilder g("failing");
    const Value x = g.Data("x", {DataType::kFloat, {4}});
    const Value at = g.Ints({0, 1, 2, rank == 0 ? 7 : 3});
    g.Output({AllReduce(g, g.Op("Gather", {{"x", x}, {"indices", at}}, {}, "lookup"))});
    Save(rank, g);
  }
}

void TestFolder::PutTensor(const std::string& set, int rank, float value, int64_t elements) const {
  const fs::path folder = path_ / set / ("rank_" + std::to_string(rank));
  fs::create_directories(folder);
  const std::vector<float> values(static_cast<size_t>(elements), value);
  const Tensor tensor = Tensor::FromVector<float>({DataType::kFloat, {elements}}, values);
  const Status written = WriteNpy((folder / "0.npy").string(), tensor);
  ASSERT_TRUE(written.ok()) << written.message();
}

}  // namespace npumesh
