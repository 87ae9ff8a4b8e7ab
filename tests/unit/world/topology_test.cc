#include "runtime/world/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

namespace npumesh {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Topology Synthetic(const std::string& text) {
  auto topology = Topology::FromSynthetic(text);
  EXPECT_TRUE(topology.ok()) << topology.status().ToString();
  return topology.ok() ? *topology : Topology();
}

std::vector<Placement> PlaceAll(const Topology& topology, int ranks) {
  std::vector<Placement> places;
  for (int rank = 0; rank < ranks; ++rank) places.push_back(topology.Place(rank, ranks));
  return places;
}

std::vector<int> NodesOf(const std::vector<Placement>& places) {
  std::vector<int> nodes;
  for (const Placement& place : places) nodes.push_back(place.numa_node);
  return nodes;
}

TEST(Topology, TwoPackagesOfFourNodes) {
  const Topology topology = Synthetic("pack:2 numa:4 core:8 pu:1");
  EXPECT_TRUE(topology.synthetic());
  ASSERT_EQ(topology.numa_nodes().size(), 8u);
  EXPECT_EQ(topology.cpu_count(), 64);
  EXPECT_EQ(topology.core_count(), 64);
  for (int n = 0; n < 8; ++n) {
    const NumaNode& node = topology.numa_nodes()[static_cast<size_t>(n)];
    EXPECT_EQ(node.os_index, n);
    EXPECT_EQ(node.cpus, (std::vector<int>{8 * n, 8 * n + 1, 8 * n + 2, 8 * n + 3, 8 * n + 4,
                                           8 * n + 5, 8 * n + 6, 8 * n + 7}));
    EXPECT_EQ(node.cores, 8);
    EXPECT_GT(node.memory_bytes, 0u);
  }
}

TEST(Topology, RanksSpreadOverTheNodes) {
  const Topology topology = Synthetic("pack:2 numa:4 core:8 pu:1");
  EXPECT_THAT(NodesOf(PlaceAll(topology, 1)), ElementsAre(0));
  EXPECT_THAT(NodesOf(PlaceAll(topology, 2)), ElementsAre(0, 4));  // one a package
  EXPECT_THAT(NodesOf(PlaceAll(topology, 4)), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(NodesOf(PlaceAll(topology, 8)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  const auto sixteen = PlaceAll(topology, 16);
  EXPECT_THAT(sixteen[0].cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sixteen[1].cpus, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(sixteen[15].cpus, ElementsAre(60, 61, 62, 63));
}

TEST(Topology, WithoutNumaThereIsOneNode) {
  const Topology topology = Synthetic("core:6 pu:1");
  ASSERT_EQ(topology.numa_nodes().size(), 1u);
  EXPECT_EQ(topology.cpu_count(), 6);
  const auto places = PlaceAll(topology, 4);
  EXPECT_THAT(places[0].cpus, ElementsAre(0));
  EXPECT_THAT(places[1].cpus, ElementsAre(1, 2));
  EXPECT_THAT(places[2].cpus, ElementsAre(3));
  EXPECT_THAT(places[3].cpus, ElementsAre(4, 5));
}

TEST(Topology, ManyRanksShareOneCore) {
  const auto places = PlaceAll(Synthetic("core:1 pu:1"), 8);
  for (const Placement& place : places) {
    EXPECT_EQ(place.numa_node, 0);
    EXPECT_THAT(place.cpus, ElementsAre(0));
  }
}

TEST(Topology, TooManyRanksShareRoundRobin) {
  const auto places = PlaceAll(Synthetic("numa:2 core:2 pu:1"), 8);
  EXPECT_THAT(NodesOf(places), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  std::vector<int> load(4);
  for (const Placement& place : places) {
    ASSERT_THAT(place.cpus, SizeIs(1));
    ++load[static_cast<size_t>(place.cpus[0])];
  }
  EXPECT_THAT(load, Each(2));
}

TEST(Topology, RanksGetWholeCoresWhileThereAreEnough) {
  // Siblings of core c have the indexes c and c + 4, as Linux numbers them.
  const Topology topology = Synthetic("numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
  EXPECT_EQ(topology.core_count(), 4);
  EXPECT_EQ(topology.cpu_count(), 8);
  EXPECT_THAT(topology.numa_nodes()[0].cpus, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(topology.Place(1, 4).cpus, ElementsAre(1, 5));
  EXPECT_THAT(topology.Place(1, 2).cpus, ElementsAre(2, 3, 6, 7));
  // Eight ranks: one hardware thread each.
  std::set<int> taken;
  for (const Placement& place : PlaceAll(topology, 8)) {
    ASSERT_THAT(place.cpus, SizeIs(1));
    taken.insert(place.cpus[0]);
  }
  EXPECT_EQ(taken.size(), 8u);
}

TEST(Topology, MemoryOfANodeIsItsOwn) {
  const Topology topology = Synthetic("numa:2(memory=3221225472) core:2 pu:1");
  for (const NumaNode& node : topology.numa_nodes()) {
    EXPECT_EQ(node.memory_bytes, uint64_t{3} << 30);
  }
}

// The nearest to an asymmetric machine that the text can say: nodes attached at two levels, so that
// the outer one finds its processors taken.
TEST(Topology, AProcessorBelongsToOneNodeOnly) {
  const Topology topology = Synthetic("[numa] pack:2 [numa] core:2 pu:1");
  EXPECT_EQ(topology.cpu_count(), 4);
  std::set<int> cpus;
  for (const NumaNode& node : topology.numa_nodes()) {
    EXPECT_FALSE(node.cpus.empty());
    cpus.insert(node.cpus.begin(), node.cpus.end());
  }
  EXPECT_EQ(cpus.size(), 4u);
}

// Whatever the numbers: each rank has a place in one node, places differ while cores suffice, and
// nodes carry ranks in proportion to their processors.
TEST(Topology, EveryCountOfRanksIsPlacedFairly) {
  for (const std::string text :
       {"pack:2 numa:4 core:8 pu:1", "numa:3 core:5 pu:2", "core:7 pu:1", "numa:2 core:1 pu:1"}) {
    const Topology topology = Synthetic(text);
    const int cpus = topology.cpu_count();
    for (int ranks = 1; ranks <= cpus + 3; ++ranks) {
      SCOPED_TRACE(text + ", ranks " + std::to_string(ranks));
      const auto places = PlaceAll(topology, ranks);
      std::vector<int> load(topology.numa_nodes().size());
      std::set<int> taken;
      size_t handed_out = 0;
      for (const Placement& place : places) {
        const auto& owner = topology.numa_nodes()[static_cast<size_t>(place.numa_node)].cpus;
        ++load[static_cast<size_t>(place.numa_node)];
        ASSERT_FALSE(place.cpus.empty());
        for (const int cpu : place.cpus) {
          EXPECT_TRUE(std::binary_search(owner.begin(), owner.end(), cpu));
        }
        taken.insert(place.cpus.begin(), place.cpus.end());
        handed_out += place.cpus.size();
      }
      const auto [least, most] = std::minmax_element(load.begin(), load.end());
      EXPECT_LE(*most - *least, 1);
      if (ranks * 2 <= cpus) {
        EXPECT_EQ(taken.size(), handed_out);
      }
    }
  }
}

TEST(Topology, InvalidTextIsNamed) {
  for (const std::string text :
       {"", "core", "numa:0", "nonsense:4", "core:2 pu:-1", "pu:2 core:2"}) {
    const auto topology = Topology::FromSynthetic(text);
    ASSERT_FALSE(topology.ok()) << text;
    EXPECT_EQ(topology.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(topology.status().message()),
                HasSubstr("\"" + text + "\" is not a topology"));
  }
}

TEST(Topology, DetectStaysWithinTheAffinity) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const auto topology = Topology::Detect();
  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_FALSE(topology->synthetic());
  EXPECT_EQ(topology->cpu_count(), CPU_COUNT(&allowed));
  EXPECT_GE(topology->core_count(), 1);
  for (const NumaNode& node : topology->numa_nodes()) {
    EXPECT_GT(node.memory_bytes, 0u);
    for (const int cpu : node.cpus) EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(cpu), &allowed));
  }
}

TEST(BindThread, BindsTheCallingThreadOnly) {
  const auto topology = Topology::Detect();
  ASSERT_TRUE(topology.ok());
  const int cpu = topology->numa_nodes()[0].cpus.back();
  std::thread([cpu] {
    ASSERT_TRUE(BindThread({cpu}).ok());
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(CPU_COUNT(&set), 1);
    EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(cpu), &set));
  }).join();
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), topology->cpu_count());
}

TEST(BindThread, SaysWhatTheSystemRefuses) {
  EXPECT_EQ(BindThread({}).code(), Code::kInvalidArgument);
  std::thread([] {
    const Status status = BindThread({100'000});
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_THAT(std::string(status.message()), HasSubstr("100000"));
  }).join();
}

TEST(FromSynthetic, RefusesMoreProcessorsThanAnyMachineHas) {
  for (const char* text : {"pack:1000 numa:100 core:10 pu:1", "pu:99999999999999999999", "300 300",
                           "numa:2(memory=1GB) core:40000 pu:2", "52522"}) {
    const auto topology = Topology::FromSynthetic(text);
    ASSERT_FALSE(topology.ok()) << text;
    EXPECT_THAT(std::string(topology.status().message()),
                testing::HasSubstr("more than 4096 processors"));
  }
  EXPECT_TRUE(Topology::FromSynthetic("numa:2(memory=99999999999) core:4 pu:2").ok());
  EXPECT_EQ(Topology::FromSynthetic("4096")->cpu_count(), 4096);
}

}  // namespace
}  // namespace npumesh
