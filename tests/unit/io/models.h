// Models for the tests of graph/io, in the bytes of TorchAir and of GE, and how to compare.
#ifndef NPUMESH_TESTS_UNIT_IO_MODELS_H_
#define NPUMESH_TESTS_UNIT_IO_MODELS_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/io/model_file.h"
#include "proto/ge_ir.pb.h"

namespace npumesh::testing {

// Example 1, x + y + p1 + p2: ModelDef text as TorchAir hands it to GE.
extern const std::string_view kRawExample;
// An input of the same graph after GE rewrote it, passed through.
extern const std::string_view kGeExample;
// Example 2, rank 0 of 2: FileConstant weights, Cast and HcomAllReduce.
extern const std::string_view kAllReduceExample;

// The message of a text. REQUIRES: the text is right (checked).
ge::proto::ModelDef FromText(std::string_view text);
ge::proto::ModelDef FromBytes(const std::string& bytes);
// A model with the one graph "g", whose ops are given as text.
std::string OneGraph(std::string_view ops);

// Loads a ModelDef text through its binary form.
Result<Model> Parse(std::string_view text, const std::string& path = "test.air");
// The same. REQUIRES: it loads (checked).
Model Load(std::string_view text);
// The message of the error that loading yields; "loaded" when it loads.
std::string LoadError(std::string_view text);
// The bytes of SerializeAir. REQUIRES: the model can be saved (checked).
std::string Saved(const Model& model);

const Node& NodeOf(const Graph& graph, std::string_view name);
// "producer:port" for each input, "" for an unconnected one, then "^producer" for each control.
std::vector<std::string> Inputs(const Graph& graph, std::string_view node);

// Writes a file, parents included, and returns its path.
std::string PutFile(const std::string& path, std::string_view content);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_IO_MODELS_H_
