// What the readers of foreign records share: calls of which little is known, and the names of other
// libraries.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_FOREIGN_CALL_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_FOREIGN_CALL_H_

#include <string_view>

#include "launch/record/record_file.h"

namespace npumesh {

inline constexpr int kMostForeignRanks = 1 << 20;

// A call of which neither type, reduction nor root is known.
RecordedCall UntypedCall();

// "AllReduce", as NCCL's reports and HCCL's tags name kinds; kNone for other names.
CollectiveKind KindNamed(std::string_view name);

// "Float" or "BFloat16", as c10 names types; kUndefined and "Undefined" for others.
DataType TypeOfTorch(std::string_view name);
std::string_view TorchNameOf(DataType dtype);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_FOREIGN_CALL_H_
