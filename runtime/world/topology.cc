#include "runtime/world/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

namespace npumesh {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

std::vector<int> IndexesOf(hwloc_const_bitmap_t bitmap) {
  std::vector<int> indexes;
  for (int i = hwloc_bitmap_next(bitmap, -1); i != -1; i = hwloc_bitmap_next(bitmap, i)) {
    indexes.push_back(i);
  }
  return indexes;
}

// The processors of `cpus`, grouped by physical core.
std::vector<std::vector<int>> CoresOf(hwloc_topology_t machine, hwloc_const_bitmap_t cpus) {
  std::vector<std::vector<int>> cores;
  const Bitmap rest(hwloc_bitmap_dup(cpus));
  const Bitmap core_cpus(hwloc_bitmap_alloc());
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_CORE, core)) != nullptr;) {
    hwloc_bitmap_and(core_cpus.get(), core->cpuset, rest.get());
    if (hwloc_bitmap_iszero(core_cpus.get())) continue;
    cores.push_back(IndexesOf(core_cpus.get()));
    hwloc_bitmap_andnot(rest.get(), rest.get(), core_cpus.get());
  }
  // A machine that does not report cores: every processor counts as one.
  for (const int cpu : IndexesOf(rest.get())) cores.push_back({cpu});
  return cores;
}

NumaNode MakeNode(hwloc_topology_t machine, int os_index, uint64_t memory_bytes,
                  hwloc_const_bitmap_t cpus) {
  NumaNode node;
  node.os_index = os_index;
  node.memory_bytes = memory_bytes;
  node.cpus = IndexesOf(cpus);
  node.core_cpus = CoresOf(machine, cpus);
  node.cores = static_cast<int>(node.core_cpus.size());
  return node;
}

// Nodes that own processors out of `usable`. A processor belongs to the first node that lists it:
// machines with two kinds of memory list it twice.
std::vector<NumaNode> NumaNodesOf(hwloc_topology_t machine, hwloc_const_bitmap_t usable) {
  std::vector<NumaNode> nodes;
  const Bitmap rest(hwloc_bitmap_dup(usable));
  const Bitmap mine(hwloc_bitmap_alloc());
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    hwloc_bitmap_and(mine.get(), object->cpuset, rest.get());
    if (hwloc_bitmap_iszero(mine.get())) continue;
    hwloc_bitmap_andnot(rest.get(), rest.get(), mine.get());
    nodes.push_back(MakeNode(machine, static_cast<int>(object->os_index),
                             object->attr->numanode.local_memory, mine.get()));
  }
  if (nodes.empty()) {
    const hwloc_obj_t root = hwloc_get_root_obj(machine);
    nodes.push_back(MakeNode(machine, 0, root->total_memory, usable));
  }
  return nodes;
}

// hwloc makes an object for each processor and looks for its place among all others: a slip of the
// finger would take all memory, 50,000 processors take minutes.
constexpr uint64_t kMostProcessors = 4096;

// The product of the numbers of a synthetic text, apart from those in parentheses (attributes); at
// most kMostProcessors + 1.
uint64_t ProcessorsIn(std::string_view text) {
  uint64_t product = 1;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    const bool starts = i == 0 || text[i - 1] == ' ' || text[i - 1] == ':';
    if (depth != 0 || !starts || text[i] < '0' || text[i] > '9') continue;
    uint64_t number = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      number = std::min(number * 10 + static_cast<uint64_t>(text[i] - '0'), kMostProcessors + 1);
    }
    --i;
    product = std::min(product * std::max<uint64_t>(number, 1), kMostProcessors + 1);
  }
  return product;
}

Status HwlocError(std::string_view what, int reason) {
  return Error(Code::kIo, "hwloc cannot {}: {}", what, std::generic_category().message(reason));
}

Result<HwlocTopology> NewTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return HwlocError("start", errno);
  return HwlocTopology(raw);
}

// Part `index` of `parts` nearly equal, contiguous parts of `items`, flattened.
std::vector<int> Part(const std::vector<std::vector<int>>& items, uint64_t index, uint64_t parts) {
  std::vector<int> part;
  for (uint64_t i = index * items.size() / parts; i < (index + 1) * items.size() / parts; ++i) {
    part.insert(part.end(), items[i].begin(), items[i].end());
  }
  std::sort(part.begin(), part.end());
  return part;
}

// What rank `index` of the `ranks` of one node binds to: whole cores while there are enough of
// them, then whole processors, then one processor shared round robin.
std::vector<int> CpusWithin(const NumaNode& node, uint64_t index, uint64_t ranks) {
  if (ranks <= node.core_cpus.size()) return Part(node.core_cpus, index, ranks);
  std::vector<std::vector<int>> single;
  for (const auto& core : node.core_cpus) {
    for (const int cpu : core) single.push_back({cpu});
  }
  if (ranks <= single.size()) return Part(single, index, ranks);
  return single[index % single.size()];
}

}  // namespace

Result<Topology> Topology::Detect() {
  NPUMESH_ASSIGN_OR_RETURN(const HwlocTopology machine, NewTopology());
  if (hwloc_topology_load(machine.get()) != 0) return HwlocError("read this machine", errno);
  const Bitmap usable(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(machine.get())));
  const Bitmap bound(hwloc_bitmap_alloc());
  // Where the system does not tell a process its binding, it counts as unbound.
  if (hwloc_get_cpubind(machine.get(), bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(usable.get(), bound.get())) {
    hwloc_bitmap_and(usable.get(), usable.get(), bound.get());
  }
  Topology topology;
  topology.numa_nodes_ = NumaNodesOf(machine.get(), usable.get());
  return topology;
}

Result<Topology> Topology::FromSynthetic(const std::string& text) {
  if (ProcessorsIn(text) > kMostProcessors) {
    return Error(Code::kInvalidArgument, "\"{}\" has more than {} processors", text,
                 kMostProcessors);
  }
  NPUMESH_ASSIGN_OR_RETURN(const HwlocTopology machine, NewTopology());
  if (hwloc_topology_set_synthetic(machine.get(), text.c_str()) != 0 ||
      hwloc_topology_load(machine.get()) != 0) {
    return Error(Code::kInvalidArgument,
                 "\"{}\" is not a topology: expected hwloc synthetic text, for example "
                 "\"pack:2 numa:2 core:4 pu:1\"",
                 text);
  }
  Topology topology;
  topology.numa_nodes_ =
      NumaNodesOf(machine.get(), hwloc_topology_get_topology_cpuset(machine.get()));
  topology.synthetic_ = true;
  return topology;
}

int Topology::cpu_count() const {
  size_t count = 0;
  for (const NumaNode& node : numa_nodes_) count += node.cpus.size();
  return static_cast<int>(count);
}

int Topology::core_count() const {
  int count = 0;
  for (const NumaNode& node : numa_nodes_) count += node.cores;
  return count;
}

Placement Topology::Place(int local_rank, int local_size) const {
  const auto rank = static_cast<uint64_t>(local_rank);
  const auto ranks = static_cast<uint64_t>(local_size);
  const auto total = static_cast<uint64_t>(cpu_count());
  // All processors stand in a line, node after node; rank r starts at r * total / ranks and lives
  // on the node it starts in. So the ranks of a node are those whose start lies between its ends.
  const uint64_t start = rank * total / ranks;
  uint64_t begin = 0;
  for (const NumaNode& node : numa_nodes_) {
    const uint64_t end = begin + node.cpus.size();
    if (start < end) {
      const uint64_t first = (begin * ranks + total - 1) / total;
      const uint64_t beyond = (end * ranks + total - 1) / total;
      return {node.os_index, CpusWithin(node, rank - first, beyond - first)};
    }
    begin = end;
  }
  return {};
}

Status BindThread(const std::vector<int>& cpus) {
  if (cpus.empty()) return Error(Code::kInvalidArgument, "cannot bind a thread to no processor");
  const int highest = *std::max_element(cpus.begin(), cpus.end());
  const size_t bytes = CPU_ALLOC_SIZE(highest + 1);
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(highest + 1),
                                                             [](cpu_set_t* raw) { CPU_FREE(raw); });
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
  if (sched_setaffinity(0, bytes, set.get()) == 0) return Status();
  return Error(Code::kIo, "cannot bind a thread to {} processor(s), the first being {}: {}",
               cpus.size(), cpus.front(), std::generic_category().message(errno));
}

}  // namespace npumesh
