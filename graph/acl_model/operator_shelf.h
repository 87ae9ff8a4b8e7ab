// OperatorShelf: the single operators that a process has compiled or loaded, and what runs them.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_GRAPH_ACL_MODEL_OPERATOR_SHELF_H_
#define NPUMESH_GRAPH_ACL_MODEL_OPERATOR_SHELF_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/acl_model/session_model.h"
#include "graph/offline/single_operator.h"

namespace npumesh {

// What the call says, in the words of graphs. Errors (kInvalidArgument) name the tensor.
Result<SingleOperator> SingleOf(const OperatorCall& call);

class OperatorShelf {
 public:
  // As the members of ModelMachine. A call of the operator waits for `turn`, which is of the device
  // and outlives what is made.
  Status Add(const ModelBytes& bytes);
  Status Compile(const AclDevice& device, const OperatorCall& call);
  Result<MadeOperator> Make(AclDevice& device, std::mutex& turn, const OperatorCall& call) const;
  void Clear();

 private:
  // Of the operator that serves `wanted`; null: there is no such operator.
  std::shared_ptr<const Model> Find(const Model& wanted) const;
  void Put(Model model);

  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::shared_ptr<const Model>>, std::less<>> by_type_;
};

// See ModelMachine.
Result<std::vector<ModelPort>> InferOperator(const OperatorCall& call);
Status WriteOperatorGraph(const OperatorCall& call, const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACL_MODEL_OPERATOR_SHELF_H_
