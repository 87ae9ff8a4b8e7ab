// A Communicator of one process: it records each call and answers as if all ranks of the group had
// sent what this one sent. It takes the place of the real class when the test is linked, so it
// defines every member of collectives/communicator.h.
#ifndef NPUMESH_TESTS_UNIT_OPS_COLLECTIVE_FAKE_COMMUNICATOR_H_
#define NPUMESH_TESTS_UNIT_OPS_COLLECTIVE_FAKE_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace npumesh {

std::unique_ptr<Communicator> MakeFakeCommunicator(std::string name, std::vector<int> world_ranks);

// The calls so far, oldest first: "AllReduce count=4 float32 sum node=n".
std::vector<std::string>& CallsOf(Communicator& communicator);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_COLLECTIVE_FAKE_COMMUNICATOR_H_
