// CheckWeightPlaces: do the weights of a model come from the package that was named?
//
// The package is the folder of the model file. Absolute paths are legal wherever they lead, and so
// are relative ones that are found below the working directory because the package lacks the file;
// both are told. A link may not lead out of the folder in which its path was found.
#ifndef NPUMESH_GRAPH_IO_WEIGHT_PLACES_H_
#define NPUMESH_GRAPH_IO_WEIGHT_PLACES_H_

#include <string>
#include <vector>

#include "graph/io/weights.h"
#include "graph/ir/graph.h"

namespace npumesh {

struct WeightRules {
  bool allow_outside = false;  // links may lead out of the package
  WeightSearch search = WeightSearch::kEverywhere;
};

// What a user should know, a line each: the absolute paths outside of the package, of which all but
// the first eight are counted in one line; that weights are missing in the package and come from
// elsewhere; that a file below the working directory has the recorded path of a weight and other
// content. Files that are missing or too short are not looked for here; LoadWeight names them.
// Reads bytes only where two files compete. Error (kInvalidArgument): a link that leads out, with
// the node, the file and where it leads.
Result<std::vector<std::string>> CheckWeightPlaces(const Model& model, const WeightRules& rules);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHT_PLACES_H_
