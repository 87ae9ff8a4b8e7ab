// ModelMachine: what runs offline models for the C interface.
//
// Reading a graph and executing it are above this floor, so the interface asks a library for them
// that it loads with the first call that needs a model: libacl_mdl.so, beside libacl_rt.so. A
// program without models never pays for it.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_MODELS_MODEL_MACHINE_H_
#define NPUMESH_RUNTIME_ACL_MODELS_MODEL_MACHINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/acl/operators/operator_call.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {

// A model in a file, or in memory that lasts as long as the call.
struct ModelBytes {
  std::string path;            // for messages when it is in memory
  const void* data = nullptr;  // null: the file
  size_t size = 0;
  std::optional<size_t> index = std::nullopt;  // which model of a bundle; none: it is no bundle
};

// The caller's device memory for a model, which stays until it is unloaded; null: the model makes
// its own.
struct ModelAreas {
  void* work = nullptr;
  size_t work_bytes = 0;
  void* weights = nullptr;
  size_t weight_bytes = 0;
};

struct ModelPort {
  std::string name;
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<int64_t> dims;  // -1: open; a single -2: of open rank
  aclFormat format = ACL_FORMAT_ND;
};

// Dimensions of all inputs and outputs, those of outputs where they are known.
struct ModelShapes {
  std::vector<int64_t> gear;  // the numbers that choose it; empty without gears
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> outputs;
};

struct ModelFacts {
  enum class Gears : uint8_t { kNone, kBatch, kImage, kDims };
  std::string name;
  std::vector<ModelPort> inputs;
  std::vector<ModelPort> outputs;
  Gears gears = Gears::kNone;
  std::vector<ModelShapes> shapes;  // by gear; without gears one, or none when dimensions are open
  uint64_t work_bytes = 0;
  uint64_t weight_bytes = 0;
};

// Memory of an execution, and the shape of what is in it.
struct ModelBuffer {
  void* data = nullptr;
  uint64_t bytes = 0;                    // there are
  std::vector<int64_t> dims;             // of an input: what it has; of an output after the run
  aclDataType dtype = ACL_DT_UNDEFINED;  // of an output after the run
};

// A tensor of device memory that a program gives to a dump.
struct GivenTensor {
  enum class Role : uint8_t { kInput, kOutput, kWorkspace };
  Role role = Role::kInput;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  std::vector<int64_t> dims;
  std::vector<int64_t> original_dims;
  const void* data = nullptr;
  uint64_t bytes = 0;
};

// An operator of a model that has run.
struct RunOperator {
  std::string_view name;
  std::string_view type;
  std::chrono::system_clock::time_point begin;
  std::chrono::system_clock::time_point end;
};
using OperatorWatch = std::function<void(const RunOperator&)>;

class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  // Called with each operator of later runs, by the thread that runs the model; empty: no more.
  // Waits for a run that goes on. A plan's fused operators are one. A single operator tells
  // nothing.
  virtual void Watch(OperatorWatch /*watch*/) {}
  virtual const ModelFacts& facts() const = 0;
  // Runs it. An output without memory gets some by `make` (bytes). Collective over the ranks whose
  // graphs communicate. Waits for other runs on the device. Errors name model, input or output.
  virtual Status Run(const std::vector<ModelBuffer>& inputs, std::vector<ModelBuffer>& outputs,
                     const std::function<Result<void*>(uint64_t bytes)>& make) = 0;
};

// An operator that can run: a model whose inputs and outputs are those of the call that are neither
// absent nor constant.
struct MadeOperator {
  std::unique_ptr<LoadedModel> model;
  std::vector<size_t> inputs;  // of the call, in the order of the model
  std::vector<size_t> outputs;
};

class ModelMachine {
 public:
  virtual ~ModelMachine() = default;
  // Not collective. What does not fit into `areas`, such as the plan of open dimensions, lies in
  // memory of the model.
  virtual Result<std::unique_ptr<LoadedModel>> Load(AclDevice& device, const ModelBytes& bytes,
                                                    const ModelAreas& areas) = 0;
  // Without a device.
  virtual Result<ModelFacts> Describe(const ModelBytes& bytes) = 0;
  // How many models a file holds: 1, but for a bundle.
  virtual Result<size_t> CountModels(const ModelBytes& bytes) = 0;
  // Models that are loaded from now on, and operators that run from now on, dump their tensors as
  // this file says, in place of that of aclInit; empty: they do not.
  virtual Status SetDump(const std::string& config_path) = 0;
  // Writes "{folder}{name}.custom.{time}", a dump file. Errors: kInvalidArgument for a shape that
  // takes more bytes than its tensor has, those of the disk.
  virtual Status WriteTensors(const std::string& folder, const std::string& name,
                              const std::string& tag, const std::vector<GivenTensor>& tensors) = 0;

  // ---- Single operators ----
  // From here on an operator like the one of this offline model can be made. Without a device.
  // Errors as Load; kInvalidArgument for a model that `npumesh atc --singleop` did not make.
  virtual Status AddOperator(const ModelBytes& bytes) = 0;
  // The same for the operator of a call, which may have open dimensions. Errors name the operator
  // and what of the call does not fit it.
  virtual Status CompileOperator(AclDevice& device, const OperatorCall& call) = 0;
  // Error (kNotFound): no such operator was added or compiled. Others as CompileOperator.
  virtual Result<MadeOperator> MakeOperator(AclDevice& device, const OperatorCall& call) = 0;
  virtual void ForgetOperators() = 0;
  // The outputs of a call, with open dimensions where only a run can tell. Without a device.
  virtual Result<std::vector<ModelPort>> InferOperator(const OperatorCall& call) = 0;
  // Writes the graph of the call as text. Errors as InferOperator, and kIo.
  virtual Status WriteOperatorGraph(const OperatorCall& call, const std::string& path) = 0;

  // The one of this process; loads its library. Error (kNotFound): it is not there, or the
  // system cannot load it.
  static Result<ModelMachine*> Get();
};

}  // namespace npumesh

// What libacl_mdl.so exports; never null.
extern "C" npumesh::ModelMachine* npumesh_model_machine();

#endif  // NPUMESH_RUNTIME_ACL_MODELS_MODEL_MACHINE_H_
