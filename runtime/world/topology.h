// Topology: what hwloc says about the machine, reduced to what npumesh needs. The only file pair
// with hwloc types is topology.{h,cc}'s implementation.
//
// Thread-safety: immutable after construction.
#ifndef NPUMESH_RUNTIME_WORLD_TOPOLOGY_H_
#define NPUMESH_RUNTIME_WORLD_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// A processor that threads can be bound to (hwloc PU, operating system index).
struct NumaNode {
  int os_index = 0;
  uint64_t memory_bytes = 0;
  std::vector<int> cpus;  // usable by this process, ascending
  int cores = 0;          // physical cores among them
  // The same processors grouped by physical core, so that ranks can be given whole cores.
  std::vector<std::vector<int>> core_cpus;
};

// Where one rank of a node lives.
struct Placement {
  int numa_node = 0;      // os index
  std::vector<int> cpus;  // to bind to; shared with other ranks when ranks outnumber cores
};

class Topology {
 public:
  // The machine this process runs on, restricted to what it may use (cgroup, affinity).
  static Result<Topology> Detect();

  // hwloc synthetic text, for example "pack:2 numa:2 core:4 pu:1". Errors name the text.
  static Result<Topology> FromSynthetic(const std::string& text);

  // Those that own a usable processor, at least one; a machine that reports no NUMA yields one node
  // with all processors.
  const std::vector<NumaNode>& numa_nodes() const { return numa_nodes_; }
  int cpu_count() const;
  int core_count() const;

  // Spreads `local_size` ranks evenly over the NUMA nodes in proportion to their processors, and
  // inside a node over its cores (over its processors, when ranks outnumber cores); with more ranks
  // than processors ranks share them round robin. A rank never spans two nodes: its HBM is on one.
  // REQUIRES: 0 <= local_rank < local_size.
  Placement Place(int local_rank, int local_size) const;

  // True when it was made from synthetic text: then nothing may really be bound.
  bool synthetic() const { return synthetic_; }

 private:
  std::vector<NumaNode> numa_nodes_;
  bool synthetic_ = false;
};

// Binds the calling thread to `cpus`; kIo when the system refuses, kInvalidArgument for no
// processor.
Status BindThread(const std::vector<int>& cpus);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_TOPOLOGY_H_
