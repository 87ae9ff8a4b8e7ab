// What a caller of DynamoExport may choose, under the names and defaults of TorchAir.
#ifndef NPUMESH_GRAPH_EXPORT_EXPORT_OPTIONS_H_
#define NPUMESH_GRAPH_EXPORT_EXPORT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/tensor.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/session.h"
#include "runtime/base/files/file_system.h"

namespace npumesh {

// Weights stay in the .air while graph and weights together have at most this many bytes
// (TorchAir's limit: (2048 - 200) MiB).
inline constexpr uint64_t kWeightLimit = uint64_t{2048 - 200} << 20;

// Hands the bytes of one weight, in order and in pieces of any size, to `sink`; returns the first
// error of `sink` or its own.
using WeightSink = std::function<Status(std::span<const std::byte>)>;
using WeightReader = std::function<Status(const WeightSink& sink)>;

// A parameter or buffer of the model that is an input of the graph: it leaves the inputs and
// becomes a constant that keeps the name of the input.
struct ExportWeight {
  std::string input;      // name of a Data node
  std::string parameter;  // "layers.0.weight", whose file is layers_0_weight
  TensorType type;        // static; of a dtype with a fixed width
  WeightReader read;      // exactly type.bytes() bytes; called once
};
ExportWeight WeightFromTensor(std::string input, std::string parameter, Tensor tensor);

// `weight` is complete: so many of all weight files of this rank.
struct ExportProgress {
  size_t done = 0;
  size_t total = 0;
};

struct ExportOptions {
  // Folder of the package, relative or absolute; created with its parents. It becomes part of the
  // stored path of external weights exactly as it stands here.
  std::string export_path = "export_file";
  // Base name of the .air; only the last component of a path counts.
  std::string export_name = "export";
  // True: every dimension of an input that is 2 or more is exported as open (-1), and so are the
  // dimensions of outputs that depend on one. Dimensions 0 and 1 stay, as PyTorch specialises them.
  // False: an input with an open dimension is an error.
  bool dynamic = false;
  // Dimensions that are open stay open, where `dynamic` is false, instead of being an error.
  bool keeps_open = false;
  // Write model_relation_config.json and numa_config.json when a collective names a group.
  bool auto_atc_config_generated = false;
  // The two files as TorchAir writes them: all ranks in node 0 at 127.0.0.1.
  bool template_configs = false;
  // Keep the attribute nn_module_stack, on nodes at least two modules deep; otherwise it is
  // removed.
  bool enable_record_nn_module_stack = false;
  // Layout of several cards; unset: whether there are several ranks.
  std::optional<bool> distributed;
  // Above this many bytes of graph and weights the weights become files; equal on all ranks'
  // package but decided by each rank for its own graph.
  uint64_t weight_limit = kWeightLimit;
  // Parameter names of constants that stand in the graph already, by node name; others are called
  // as their node, or as their file was.
  std::map<std::string, std::string> weight_names;
  // Members of groups whose names do not spell them out.
  GroupTable groups;
  // The .air gets permission 0400, as GE writes it, instead of 0640.
  bool read_only = false;

  // Called after each weight file; may be null.
  std::function<void(const ExportProgress&)> progress;
  // The operators; null: BuiltinOps().
  const OpRegistry* registry = nullptr;
  // What writes; null: the real file system.
  FileSystem* file_system = nullptr;
};

// "\r torchair dynamo export save weight 50% 1/2", and " \n" after the last.
std::string ProgressText(const ExportProgress& progress);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_EXPORT_OPTIONS_H_
