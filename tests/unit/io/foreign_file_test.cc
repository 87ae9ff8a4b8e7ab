#include "graph/io/foreign_file.h"

#include <gmock/gmock.h>

#include <random>
#include <string>
#include <vector>

#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

struct Example {
  std::string bytes;
  std::string kind;
  std::string advice;
};

// The first bytes of files as the tools write them.
std::vector<Example> Examples() {
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  return {
      {"PK\x03\x04..m/code/__torch__/m.py..m/data.pkl"s, "TorchScript", "torch.onnx.export"},
      {"PK\x03\x04..archive/data.pkl"s, "torch.save", "torch.onnx.export"},
      {"PK\x03\x04..archive_format"s, "torch.export", "dynamo_export"},
      {"PK\x03\x04..serialized_exported_program.json"s, "torch.export", "dynamo_export"},
      {"PK\x03\x04..model.weights.h5"s, "Keras", "tf2onnx"},
      {"PK\x03\x04..w.npy"s, ".npz", "--inputs"},
      {"PK\x05\x06"s, "without files", "again"},
      {"PK\x03\x04..picture.png"s, "zip", "unpack"},
      {"\x80\x02}q\x00."s, "pickle", "torch.onnx.export"},
      {"}q\x00."s, "pickle", "torch.onnx.export"},
      {"(dp0\nVw\np1\nI1\ns."s, "pickle", "torch.onnx.export"},
      {"ccollections\nOrderedDict\np0\n."s, "pickle", "torch.onnx.export"},
      {"7z\xbc\xaf\x27\x1c"s, "7-Zip", "unpack"},
      {"ftrt\0\0"s, "TensorRT", "ONNX"},
      {"\x0a\x05"
       "0.1.0\x12\x09MindSpore"s,
       "MindIR", "file_format=\"AIR\""},
      {"\xef\xbb\xbf\n <!doctype HTML>"s, "web page", "download"},
      {"<?xml version=\"1.0\"?><net name=\"x\">"s, "OpenVINO", "ONNX"},
      {"<?xml version=\"1.0\"?><Error/>"s, "XML", "download"},
      {R"({"architectures": []})", "JSON", "torch.onnx.export"},
      {" [1, 2]", "JSON", "--config"},
      {length + header + "abcd", "safetensors", "torch.onnx.export"},
      {"IMOD\0\0\0\1"s, ".om", "atc"},
      {"\x1c\0\0\0TFL3"s, "TensorFlow Lite", "tf2onnx"},
      {"\x1c\0\0\0ORTM"s, "ONNX Runtime", ".onnx"},
      {"GGUF\3\0\0\0"s, "GGUF", "torch.onnx.export"},
      {"\x89HDF\r\n\x1a\n"s, "HDF5", "tf2onnx"},
      {"\x93NUMPY\1\0"s, "NumPy", "--inputs"},
      {"\x1f\x8b\x08"s, "gzip", "unpack"},
      {"\xfd\x37zXZ\0\0"s, "xz", "unpack"},
      {"\x28\xb5\x2f\xfd"s, "zstd", "unpack"},
      {"BZh91AY"s, "bzip2", "unpack"},
      {tar, "tar", "unpack"},
      {"\x7f\x45LF\2\1\1"s, "shared library", "--op-library"},
      {"version https://git-lfs/spec\noid 1\nsize 2\n"s, "Git LFS", "git lfs pull"},
      {"<!DOCTYPE html><html></html>"s, "web page", "download"},
      {"<html><body>404</body></html>"s, "web page", "download"},
      {"\x0a\x10\x0a\x01x\x12\x0bPlaceholder"s, "GraphDef", "tf2onnx"},
      {"\x08\x01\x12\x05\x0a\x03\x22\x01s"s, "SavedModel", "tf2onnx"},
  };
}

TEST(ForeignFile, IsNamedWithWhatToDo) {
  for (const Example& example : Examples()) {
    const Status status = RefuseForeignFile(example.bytes);
    EXPECT_EQ(status.code(), Code::kUnsupported) << example.kind;
    EXPECT_THAT(status.message(), HasSubstr(example.kind));
    EXPECT_THAT(status.message(), HasSubstr(example.advice)) << example.kind;
    const Status parsed = ParseModel(example.bytes, "m.bin").status();
    EXPECT_THAT(parsed.message(), ::testing::StartsWith("m.bin: this is ")) << example.kind;
  }
}

// A graph is never refused, whatever its name and form.
TEST(ForeignFile, IsNoGraphOfOurs) {
  for (const std::string name : {"", "g", "PK", "IMOD", "{}", "GGUF", "TFL3", "\x12"}) {
    Model model = Load(kRawExample);
    model.name = name;
    EXPECT_TRUE(RefuseForeignFile(Saved(model)).ok()) << name;
    EXPECT_TRUE(RefuseForeignFile(ToPbtxt(model)).ok()) << name;
    EXPECT_TRUE(RefuseForeignFile(ToGeProtoText(model)).ok()) << name;
  }
}

// Any bytes, cut anywhere: an answer, and under the sanitizers no byte read past the end.
TEST(ForeignFile, TakesAnyBytes) {
  std::mt19937 random(1);
  const std::vector<Example> examples = Examples();
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = examples[random() % examples.size()].bytes;
    bytes.resize(random() % (bytes.size() + 1));
    for (int k = 0; k < 2 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const Status status = RefuseForeignFile(std::string(bytes));
    EXPECT_TRUE(status.ok() || status.code() == Code::kUnsupported);
  }
}

}  // namespace
}  // namespace npumesh::testing
