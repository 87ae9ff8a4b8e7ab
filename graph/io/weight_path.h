// Where the file of a FileConstant is (air-format reference 5.4). Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_WEIGHT_PATH_H_
#define NPUMESH_GRAPH_IO_WEIGHT_PATH_H_

#include <string>

#include "runtime/base/status.h"

namespace npumesh {

// The first existing place of `stored`, in the order that LoadWeight documents. Errors: kNotFound
// lists all places; kInvalidArgument for a relative path that leaves both folders.
Result<std::string> FindWeightFile(const std::string& stored, const std::string& model_path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHT_PATH_H_
