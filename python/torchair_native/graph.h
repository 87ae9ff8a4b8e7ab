// One graph of TorchAir: TorchNpuGraphBase without its Python.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_GRAPH_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_GRAPH_H_

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "python/torchair_native/object.h"
#include "python/torchair_native/tensor.h"

namespace npumesh::torchair {

// What load was given.
struct LoadedGraph {
  std::string bytes;
  Texts options;
  std::vector<int64_t> placements;  // of inputs: 0 host, 1 device
  std::vector<int64_t> dtypes;      // of outputs, ge::DataType
  int64_t executor = 0;             // 0 host, 1 NPU
};

struct InputPort {
  std::string name;
  int32_t dtype = NPUMESH_UNDEFINED;
  bool ref = false;  // an operator of the graph writes it
  bool frozen = false;
  Dims dims;
  int32_t rank = 0;
};

// Functions need the GIL; those that work release it. "Error set" as in object.h.
class Graph {
 public:
  explicit Graph(std::string name);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Replaces what was loaded. The bytes are read when it is compiled. Error set.
  bool Load(LoadedGraph loaded);
  // Shapes at trace time; -1 is an open dimension. Error set.
  bool SetHintShape(std::vector<Dims> inputs, std::vector<Dims> outputs);
  // Collective over the ranks whose graphs communicate. Error set.
  bool Compile();
  // Compiles, and measures kernels, for these tensors. Error set.
  bool AutoTune(PyObject* inputs);
  // Collective over the ranks whose graphs communicate. A list of tensors. Error set.
  PyObject* Run(PyObject* inputs, PyObject* assigned);

  // Closes the session. The error of its dump; empty: none.
  std::string Unload();

  const std::string& name() const { return name_; }

  // What the session has counted. Error set.
  bool GetStats(npumesh_session_stats& stats);

 private:
  bool Open();
  bool NotePorts();
  bool CheckOutputs();
  bool CheckInputCount(size_t seen);
  bool CheckPlacement(PyObject* tensor, size_t position);
  bool BindInput(PyObject* tensor, size_t position, TensorView& view);
  bool BindOutput(PyObject* tensor, npumesh_tensor& output, TensorView& view);
  bool Prepare();
  std::string ExecutorWord() const;
  bool IsStatic() const;

  const std::string name_;
  std::optional<LoadedGraph> loaded_;
  std::vector<Dims> input_hints_, output_hints_;
  npumesh_session* session_ = nullptr;
  std::vector<InputPort> inputs_;
  size_t output_count_ = 0;
  std::vector<Ref> frozen_;  // tensors whose memory the session keeps
  Ref device_;               // of new outputs
  std::mutex turn_;          // a run at a time; taken without the GIL
};

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_GRAPH_H_
