// Hierarchy: a group whose members are on several nodes, as two layers: the members of each node,
// who share memory, and the nodes, between which messages travel.
//
// The `hierarchical` rows use it. What is on the own node is read in the window; what crosses nodes
// goes straight from one HBM to another, once for each node that needs it. Operands of a reduction
// cross unreduced, so that their owner can combine them in rank order: the same bits as in one
// node, at the price of more traffic (docs/algorithms.md).
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_HIERARCHY_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_HIERARCHY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/contract/meeting.h"
#include "runtime/world/world.h"

namespace npumesh {

struct Call;
struct Members;

struct Hierarchy {
  std::vector<std::vector<int>> nodes;  // group ranks of each node, in group order
  std::vector<int> node_of;             // by group rank: index into `nodes`
  std::vector<int> index_of;            // by group rank: index in its node
  int node = 0;                         // of this rank
  std::unique_ptr<Meeting> meeting;     // of the members of this node, in that order

  // Of a group whose members are on several nodes; they have yet to meet. Null when a node has more
  // members than can meet in shared memory. `rank` is this rank's group rank. Local.
  static std::unique_ptr<Hierarchy> Of(World& world, const std::string& name,
                                       const std::vector<int>& world_ranks, int rank);

  const std::vector<int>& neighbours() const { return nodes[static_cast<size_t>(node)]; }
  bool is_near(int peer) const { return node_of[static_cast<size_t>(peer)] == node; }
  // The member of `node` that is the counterpart of a group rank: it receives what that rank has
  // for all of them.
  int Counterpart(int peer, size_t node) const;
};

// Messages between the members, named first and exchanged at once. Messages from one member to
// another arrive in the order in which both have named them; empty ones do not travel.
class Mail {
 public:
  explicit Mail(const Members& members);
  void Send(int peer, const std::byte* data, uint64_t bytes);
  void Receive(int peer, std::byte* data, uint64_t bytes);
  // Collective over those that have named each other.
  Status Deliver();

 private:
  const Members& members_;
  std::vector<std::vector<std::span<const std::byte>>> out_;  // by group rank
  std::vector<std::vector<std::span<std::byte>>> in_;
};

// A reduction that is shared out: which elements each member owns and where its operands lie.
struct Shares {
  // Elements that group rank `owner` reduces; known to all.
  std::function<uint64_t(int owner)> count;
  // This rank's operand for a distant owner.
  std::function<const std::byte*(int owner)> mine;
  // The operand that a near member has for this rank.
  std::function<const std::byte*(int peer)> near;
};

// Elements of an owner's `count` that belong to the round that begins at `at`; `size` ranks,
// elements of `width` bytes.
uint64_t RoundOf(uint64_t count, uint64_t at, int size, uint64_t width);

// Brings the operands to their owners, a limited number of elements at a time, and calls `store`
// with the operands of this rank's elements [at, at + count) by group rank; with count 0 in rounds
// in which only others have something left. Collective over the group.
using StoreFn =
    std::function<Status(const std::vector<const void*>& inputs, uint64_t at, uint64_t count)>;
Status GatherOperands(const Call& call, Members& members, const Shares& shares,
                      const StoreFn& store);

// Gives every member the blocks of distant owners: group rank r owns block r of `bytes(r)` bytes
// (this rank's lies at `own`), whose place is `at(r)` in the receive buffers. A block comes to one
// member of each node, which puts it into its neighbours' receive buffers too. Collective over the
// group.
using PerOwner = std::function<uint64_t(int owner)>;
Status RelayBlocks(const std::byte* own, Members& members, const PerOwner& bytes,
                   const PerOwner& at, std::byte* recv);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_HIERARCHY_H_
