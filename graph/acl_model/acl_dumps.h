// AclDumps: which tensors the C interface dumps, as the file of aclInit or aclmdlSetDump says.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_GRAPH_ACL_MODEL_ACL_DUMPS_H_
#define NPUMESH_GRAPH_ACL_MODEL_ACL_DUMPS_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "graph/acl_model/operator_dump.h"
#include "graph/session/tensor_dump.h"
#include "runtime/acl/process/device_context.h"

namespace npumesh {

class AclDumps {
 public:
  static AclDumps& OfProcess();

  // From now on, in place of what was said before; empty: nothing. Finishes the dump of operators,
  // and waits for those that run. Errors: those of ReadDumpConfig.
  Status Set(const std::string& config_path);
  // Of a model that is loaded now.
  TensorDumpOptions OfModels();
  // Of operators that run by themselves on a device (dump_op_switch, scenes of exceptions); null:
  // they are not dumped. REQUIRES: it is the caller's turn on the device.
  std::shared_ptr<OperatorDump> OfOperators(AclDevice& device);

 private:
  using Dumps = std::map<AclDevice*, std::shared_ptr<OperatorDump>>;

  AclDumps() = default;
  // What the file of aclInit says, once between aclInit and aclFinalize.
  void Begin();
  void Take(std::optional<DumpSettings> settings);
  static void Finish(Dumps dumps);

  std::mutex mutex_;
  bool begun_ = false;
  std::optional<DumpSettings> models_;
  std::optional<DumpSettings> operators_;
  Dumps dumps_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACL_MODEL_ACL_DUMPS_H_
