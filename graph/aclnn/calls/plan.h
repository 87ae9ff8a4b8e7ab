// AclnnPlan: a call of an aclnn function, ready to run with any addresses.
#ifndef NPUMESH_GRAPH_ACLNN_CALLS_PLAN_H_
#define NPUMESH_GRAPH_ACLNN_CALLS_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/aclnn/calls/meaning.h"
#include "graph/aclnn/calls/view.h"
#include "graph/limits/node_watch.h"
#include "runtime/acl/models/model_machine.h"

namespace npumesh {

// The tensors of a call: those of each parameter in a row.
struct AclnnTensors {
  std::vector<size_t> first;  // of each parameter, and the end
  std::vector<AclnnView> views;
};

class AclnnPlan {
 public:
  // `overlaps`, by tensor: it is written and shares memory with another one that is; where it
  // shares memory with what is read the engine sees to it, run by run. Errors of MeaningOf,
  // Session::Create and, where `card` is not null, NodeWatch::Check.
  static Result<std::unique_ptr<AclnnPlan>> Make(AclDevice& device, const AclnnFunction& function,
                                                 const std::vector<AclnnArgument>& arguments,
                                                 AclnnTensors tensors,
                                                 const std::vector<bool>& overlaps,
                                                 const std::shared_ptr<NodeWatch>& card);

  const AclnnFunction& function() const { return *function_; }
  AclDevice& device() const { return *device_; }
  // For tensors whose elements do not lie side by side, and results in each other's memory. At
  // multiples of 64.
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether a tensor must have an address.
  bool Uses(size_t tensor) const { return used_[tensor]; }
  const AclnnTensors& tensors() const { return tensors_; }

  // Runs it with the tensors at `addresses`. Any thread; runs follow each other. `shapes`: gets
  // those of open outputs, by tensor.
  using Shapes = std::map<size_t, std::vector<int64_t>>;
  Status Run(const std::vector<void*>& addresses, void* workspace, Shapes* shapes);

 private:
  // A tensor of the model.
  struct Port {
    size_t tensor = 0;
    AclnnView view;
    int64_t in_workspace = -1;  // its place there; -1: where the tensor is
    int64_t scratch = 0;        // the place of what Gather and Scatter need beside
    bool open = false;          // its shape is known after the run
  };
  AclnnPlan() = default;
  int64_t Reserve(uint64_t bytes);
  // Brings an open output from the workspace to its tensor.
  static void Keep(const Port& port, const ModelBuffer& output, void* tensor);
  void* AddressOf(const Port& port, const std::vector<void*>& addresses, void* workspace) const;

  const AclnnFunction* function_ = nullptr;
  AclDevice* device_ = nullptr;
  AclnnTensors tensors_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::vector<bool> used_;
  uint64_t workspace_bytes_ = 0;
  std::unique_ptr<LoadedModel> model_;  // null: nothing is computed
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_CALLS_PLAN_H_
