// Group calls: what a thread calls between HcclGroupStart and HcclGroupEnd is collected, and done
// at the end.
//
// A group is of one kind: communicator management, collectives, or sends and receives. Its members
// do not wait for each other: management runs on a thread for each call, the sends and receives of
// one communicator and stream become one batch.
//
// Thread-safety: every thread has its own group.
#ifndef NPUMESH_COLLECTIVES_HCCL_CALLS_GROUP_CALLS_H_
#define NPUMESH_COLLECTIVES_HCCL_CALLS_GROUP_CALLS_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/hccl/comm/comm.h"
#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

class GroupCalls {
 public:
  enum class Kind { kNone, kManagement, kCollective, kPointToPoint };

  // Of the calling thread.
  static GroupCalls& OfThread();

  void Start() { ++depth_; }
  // Does what was collected when the outermost group ends. E_PARA without a Start.
  Verdict End();
  bool open() const { return depth_ > 0; }

  // Collect; REQUIRES: open(). E_PARA when the group is of another kind.
  // Management is done on a thread that has `device` selected.
  Verdict AddManagement(int32_t device, std::function<Verdict()> call);
  // `call`: a literal.
  Verdict AddCollective(std::string_view call, aclrtStream stream, Task&& task);
  Verdict AddPointToPoint(std::shared_ptr<Comm> comm, aclrtStream stream, HcclSendRecvItem item);

 private:
  struct Management {
    int32_t device;
    std::function<Verdict()> call;
  };
  struct Collective {
    std::string_view call;
    aclrtStream stream;
    Task task;
  };
  struct Batch {
    std::shared_ptr<Comm> comm;
    aclrtStream stream;
    std::vector<HcclSendRecvItem> items;
  };

  Verdict Become(Kind kind);
  Verdict RunManagement();

  int depth_ = 0;
  Kind kind_ = Kind::kNone;
  std::vector<Management> management_;
  std::vector<Collective> collectives_;
  std::vector<Batch> batches_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CALLS_GROUP_CALLS_H_
