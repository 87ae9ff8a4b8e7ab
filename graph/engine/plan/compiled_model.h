// CompiledModel: a graph with everything decided: types, order, addresses, kernels.
//
// Compile is done for one set of input types (and, where shapes depend on them, input values); a
// Session keeps one CompiledModel for each. executor.h runs it.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_COMPILED_MODEL_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_COMPILED_MODEL_H_

#include <memory>
#include <vector>

#include "graph/engine/analyse/compile_options.h"
#include "graph/engine/analyse/model_inputs.h"
#include "graph/engine/plan/lending.h"
#include "graph/engine/plan/plan_facts.h"
#include "graph/engine/plan/step.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

class CompiledModel {
 public:
  // Compiles the main graph for inputs of these types; `values` gives, by position, the values of
  // inputs that shapes may depend on (others may be empty tensors; so may be the whole vector).
  // `groups` may be null for a graph without collectives. `model`, `registry` and `groups` must
  // outlive the result. Collective over the groups of the graph, unless `groups` has made their
  // communicators before. REQUIRES: model.graph.Verify() is OK.
  // Errors: the complete list of operators that are missing or cannot be compiled (kUnsupported
  // when one of them is), kInvalidArgument for an input of the wrong type or shape (names it,
  // expected and seen) and for outputs that differ from what NetOutput declares.
  static Result<std::unique_ptr<CompiledModel>> Compile(
      const Model& model, const OpRegistry& registry, const std::vector<TensorType>& input_types,
      const std::vector<Tensor>& values, GroupProvider* groups, const CompileOptions& options);

  // A model of a step that runs outside of any plan: `source` and the step are all it has. `source`
  // must outlive it.
  static std::unique_ptr<CompiledModel> OfStep(const Model& source, Step step);

  // Equal for no two models as long as a holder of it exists: tells an observer whether it has seen
  // this one before.
  const std::shared_ptr<const void>& identity() const { return identity_; }
  // What it was compiled from.
  const Model& source() const { return *source_; }
  const std::vector<InputSpec>& inputs() const { return inputs_; }
  const std::vector<TensorType>& input_types() const { return input_types_; }
  const std::vector<TensorType>& output_types() const { return output_types_; }
  const std::vector<Address>& outputs() const { return outputs_; }
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Tensor>& constants() const { return constants_; }
  // True when a kernel or the caller reads constant `index` while the graph runs. Others are not
  // brought into HBM; their address is that of the host bytes.
  bool constant_is_read(size_t index) const { return constant_is_read_[index]; }
  uint64_t arena_bytes() const { return arena_bytes_; }      // activations, with reuse
  uint64_t scratch_bytes() const { return scratch_bytes_; }  // largest of all kernels
  uint64_t constant_bytes() const;
  // Device memory of arena and scratch, and of the constants that are read, in blocks as
  // DeviceMemory hands them out.
  uint64_t arena_block_bytes() const;
  uint64_t scratch_block_bytes() const;
  uint64_t constant_block_bytes() const;
  // All device memory that a separate executor takes: arena, scratch, inputs and constants that are
  // read, in blocks as DeviceMemory hands them out. Nothing more is allocated while it runs.
  uint64_t device_bytes() const;
  // What became of nodes and tensors, for people.
  const PlanFacts& facts() const { return facts_; }
  // True for inputs whose values went into this compilation: another value needs another
  // compilation.
  const std::vector<bool>& value_dependent() const { return value_dependent_; }
  // Which inputs and outputs can lie in memory of the caller. Empty for a model of a step.
  const PlanUses& uses() const { return uses_; }

 private:
  friend class Compiler;
  CompiledModel() = default;

  std::shared_ptr<const void> identity_ = std::make_shared<char>();
  const Model* source_ = nullptr;
  std::vector<InputSpec> inputs_;
  std::vector<TensorType> input_types_;
  std::vector<TensorType> output_types_;
  std::vector<Address> outputs_;
  std::vector<Step> steps_;
  std::vector<Tensor> constants_;
  std::vector<bool> constant_is_read_;  // by constant
  std::vector<bool> value_dependent_;
  uint64_t arena_bytes_ = 0;
  uint64_t scratch_bytes_ = 0;
  PlanFacts facts_;
  PlanUses uses_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_COMPILED_MODEL_H_
