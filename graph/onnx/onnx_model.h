// An ONNX model as plain values, without protobuf: what reader.h makes of a file, and what
// import.h takes.
//
// Names are those of the file. An empty name of an input or output of a node is an operand that is
// left out.
#ifndef NPUMESH_GRAPH_ONNX_ONNX_MODEL_H_
#define NPUMESH_GRAPH_ONNX_ONNX_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

enum class OnnxKind : uint8_t { kTensor, kSequence, kOptional, kOther };

// The type of a value. Of a sequence or an optional, `element` has the type of what it holds.
struct OnnxType {
  OnnxKind kind = OnnxKind::kOther;
  TensorType tensor;                        // open dimensions -1; without a shape: unknown rank
  std::vector<std::string> dim_names;       // one for each dimension; empty: it has no name
  std::shared_ptr<const OnnxType> element;  // null: a tensor, or nothing is said
};

struct OnnxValueInfo {
  std::string name;
  OnnxType type;
};

struct OnnxGraph;

struct OnnxAttribute {
  enum class Kind : uint8_t {
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kType,
    kOther,
  };
  std::string name;
  std::string reference;  // of a function's body: the attribute of the caller; else empty
  Kind kind = Kind::kOther;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  Tensor tensor;
  OnnxType type;
  std::shared_ptr<const OnnxGraph> graph;  // null unless kGraph
};

struct OnnxNode {
  std::string name;  // may be empty
  std::string op;
  std::string domain;  // "" for the standard operators, "ai.onnx" in files too
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;

  const OnnxAttribute* Find(std::string_view attribute) const;
  // "node \"conv1\" (Conv)", or by its first output when it has no name: how messages begin.
  std::string Who() const;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValueInfo> inputs;
  std::vector<OnnxValueInfo> outputs;
  std::vector<OnnxValueInfo> values;           // what the file says of others
  std::map<std::string, Tensor> initialisers;  // by name
};

// A function of the model's own, which its nodes call by domain and name.
struct OnnxFunction {
  std::string name;
  std::string domain;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;
  std::vector<OnnxNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain, the standard one is ""
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  std::string path;  // for messages
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_ONNX_MODEL_H_
