// ComeBack: the way on after a setback (setbacks.h).
//
// Thread-safety: any thread; those that come back at the same time wait for each other.
#ifndef NPUMESH_RUNTIME_WORLD_COME_BACK_H_
#define NPUMESH_RUNTIME_WORLD_COME_BACK_H_

#include <vector>

#include "runtime/base/status.h"
#include "runtime/world/setbacks.h"
#include "runtime/world/world.h"

namespace npumesh {

// Without a lasting setback of this rank: nothing, at the price of one load. Else collective over
// the ranks of its setback: waits until the call has failed on all of them, at most
// env.exec_timeout. Errors are published as failures (Board::PublishFailure) and are final:
// kPeerLost when one of them is lost or has ended its work, kMismatch when it failed in another
// call, kTimeout.
Status ComeBack(World& world);

// Says that this rank failed in these calls before it met others there, as a setback where that is
// possible (Setbacks::Publish), else as a failure. Comes back from the setback before.
//
// True: it is a setback.
bool FailTogether(World& world, const Status& status, const std::vector<CommonCall>& calls);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_COME_BACK_H_
