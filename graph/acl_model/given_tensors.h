// Tensors that a program gives itself, as a dump file.
#ifndef NPUMESH_GRAPH_ACL_MODEL_GIVEN_TENSORS_H_
#define NPUMESH_GRAPH_ACL_MODEL_GIVEN_TENSORS_H_

#include <string>
#include <vector>

#include "runtime/acl/models/model_machine.h"

namespace npumesh {

// ModelMachine::WriteTensors.
Status WriteGivenTensors(const std::string& folder, const std::string& name, const std::string& tag,
                         const std::vector<GivenTensor>& tensors);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACL_MODEL_GIVEN_TENSORS_H_
