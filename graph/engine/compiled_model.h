// CompiledModel: a graph with everything decided: types, order, addresses, kernels. And the
// Executor, which walks its steps.
//
// Compile is done for one set of input types (and, where shapes depend on them, input values); a
// Session keeps one CompiledModel for each.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_COMPILED_MODEL_H_
#define NPUMESH_GRAPH_ENGINE_COMPILED_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/op_registry.h"
#include "graph/ops/operator.h"
#include "runtime/device/device_memory.h"

namespace npumesh {

struct CompileOptions {
  int threads = 1;
  // Prints, as debug lines, what each pass did.
  bool trace = false;
};

// Where a tensor of a step lives.
struct Address {
  enum class Kind : uint8_t {
    kNone,      // absent optional input
    kArena,     // offset into the activation arena (HBM)
    kConstant,  // index into constants()
    kInput,     // index of a graph input's buffer (HBM)
  };
  Kind kind = Kind::kNone;
  uint64_t offset = 0;  // bytes in the arena, or the index
};

struct Step {
  NodeId node = kNoNode;
  std::string name;
  std::string type;
  std::unique_ptr<Kernel> kernel;
  std::vector<Address> inputs;   // by slot
  std::vector<Address> outputs;  // by port
  std::vector<TensorType> input_types;
  std::vector<TensorType> output_types;
  bool collective = false;
};

// What a graph expects from its caller.
struct InputSpec {
  std::string name;
  int64_t index = 0;    // attribute `index`
  TensorType declared;  // with unknown dimensions
  bool ref = false;     // RefData: updated in place
  bool host = false;    // small host scalar (device_type CPU)
};

// Inputs of the main graph sorted by index. Errors (kCorrupt): two inputs with one index.
Result<std::vector<InputSpec>> InputsOf(const Model& model);

class CompiledModel {
 public:
  // Compiles the main graph for inputs of these types; `values` gives, by position, the values of
  // inputs that shapes may depend on (others may be empty tensors).
  // Errors: kUnsupported with the complete list of operators that are missing or cannot be
  // compiled, kInvalidArgument for an input of the wrong type or shape (names it, expected and
  // seen).
  static Result<std::unique_ptr<CompiledModel>> Compile(
      const Model& model, const OpRegistry& registry, const std::vector<TensorType>& input_types,
      const std::vector<Tensor>& values, GroupProvider* groups, const CompileOptions& options);

  const std::vector<InputSpec>& inputs() const { return inputs_; }
  const std::vector<TensorType>& input_types() const { return input_types_; }
  const std::vector<TensorType>& output_types() const { return output_types_; }
  const std::vector<Address>& outputs() const { return outputs_; }
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Tensor>& constants() const { return constants_; }
  uint64_t arena_bytes() const { return arena_bytes_; }      // activations, with reuse
  uint64_t scratch_bytes() const { return scratch_bytes_; }  // largest of all kernels
  uint64_t constant_bytes() const;
  // True for inputs whose values went into this compilation: another value needs another
  // compilation.
  const std::vector<bool>& value_dependent() const { return value_dependent_; }

 private:
  friend class Compiler;
  CompiledModel() = default;

  std::vector<InputSpec> inputs_;
  std::vector<TensorType> input_types_;
  std::vector<TensorType> output_types_;
  std::vector<Address> outputs_;
  std::vector<Step> steps_;
  std::vector<Tensor> constants_;
  std::vector<bool> value_dependent_;
  uint64_t arena_bytes_ = 0;
  uint64_t scratch_bytes_ = 0;
};

// Sees each step after it ran: dump, profiler, fault injection. Pointers are valid during the call.
struct StepView {
  const Step& step;
  const KernelArgs& args;
  double seconds;
};
using StepObserver = std::function<Status(const StepView&)>;

// Time and memory of one run.
struct RunStats {
  double compute_seconds = 0;
  double collective_seconds = 0;
  uint64_t steps = 0;
  uint64_t collectives = 0;
};

// Owns the device buffers of one CompiledModel and runs it.
class Executor {
 public:
  // Allocates arena, scratch, inputs and constants in HBM. `model` and `memory` must outlive it.
  static Result<std::unique_ptr<Executor>> Create(CompiledModel& model, DeviceMemory& memory);
  ~Executor();

  // Device buffer of input `position`; the caller writes its bytes before Run. RefData buffers keep
  // their content from run to run.
  void* input_buffer(int position) const { return inputs_[static_cast<size_t>(position)]; }

  // Runs all steps. No allocation. Errors name the step's operator.
  Result<RunStats> Run(const StepObserver& observer = {});

  // Device address and type of graph output `index`; valid until the next Run.
  const void* output(int index) const;

 private:
  Executor(CompiledModel& model, DeviceMemory& memory) : model_(model), memory_(memory) {}
  void* Resolve(const Address& address) const;

  struct Bound;  // addresses of one step
  CompiledModel& model_;
  DeviceMemory& memory_;
  std::vector<void*> allocations_;
  std::byte* arena_ = nullptr;
  void* scratch_ = nullptr;
  std::vector<void*> inputs_;
  std::vector<const void*> constants_;
  std::vector<Bound> bound_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_COMPILED_MODEL_H_
