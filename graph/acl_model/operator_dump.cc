#include "graph/acl_model/operator_dump.h"

namespace npumesh {

Status OperatorDump::BeforeRun(const RunView& run) {
  RunView as_one = run;
  as_one.iteration = 0;
  return dumper_.BeforeRun(as_one);
}

Status OperatorDump::AfterRun(const RunView& run) {
  NPUMESH_RETURN_IF_ERROR(dumper_.AfterRun(run));
  dumper_.Drain();
  return Status();
}

}  // namespace npumesh
