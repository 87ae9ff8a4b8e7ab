// What every transport and every algorithm must get right, written once.
//
// Data are integers small enough that every sum and product is exact in the dtype, and every
// element of every rank is different where the dtype has room, so a wrong order of blocks cannot
// cancel out.
#ifndef NPUMESH_TESTS_RANKS_COLLECTIVES_COLLECTIVE_CASES_H_
#define NPUMESH_TESTS_RANKS_COLLECTIVES_COLLECTIVE_CASES_H_

#include "collectives/communicator.h"
#include "runtime/base/status.h"

namespace npumesh {

// Collective over the communicator, all of them. Checks every element with == by EXPECT; the Status
// is that of the first collective that failed.

// Every collective, every dtype and reduction it accepts, several counts, in place where allowed.
Status CheckEverything(Communicator& group, DeviceMemory& memory);

// The same results with few elements and float only: quick, for many ranks.
Status CheckQuickly(Communicator& group, DeviceMemory& memory);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_COLLECTIVES_COLLECTIVE_CASES_H_
