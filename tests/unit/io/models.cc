#include "tests/unit/io/models.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace npumesh::testing {

ge::proto::ModelDef FromText(std::string_view text) {
  ge::proto::ModelDef model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), &model));
  return model;
}

ge::proto::ModelDef FromBytes(const std::string& bytes) {
  ge::proto::ModelDef model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

std::string OneGraph(std::string_view ops) {
  return fmt::format("graph {{ name: \"g\" {} }}", ops);
}

Result<Model> Parse(std::string_view text, const std::string& path) {
  return ParseModel(FromText(text).SerializeAsString(), path);
}

Model Load(std::string_view text) {
  Result<Model> model = Parse(text);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *std::move(model) : Model();
}

std::string LoadError(std::string_view text) {
  const Result<Model> model = Parse(text);
  return model.ok() ? "loaded" : std::string(model.status().message());
}

std::string Saved(const Model& model) {
  Result<std::string> bytes = SerializeAir(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : "";
}

const Node& NodeOf(const Graph& graph, std::string_view name) {
  static const Node kNone;
  const NodeId id = graph.Find(name);
  EXPECT_NE(id, kNoNode) << name;
  return id == kNoNode ? kNone : graph.node(id);
}

std::vector<std::string> Inputs(const Graph& graph, std::string_view name) {
  const Node& node = NodeOf(graph, name);
  std::vector<std::string> inputs;
  for (const auto& input : node.inputs) {
    inputs.push_back(input ? fmt::format("{}:{}", graph.node(input->node).name, input->port) : "");
  }
  for (NodeId control : node.controls) inputs.push_back("^" + graph.node(control).name);
  return inputs;
}

std::string PutFile(const std::string& path, std::string_view content) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

}  // namespace npumesh::testing
