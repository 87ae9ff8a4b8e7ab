// The sample graphs: written by TorchAir and GE themselves.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <filesystem>

#include "graph/io/npy.h"
#include "graph/io/npy_header.h"
#include "graph/io/weights.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

namespace fs = std::filesystem;
namespace pb = ge::proto;

std::vector<std::string> SampleFiles(std::string_view extension) {
  std::vector<std::string> files;
  const fs::path samples = fs::path(NPUMESH_SHARED_DIR) / "samples";
  if (!fs::exists(samples)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(samples)) {
    if (entry.path().extension() == extension) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Model LoadFile(const std::string& path) {
  auto model = LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *std::move(model) : Model();
}

std::string Content(const std::string& path) {
  return ReadFile(path).value();
}

#define SKIP_WITHOUT(files) \
  if (files.empty()) GTEST_SKIP() << "no samples below " NPUMESH_SHARED_DIR

TEST(Samples, SavedFilesAreStable) {
  const auto files = SampleFiles(".air");
  SKIP_WITHOUT(files);
  for (const std::string& path : files) {
    const std::string saved = Saved(LoadFile(path));
    const auto again = ParseModel(saved, path);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(Saved(*again), saved) << path;
  }
}

void SortOps(pb::ModelDef* model) {
  for (pb::GraphDef& graph : *model->mutable_graph()) {
    std::sort(graph.mutable_op()->begin(), graph.mutable_op()->end(),
              [](const pb::OpDef& a, const pb::OpDef& b) { return a.name() < b.name(); });
    std::sort(graph.mutable_input()->begin(), graph.mutable_input()->end());
    for (pb::OpDef& op : *graph.mutable_op()) {
      for (auto& desc : *op.mutable_input_desc()) desc.clear_name();
      for (auto& desc : *op.mutable_output_desc()) desc.clear_name();
      for (auto& [key, attr] : *op.mutable_attr()) {
        if (attr.has_t()) attr.mutable_t()->mutable_desc()->clear_name();
      }
    }
  }
}

TEST(Samples, WhatGeWroteComesBackFieldByField) {
  const auto files = SampleFiles(".air");
  SKIP_WITHOUT(files);
  for (const std::string& path : files) {
    if (path.find("raw_modeldef") != path.npos) continue;  // not yet in GE's form
    pb::ModelDef original = FromBytes(Content(path));
    pb::ModelDef saved = FromBytes(Saved(LoadFile(path)));
    SortOps(&original);
    SortOps(&saved);
    std::string difference;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(original, saved)) << path << "\n" << difference;
  }
}

TEST(Samples, TextFormsComeBack) {
  const auto files = SampleFiles(".air");
  SKIP_WITHOUT(files);
  for (const std::string& path : files) {
    const Model model = LoadFile(path);
    const auto text = ParseModel(ToGeProtoText(model), path);
    ASSERT_TRUE(text.ok()) << text.status().ToString();
    EXPECT_EQ(Saved(*text), Saved(model)) << path;
    const std::string pbtxt = ToPbtxt(model);
    const auto again = ParseModel(pbtxt, path);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(ToPbtxt(*again), pbtxt) << path;
  }
}

// What both files say about a port. GE fills in defaults, so only names, dtypes and shapes count.
void ExpectSamePorts(const std::vector<TensorDesc>& a, const std::vector<TensorDesc>& b,
                     bool is_file_constant) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].shape, b[i].shape);
    if (!is_file_constant) {
      EXPECT_EQ(a[i].dtype, b[i].dtype);
    }
  }
}

// Inputs as they are, then controls by name, whose order means nothing.
std::vector<std::string> SortedInputs(const Graph& graph, std::string_view node) {
  std::vector<std::string> inputs = Inputs(graph, node);
  std::sort(inputs.begin() + static_cast<std::ptrdiff_t>(NodeOf(graph, node).inputs.size()),
            inputs.end());
  return inputs;
}

// Ints, strings and int lists; the kinds that GE does not rewrite.
void ExpectSameValue(const AttrValue& a, const AttrValue& b) {
  EXPECT_EQ(a.kind(), b.kind());
  if (const auto* i = b.get<int64_t>()) {
    EXPECT_EQ(*a.get<int64_t>(), *i);
  } else if (const auto* s = b.get<std::string>()) {
    EXPECT_EQ(*a.get<std::string>(), *s);
  } else if (const auto* list = b.get<ListAttr>()) {
    EXPECT_EQ(a.get<ListAttr>()->i, list->i);
  }
}

void ExpectSameGraph(const Graph& text, const Graph& air) {
  ASSERT_EQ(text.nodes().size(), air.nodes().size());
  for (const Node& node : air.nodes()) {
    SCOPED_TRACE(node.name);
    const Node& other = NodeOf(text, node.name);
    EXPECT_EQ(other.type, node.type);
    EXPECT_EQ(other.inputs.size(), node.inputs.size());
    EXPECT_EQ(SortedInputs(text, node.name), SortedInputs(air, node.name));
    ExpectSamePorts(other.input_descs, node.input_descs, false);
    ExpectSamePorts(other.output_descs, node.output_descs, node.type == "FileConstant");
    for (const auto& [key, value] : node.attrs) {
      const AttrValue* twin = other.FindAttr(key);
      ASSERT_NE(twin, nullptr) << key;
      ExpectSameValue(*twin, value);
    }
  }
}

// The .air file that stands for dynamo.pbtxt: rank N's when the text is in a folder rank_N.
std::string AirBeside(const fs::path& pbtxt) {
  const std::string folder = pbtxt.parent_path().filename().string();
  const bool ranked = folder.rfind("rank_", 0) == 0;
  const std::string suffix = ranked ? folder.substr(5) + ".air" : ".air";
  const fs::path package = ranked ? pbtxt.parent_path().parent_path() : pbtxt.parent_path();
  for (const auto& entry : fs::directory_iterator(package)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      return entry.path().string();
    }
  }
  return "";
}

TEST(Samples, PbtxtIsTheGraphOfItsAirFile) {
  const auto files = SampleFiles(".pbtxt");
  SKIP_WITHOUT(files);
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    const std::string air = AirBeside(path);
    ASSERT_FALSE(air.empty());
    ExpectSameGraph(LoadFile(path).graph, LoadFile(air).graph);
  }
}

TEST(Samples, WeightsLoad) {
  const auto files = SampleFiles(".air");
  SKIP_WITHOUT(files);
  int weights = 0;
  for (const std::string& path : files) {
    const Model model = LoadFile(path);
    for (const Node& node : model.graph.nodes()) {
      if (node.type != "Const" && node.type != "FileConstant") continue;
      const auto weight = LoadWeight(node, path);
      EXPECT_TRUE(weight.ok()) << weight.status().ToString();
      ++weights;
    }
  }
  EXPECT_GT(weights, 0);
}

TEST(Samples, NpyFilesHaveTheHeaderWeWrite) {
  const auto files = SampleFiles(".npy");
  SKIP_WITHOUT(files);
  for (const std::string& path : files) {
    const auto tensor = ReadNpy(path);
    ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
    const std::string_view data(reinterpret_cast<const char*>(tensor->data()), tensor->bytes());
    EXPECT_EQ(FormatNpyHeader(tensor->type()).value() + std::string(data), Content(path)) << path;
  }
}

}  // namespace
}  // namespace npumesh::testing
