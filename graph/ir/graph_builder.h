// GraphBuilder: writes a graph down as one would on paper.
//
//   GraphBuilder g("decoder");
//   auto x = g.Data("x", {DataType::kFloat, {2, 4}});
//   auto p = g.Const("p1", weights);
//   auto y = g.Op("Add", {{"x1", x}, {"x2", p}});
//   g.Output({y});
//   Result<Model> model = g.Build();
//
// Mistakes (an unknown port, a value of another builder) are remembered and reported by Build, the
// first one with the name of its node, so that the writing reads without error handling.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_IR_GRAPH_BUILDER_H_
#define NPUMESH_GRAPH_IR_GRAPH_BUILDER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

class GraphBuilder {
 public:
  using Input = std::pair<std::string, Value>;
  using Attr = std::pair<std::string, AttrValue>;

  explicit GraphBuilder(std::string name = "graph_1");

  // Graph input; indexes follow the order of the calls. Unknown dimensions are -1.
  Value Data(std::string name, TensorType type);
  // Graph input that the graph updates in place.
  Value RefData(std::string name, TensorType type);
  Value Const(std::string name, const Tensor& value);
  // Weights in a file of raw little-endian elements.
  Value FileConstant(std::string name, TensorType type, std::string file_path);

  // A node of any type; returns its output 0. An empty name becomes the type, then type_1,
  // type_2... Output ports are y, or y0, y1, ... when there are several; `outputs` says how many.
  Value Op(std::string type, std::vector<Input> inputs, std::vector<Attr> attrs = {},
           std::string name = {}, int outputs = 1);
  // Output `port` of the node that made `value`.
  Value Port(Value value, int port) const { return {value.node, port}; }
  // Declares the element type of `value`, for nodes that will read it too. Without it a value is
  // declared float32.
  void Declare(Value value, DataType dtype);
  // Gives the node that made `value` its subgraphs: the main graphs of `models`, in this order,
  // whose own subgraphs come along. Names of graphs must be unique in the finished model.
  void Runs(Value value, std::vector<Model> models);
  // `before` runs before `after` although no data flows.
  void Order(Value before, Value after);

  // Nodes added from here to LeaveModule belong to this layer of the model, inside the layers that
  // were entered before: they carry the attribute `nn_module_stack`. Layers that repeat are told
  // apart by an index: EnterModule("layer[0]", "pkg.Layer").
  void EnterModule(std::string name, std::string type);
  void LeaveModule();

  // int64 vector or scalar constants, as shapes, axes and permutations are written.
  Value Ints(std::vector<int64_t> values, std::string name = {});
  Value Int(int64_t value, std::string name = {});

  void Output(std::vector<Value> values);

  // What is written so far.
  const Graph& graph() const { return model_.graph; }

  // The finished, verified model; the builder is empty afterwards.
  Result<Model> Build();

 private:
  std::string UniqueName(std::string_view base);
  Value AddNode(Node node);

  struct Module {
    std::string name;
    std::string type;
  };
  std::string ModuleStack() const;

  Model model_;
  std::vector<Module> modules_;  // entered and not left
  int next_index_ = 0;
  bool has_output_ = false;
  Status failure_;
};

// Takes `nn_module_stack` off all nodes, as an export without enable_record_nn_module_stack does.
void DropModuleStacks(Model& model);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_GRAPH_BUILDER_H_
