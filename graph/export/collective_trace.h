// CollectiveTrace: what one rank's graph asks of other ranks, in the order in which it will run.
//
// Read from the graph alone: nothing is run, and no weight file is opened that shapes do not depend
// on. What cannot be known without inputs (open dimensions, unknown operators) is left unknown and
// compared with nothing.
#ifndef NPUMESH_GRAPH_EXPORT_COLLECTIVE_TRACE_H_
#define NPUMESH_GRAPH_EXPORT_COLLECTIVE_TRACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/session.h"

namespace npumesh {

// How the members of a group meet in a call.
enum class Encounter : uint8_t {
  kAll = 0,      // every member comes
  kPairs = 1,    // every member comes and says what it sends to, and receives from, each other
  kSend = 2,     // a message to the peer
  kReceive = 3,  // a message from the peer
};
// As the operator's row says: the traits and the ports. REQUIRES: op.collective.
Encounter EncounterOf(const Operator& op);

struct CollectiveCall {
  std::string node;
  std::string type;  // operator
  Encounter encounter = Encounter::kAll;
  std::string group;
  std::string reduction;             // empty: the operator has none
  int64_t root = -1;                 // rank in the group; -1: none
  int64_t peer = -1;                 // of a message: rank in the group; -1: none
  std::vector<TensorType> operands;  // inputs of a send, outputs of a receive; empty: unknown
  // Counts of the operators with uneven blocks, by port, where they are constants.
  std::map<std::string, std::vector<int64_t>> counts;
};

struct CollectiveTrace {
  std::vector<CollectiveCall> calls;
  // Every group that a node names, with its world ranks in group order, in order of use.
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  // Types of the inputs of NetOutput; empty: unknown. Not a part of TraceText.
  std::vector<TensorType> outputs;

  const std::vector<int>* MembersOf(const std::string& group) const;
};

// The trace of the main graph as `rank` of `world_size` would run it. Errors: kNotFound for a group
// that neither its name nor `table` explains, kCorrupt for a broken rank list or a member outside
// the world, and an order of the graph's nodes that does not exist.
Result<CollectiveTrace> TraceCollectives(const Model& model, const OpRegistry& registry,
                                         const GroupTable& table, int rank, int world_size);

// A text that another rank reads back with ParseTrace.
std::string TraceText(const CollectiveTrace& trace);
// Error (kCorrupt): not such a text.
Result<CollectiveTrace> ParseTrace(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_COLLECTIVE_TRACE_H_
