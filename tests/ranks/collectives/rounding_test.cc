// The same inputs give the same bits: for every algorithm of the default family, wherever the ranks
// are. Data are random, so that every other order of addition would show.
#include <gmock/gmock.h>

#include <cstring>
#include <numeric>
#include <random>

#include "collectives/communicator.h"
#include "runtime/base/float16.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

constexpr int kRoundingRanks = 5;

// How a group is run.
struct RoundingSetting {
  const char* algorithm;
  std::vector<int> nodes;
};

// What every rank has got from all reductions, one after the other.
using Outcome = std::vector<std::vector<std::byte>>;

// Values of very different size, negative ones included.
std::vector<float> RandomValues(int rank, uint64_t count) {
  std::mt19937 random(static_cast<unsigned>(1000 + rank));
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-9, 9);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(mantissa(random), exponent(random));
  return values;
}

void Store(const std::vector<float>& values, DataType dtype, std::byte* to) {
  for (const float value : values) {
    if (dtype == DataType::kFloat) {
      std::memcpy(to, &value, sizeof(value));
      to += sizeof(value);
      continue;
    }
    const Float16 half(value);
    const Bfloat16 brain(value);
    std::memcpy(to, dtype == DataType::kFloat16 ? static_cast<const void*>(&half) : &brain, 2);
    to += 2;
  }
}

// Every reduction over `count` elements (ReduceScatter: over blocks of them).
Status ReduceAll(Communicator& group, DeviceMemory& memory, DataType dtype, uint64_t count,
                 std::vector<std::byte>* outcome) {
  const auto n = static_cast<uint64_t>(group.size());
  const uint64_t bytes = *BytesOf(dtype, count);
  HbmArray<std::byte> send(memory, bytes * n);
  HbmArray<std::byte> recv(memory, bytes);
  const auto keep = [&] { outcome->insert(outcome->end(), recv.data(), recv.data() + bytes); };
  Store(RandomValues(group.rank(), count * n), dtype, send.data());
  NPUMESH_RETURN_IF_ERROR(
      group.AllReduce(send.data(), recv.data(), count, dtype, ReduceOp::kSum, "sum"));
  keep();
  NPUMESH_RETURN_IF_ERROR(
      group.Reduce(send.data(), recv.data(), count, dtype, ReduceOp::kProd, 3, "root"));
  if (group.rank() == 3) keep();
  NPUMESH_RETURN_IF_ERROR(
      group.ReduceScatter(send.data(), recv.data(), count, dtype, ReduceOp::kSum, "blocks"));
  keep();
  const std::vector<uint64_t> counts(n, count);
  std::vector<uint64_t> at(n);
  for (uint64_t r = 0; r < n; ++r) at[r] = (n - 1 - r) * count;
  NPUMESH_RETURN_IF_ERROR(group.ReduceScatterV(send.data(), counts, at, recv.data(), count, dtype,
                                               ReduceOp::kSum, "uneven"));
  keep();
  return Status();
}

Outcome OutcomeOf(const RoundingSetting& setting) {
  Env env = TestEnv();
  env.hccl_algo = setting.algorithm;
  Outcome outcome(kRoundingRanks);
  ExpectAllOk(RunRanks(
      kRoundingRanks, env,
      [&](World& world) -> Status {
        std::vector<int> everyone(kRoundingRanks);
        std::iota(everyone.begin(), everyone.end(), 0);
        NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
        NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                 Communicator::Create(world, *memory, "g", everyone));
        std::vector<std::byte>& mine = outcome[static_cast<size_t>(world.rank())];
        for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
          for (const uint64_t count : {1, 33, 1001, 4099}) {
            NPUMESH_RETURN_IF_ERROR(ReduceAll(*group, *memory, dtype, count, &mine));
          }
        }
        return world.Shutdown();
      },
      setting.nodes));
  return outcome;
}

TEST(Rounding, IsTheSameWhereverTheRanksAre) {
  const Outcome expected = OutcomeOf({"reference", {}});
  for (const RoundingSetting& setting :
       {RoundingSetting{"", {}}, RoundingSetting{"direct", {}}, RoundingSetting{"small", {}},
        RoundingSetting{"", {2, 3}}, RoundingSetting{"", {4, 1}},
        RoundingSetting{"", {1, 1, 1, 1, 1}}, RoundingSetting{"hierarchical", {3, 2}},
        RoundingSetting{"reference", {3, 2}}}) {
    EXPECT_EQ(OutcomeOf(setting), expected)
        << '"' << setting.algorithm << "\" on " << setting.nodes.size() << " nodes";
  }
}

// The data are such that another order shows: else the test above would prove nothing.
TEST(Rounding, DependsOnTheOrderOfOtherAlgorithms) {
  EXPECT_NE(OutcomeOf({"ring", {}}), OutcomeOf({"reference", {}}));
}

// Operands come to their owner in rounds; where a round ends cannot be seen in the result.
TEST(Rounding, DoesNotDependOnRounds) {
  constexpr uint64_t kCount = uint64_t{9} << 20;
  std::vector<std::vector<float>> results;
  for (const std::vector<int>& nodes : {std::vector<int>{}, std::vector<int>{1, 1}}) {
    std::vector<float> result;
    Env env = TestEnv();
    env.hbm_bytes = uint64_t{96} << 20;
    ExpectAllOk(RunRanks(
        2, env,
        [&](World& world) -> Status {
          NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
          NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                   Communicator::Create(world, *memory, "g", {0, 1}));
          HbmArray<float> data(*memory, kCount);
          for (uint64_t i = 0; i < kCount; ++i) {
            data[i] = 1.0f / static_cast<float>(3 + i * 5 + static_cast<uint64_t>(world.rank()));
          }
          NPUMESH_RETURN_IF_ERROR(
              group->AllReduce(data.data(), data.data(), kCount, DataType::kFloat, ReduceOp::kSum));
          if (world.rank() == 1) result = data.ToVector();
          return world.Shutdown();
        },
        nodes));
    results.push_back(std::move(result));
  }
  EXPECT_TRUE(results[0] == results[1]);
}

}  // namespace
}  // namespace npumesh
