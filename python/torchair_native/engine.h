// What all graphs of the process share: the world, options, and the list of graphs.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_ENGINE_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_ENGINE_H_

#include <set>

#include "python/torchair_native/object.h"

namespace npumesh::torchair {

class Graph;

// TorchAir knows one engine for a process. All functions need the GIL, which guards the state.
class Engine {
 public:
  static Engine& Get();

  // InitializeGraphEngine: the first call decides, later ones are nothing. Error set.
  bool Initialize(const Texts& options);
  // FinalizeGraphEngine: closes the graphs, which have to be loaded again. The world stays, because
  // operators of torch_npu and groups of torch.distributed live in it. Error set: that of a dump.
  bool Finalize();

  // This process as a rank; made by the first call. Error set where it is null.
  npumesh_world* World();

  // AclmdlSetDump; makes the folder that the file names. Error set.
  bool SetDump(const std::string& path);

  // What a session of a graph with these options is told: pairs of docs/config.md, groups.
  // Error set.
  bool OptionsFor(const Texts& graph, Texts& session);

  void Add(Graph* graph) { graphs_.insert(graph); }
  void Remove(Graph* graph) { graphs_.erase(graph); }

 private:
  bool initialized_ = false;
  bool dump_is_set_ = false;  // AclmdlSetDump says what is dumped
  Texts options_;
  std::set<Graph*> graphs_;
};

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_ENGINE_H_
