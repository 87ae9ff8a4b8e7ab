// Details of the files that TorchAir writes which a hand-written graph leaves out.
#ifndef NPUMESH_TESTS_MODELS_TORCHAIR_FORM_H_
#define NPUMESH_TESTS_MODELS_TORCHAIR_FORM_H_

#include <set>
#include <string>

#include "graph/ir/graph.h"

namespace npumesh::models {

// Gives every node what TorchAir's builders write: output ports under the names of the interface;
// from positional builders an empty input with `_is_unfed_optional` for each optional input that is
// absent, and every attribute; from named builders neither. Inputs in `on_host` are placed on the
// host.
void WriteAsTorchAir(Model& model, const std::set<std::string>& on_host);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_TORCHAIR_FORM_H_
