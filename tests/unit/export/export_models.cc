#include "tests/unit/export/export_models.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "graph/ir/graph_builder.h"

namespace npumesh::testing {
namespace {

namespace fs = std::filesystem;

const TensorType kWeight{DataType::kFloat, {2, 4}};

}  // namespace

ExportFolder::ExportFolder() {
  std::string path = ::testing::TempDir() + "/npumesh-export-XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr) << path;
  path_ = fs::canonical(path);
}

ExportFolder::~ExportFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Model SeedAdd() {
  GraphBuilder g;
  const Value p1 = g.Data("arg0_1", kWeight);
  const Value p2 = g.Data("arg1_1", kWeight);
  const Value x = g.Data("arg2_1", kWeight);
  const Value y = g.Data("arg3_1", kWeight);
  Value sum = g.Op("Add", {{"x1", x}, {"x2", y}});
  sum = g.Op("Add", {{"x1", sum}, {"x2", p1}});
  g.Output({g.Op("Add", {{"x1", sum}, {"x2", p2}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

std::vector<ExportWeight> SeedAddWeights() {
  return {WeightFromTensor("arg0_1", "p1",
                           Tensor::FromVector<float>(kWeight, {1, 2, 3, 4, 5, 6, 7, 8})),
          WeightFromTensor("arg1_1", "p2",
                           Tensor::FromVector<float>(kWeight, std::vector<float>(8, 0.5f)))};
}

Model SeedAllReduce(const std::string& group, const std::string& reduction) {
  const TensorType input{DataType::kInt32, {2, 2}};
  const TensorType weight{DataType::kFloat, {2, 2}};
  GraphBuilder g;
  const Value p1 = g.Const("p1", Tensor::FromVector<float>(weight, {1.1f, 1.1f, 1.1f, 1.1f}));
  const Value p2 = g.Const("p2", Tensor::FromVector<float>(weight, {2.2f, 2.2f, 3.3f, 3.3f}));
  const Value x = g.Data("x", input);
  const Value y = g.Data("y", input);
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", y}});
  Value real = g.Op("Cast", {{"x", sum}}, {{"dst_type", AttrValue::Int(0)}});
  real = g.Op("Add", {{"x1", real}, {"x2", p1}});
  real = g.Op("Add", {{"x1", real}, {"x2", p2}});
  g.Output(
      {g.Op("HcomAllReduce", {{"x", real}},
            {{"reduction", AttrValue::String(reduction)}, {"group", AttrValue::String(group)}})});
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, std::string> ContentOf(const std::string& folder) {
  std::map<std::string, std::string> content;
  for (const std::string& name : FilesOf(folder)) content[name] = Slurp(folder + "/" + name);
  return content;
}

std::string Slurp(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void Spill(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<Status> ExportOn(int ranks, const std::function<Model(int)>& model,
                             const ExportOptions& options, const std::vector<int>& node_sizes,
                             const std::string& topology) {
  Env env;
  env.topology = topology;
  return RunRanks(
      ranks, env,
      [&](World& world) { return DynamoExport(world, model(world.rank()), options).status(); },
      node_sizes);
}

Status ExportAlone(Model model, const ExportOptions& options, std::vector<ExportWeight> weights) {
  return RunRanks(1, Env(), [&](World& world) {
    return DynamoExport(world, std::move(model), options, std::move(weights)).status();
  })[0];
}

}  // namespace npumesh::testing
