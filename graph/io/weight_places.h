// CheckWeightPlaces: do the weights of a model come from the package that was named?
//
// The package is the folder of the model file, and all weights lie in it. A weight that it lacks is
// an error even when the recorded path leads to a file elsewhere, because that file belongs to
// another package, or to another version of this one; `allow_outside` takes it and tells. A link
// may not lead out of the folder in which its path was found. A model that was not read from a file
// has no package: its paths are followed.
#ifndef NPUMESH_GRAPH_IO_WEIGHT_PLACES_H_
#define NPUMESH_GRAPH_IO_WEIGHT_PLACES_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/base/status.h"

namespace npumesh {

struct WeightRules {
  bool allow_outside = false;  // weights, and where links lead, may be outside of the package
};

// A weight whose file the package does not have.
struct LackingWeight {
  std::string node;
  std::string stored;      // its path as the graph has it
  std::string looked_for;  // the places in the package
  std::string elsewhere;   // the file outside of the package to which the path leads; empty: none
};

struct WeightPlaces {
  // What a user should know, a line each: the absolute paths outside of the package, of which all
  // but the first eight are counted in one line; that weights are missing in the package and come
  // from elsewhere; that a file below the working directory has the recorded path of a weight and
  // other content.
  std::vector<std::string> notes;
  std::vector<LackingWeight> lacking;  // in node order
};

// Files that are too short are not looked for here; LoadWeight names them. Reads bytes only where
// two files compete. Error (kInvalidArgument): a link that leads out, with the node, the file and
// where it leads.
Result<WeightPlaces> LookForWeights(const Model& model, const WeightRules& rules);

// "the package lacks 80 weights of ranks 0-3; the first: ...": one line for one cause. `whose` is
// empty, or names the ranks; REQUIRES: `count` > 0.
std::string LackText(size_t count, const LackingWeight& first, std::string_view whose = {});

// The notes of LookForWeights. Errors: its own, and kNotFound for weights that the package lacks.
Result<std::vector<std::string>> CheckWeightPlaces(const Model& model, const WeightRules& rules);

// The file that LoadWeight takes for a FileConstant; empty: no file.
std::string WeightFileOf(const Node& node, const std::string& model_path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHT_PLACES_H_
