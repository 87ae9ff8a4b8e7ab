// communication.json and communication_matrix.json: what each call of a communicator took, and over
// which links its bytes went.
//
// The links are a model: npumesh knows the bytes of a call, not those of each pair of ranks. A
// message has one link. Of other calls each member sends equal parts to all others.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_MSPROF_COMMUNICATION_JSON_H_
#define NPUMESH_RUNTIME_MSPROF_COMMUNICATION_JSON_H_

#include "runtime/base/text/json.h"
#include "runtime/msprof/vendor_rows.h"

namespace npumesh {

// Of the msprof layout: { "<call>@<group>": what }, all calls of the profile.
nlohmann::json MsprofCommunication(const VendorRows& rows);
nlohmann::json MsprofMatrix(const VendorRows& rows);

// Of the PyTorch layout: { "step<n>": { "p2p": {..}, "collective": {..} } } with the calls of the
// iterations, and "Total Op Info" for each of both. A profile without iterations has one step,
// "step", with all calls.
nlohmann::json TorchCommunication(const VendorRows& rows);
nlohmann::json TorchMatrix(const VendorRows& rows);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_COMMUNICATION_JSON_H_
