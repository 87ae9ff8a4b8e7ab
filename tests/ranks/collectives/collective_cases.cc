#include "tests/ranks/collectives/collective_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// A device array of any dtype whose elements are read and written as int64.
class Array {
 public:
  Array(DeviceMemory& memory, DataType dtype, uint64_t count)
      : memory_(memory), dtype_(dtype), count_(count) {
    Result<void*> block = memory.Allocate(*BytesOf(dtype, count));
    EXPECT_TRUE(block.ok()) << block.status().ToString();
    data_ = static_cast<std::byte*>(*block);
  }
  ~Array() { EXPECT_TRUE(memory_.Free(data_).ok()); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  std::byte* data() { return data_; }
  std::byte* at(uint64_t i) { return data_ + *BytesOf(dtype_, i); }
  uint64_t size() const { return count_; }

  void Set(uint64_t i, int64_t v) {
    switch (dtype_) {
      case DataType::kFloat:
        return Put(i, static_cast<float>(v));
      case DataType::kDouble:
        return Put(i, static_cast<double>(v));
      case DataType::kFloat16:
        return Put(i, Float16(static_cast<float>(v)));
      case DataType::kBfloat16:
        return Put(i, Bfloat16(static_cast<float>(v)));
      case DataType::kInt8:
      case DataType::kUint8:
        return Put(i, static_cast<int8_t>(v));
      case DataType::kInt16:
      case DataType::kUint16:
        return Put(i, static_cast<int16_t>(v));
      case DataType::kInt32:
      case DataType::kUint32:
        return Put(i, static_cast<int32_t>(v));
      default:
        return Put(i, v);
    }
  }

  int64_t Get(uint64_t i) const {
    switch (dtype_) {
      case DataType::kFloat:
        return static_cast<int64_t>(Take<float>(i));
      case DataType::kDouble:
        return static_cast<int64_t>(Take<double>(i));
      case DataType::kFloat16:
        return static_cast<int64_t>(static_cast<float>(Take<Float16>(i)));
      case DataType::kBfloat16:
        return static_cast<int64_t>(static_cast<float>(Take<Bfloat16>(i)));
      case DataType::kInt8:
        return Take<int8_t>(i);
      case DataType::kUint8:
        return Take<uint8_t>(i);
      case DataType::kInt16:
        return Take<int16_t>(i);
      case DataType::kUint16:
        return Take<uint16_t>(i);
      case DataType::kInt32:
        return Take<int32_t>(i);
      case DataType::kUint32:
        return Take<uint32_t>(i);
      default:
        return Take<int64_t>(i);
    }
  }

 private:
  template <typename T>
  void Put(uint64_t i, T value) {
    std::memcpy(data_ + i * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  T Take(uint64_t i) const {
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }

  DeviceMemory& memory_;
  DataType dtype_;
  uint64_t count_;
  std::byte* data_ = nullptr;
};

struct Case {
  DataType dtype;
  ReduceOp op;
  uint64_t count;
};

// Sums over 64 ranks stay below 128 and products below 16: exact in every dtype, int8 included.
int64_t Fill(int rank, uint64_t i, ReduceOp op) {
  if (op == ReduceOp::kProd) return (static_cast<uint64_t>(rank) + i) % 16 < 1 ? 3 : 1;
  return static_cast<int64_t>((static_cast<uint64_t>(rank) * 7 + i) % 2);
}

// Distinct data for moving: below 128 so that int8 holds it.
int64_t Mark(int rank, uint64_t i) {
  return static_cast<int64_t>((static_cast<uint64_t>(rank) * 31 + i * 3) % 127);
}

int64_t Expected(int ranks, uint64_t i, ReduceOp op) {
  int64_t value = Fill(0, i, op);
  for (int r = 1; r < ranks; ++r) {
    const int64_t next = Fill(r, i, op);
    switch (op) {
      case ReduceOp::kSum:
        value += next;
        break;
      case ReduceOp::kProd:
        value *= next;
        break;
      case ReduceOp::kMax:
        value = std::max(value, next);
        break;
      case ReduceOp::kMin:
        value = std::min(value, next);
        break;
    }
  }
  return value;
}

// The first element that differs, so that a failure prints one line and not thousands.
template <typename Want>
void ExpectElements(const Array& array, uint64_t count, std::string_view what, Want want) {
  for (uint64_t i = 0; i < count; ++i) {
    if (array.Get(i) == want(i)) continue;
    ADD_FAILURE() << what << ": element " << i << " of " << count << " is " << array.Get(i)
                  << ", expected " << want(i);
    return;
  }
}

Status CheckAllReduce(Communicator& group, DeviceMemory& memory, const Case& c, bool in_place) {
  Array send(memory, c.dtype, c.count);
  Array recv(memory, c.dtype, c.count);
  for (uint64_t i = 0; i < c.count; ++i) send.Set(i, Fill(group.rank(), i, c.op));
  Array& out = in_place ? send : recv;
  NPUMESH_RETURN_IF_ERROR(
      group.AllReduce(send.data(), out.data(), c.count, c.dtype, c.op, "allreduce"));
  ExpectElements(out, c.count, "allreduce",
                 [&](uint64_t i) { return Expected(group.size(), i, c.op); });
  return Status();
}

Status CheckReduceScatter(Communicator& group, DeviceMemory& memory, const Case& c, bool in_place) {
  const uint64_t all = c.count * static_cast<uint64_t>(group.size());
  const uint64_t first = c.count * static_cast<uint64_t>(group.rank());
  Array send(memory, c.dtype, all);
  Array recv(memory, c.dtype, c.count);
  for (uint64_t i = 0; i < all; ++i) send.Set(i, Fill(group.rank(), i, c.op));
  std::byte* out = in_place ? send.at(first) : recv.data();
  NPUMESH_RETURN_IF_ERROR(
      group.ReduceScatter(send.data(), out, c.count, c.dtype, c.op, "reducescatter"));
  if (in_place) std::memcpy(recv.data(), out, *BytesOf(c.dtype, c.count));
  ExpectElements(recv, c.count, "reducescatter",
                 [&](uint64_t i) { return Expected(group.size(), first + i, c.op); });
  return Status();
}

Status CheckAllGather(Communicator& group, DeviceMemory& memory, const Case& c, bool in_place) {
  Array send(memory, c.dtype, c.count);
  Array recv(memory, c.dtype, c.count * static_cast<uint64_t>(group.size()));
  for (uint64_t i = 0; i < c.count; ++i) send.Set(i, Mark(group.rank(), i));
  std::byte* source = send.data();
  if (in_place) {
    source = recv.at(c.count * static_cast<uint64_t>(group.rank()));
    std::memcpy(source, send.data(), *BytesOf(c.dtype, c.count));
  }
  NPUMESH_RETURN_IF_ERROR(group.AllGather(source, recv.data(), c.count, c.dtype, "allgather"));
  ExpectElements(recv, recv.size(), "allgather",
                 [&](uint64_t i) { return Mark(static_cast<int>(i / c.count), i % c.count); });
  return Status();
}

Status CheckBroadcast(Communicator& group, DeviceMemory& memory, const Case& c) {
  for (const int root : {0, group.size() - 1}) {
    Array buffer(memory, c.dtype, c.count);
    for (uint64_t i = 0; i < c.count; ++i) buffer.Set(i, Mark(group.rank(), i));
    NPUMESH_RETURN_IF_ERROR(group.Broadcast(buffer.data(), c.count, c.dtype, root, "broadcast"));
    ExpectElements(buffer, c.count, "broadcast", [&](uint64_t i) { return Mark(root, i); });
  }
  return Status();
}

Status CheckAllToAll(Communicator& group, DeviceMemory& memory, const Case& c) {
  const uint64_t all = c.count * static_cast<uint64_t>(group.size());
  Array send(memory, c.dtype, all);
  Array recv(memory, c.dtype, all);
  for (uint64_t i = 0; i < all; ++i) send.Set(i, Mark(group.rank(), i));
  NPUMESH_RETURN_IF_ERROR(group.AllToAll(send.data(), recv.data(), c.count, c.dtype, "alltoall"));
  const uint64_t first = c.count * static_cast<uint64_t>(group.rank());
  ExpectElements(recv, all, "alltoall", [&](uint64_t i) {
    return Mark(static_cast<int>(i / c.count), first + i % c.count);
  });
  return Status();
}

// Rank s sends (s + 2r + c) % 5 elements to rank r, with a gap of one element between blocks.
Status CheckAllToAllV(Communicator& group, DeviceMemory& memory, const Case& c) {
  const auto n = static_cast<uint64_t>(group.size());
  const auto me = static_cast<uint64_t>(group.rank());
  const auto block = [&](uint64_t s, uint64_t r) { return (s + 2 * r + c.count) % 5; };
  std::vector<uint64_t> send_counts, send_at, recv_counts, recv_at;
  uint64_t sent = 0;
  uint64_t received = 0;
  for (uint64_t r = 0; r < n; ++r) {
    send_counts.push_back(block(me, r));
    send_at.push_back(sent);
    sent += block(me, r) + 1;
    recv_counts.push_back(block(r, me));
    recv_at.push_back(received);
    received += block(r, me) + 1;
  }
  Array send(memory, c.dtype, sent);
  Array recv(memory, c.dtype, received);
  for (uint64_t i = 0; i < sent; ++i) send.Set(i, Mark(group.rank(), i));
  for (uint64_t i = 0; i < received; ++i) recv.Set(i, 99);
  NPUMESH_RETURN_IF_ERROR(group.AllToAllV(send.data(), send_counts, send_at, recv.data(),
                                          recv_counts, recv_at, c.dtype, "alltoallv"));
  for (uint64_t r = 0; r < n; ++r) {
    uint64_t from = 0;  // where rank r's block for this rank begins
    for (uint64_t k = 0; k < me; ++k) from += block(r, k) + 1;
    for (uint64_t i = 0; i < recv_counts[r]; ++i) {
      EXPECT_EQ(recv.Get(recv_at[r] + i), Mark(static_cast<int>(r), from + i)) << "alltoallv";
    }
    EXPECT_EQ(recv.Get(recv_at[r] + recv_counts[r]), 99) << "alltoallv wrote into a gap";
  }
  return Status();
}

// Elsewhere than at the root the output is a null pointer.
Status CheckReduce(Communicator& group, DeviceMemory& memory, const Case& c, bool in_place) {
  for (const int root : {0, group.size() - 1}) {
    Array send(memory, c.dtype, c.count);
    Array recv(memory, c.dtype, c.count);
    for (uint64_t i = 0; i < c.count; ++i) send.Set(i, Fill(group.rank(), i, c.op));
    Array& out = in_place ? send : recv;
    const bool is_root = group.rank() == root;
    NPUMESH_RETURN_IF_ERROR(group.Reduce(send.data(), is_root ? out.data() : nullptr, c.count,
                                         c.dtype, c.op, root, "reduce"));
    if (!is_root) {
      ExpectElements(send, c.count, "reduce changed an input",
                     [&](uint64_t i) { return Fill(group.rank(), i, c.op); });
      continue;
    }
    ExpectElements(out, c.count, "reduce",
                   [&](uint64_t i) { return Expected(group.size(), i, c.op); });
  }
  return Status();
}

Status CheckScatter(Communicator& group, DeviceMemory& memory, const Case& c, bool in_place) {
  const uint64_t all = c.count * static_cast<uint64_t>(group.size());
  const uint64_t first = c.count * static_cast<uint64_t>(group.rank());
  for (const int root : {0, group.size() - 1}) {
    const bool is_root = group.rank() == root;
    Array send(memory, c.dtype, all);
    Array recv(memory, c.dtype, c.count);
    for (uint64_t i = 0; i < all; ++i) send.Set(i, Mark(root, i));
    std::byte* out = in_place && is_root ? send.at(first) : recv.data();
    NPUMESH_RETURN_IF_ERROR(
        group.Scatter(is_root ? send.data() : nullptr, out, c.count, c.dtype, root, "scatter"));
    if (out != recv.data()) std::memcpy(recv.data(), out, *BytesOf(c.dtype, c.count));
    ExpectElements(recv, c.count, "scatter", [&](uint64_t i) { return Mark(root, first + i); });
  }
  return Status();
}

// Blocks of different sizes, some empty, for the V variants: rank r's has (r + count) % 4 * 5
// elements, with a gap of one element behind it.
struct UnevenBlocks {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> at;
  uint64_t end = 0;

  UnevenBlocks(int ranks, uint64_t count) {
    for (uint64_t r = 0; r < static_cast<uint64_t>(ranks); ++r) {
      counts.push_back((r + count) % 4 * 5);
      at.push_back(end);
      end += counts.back() + 1;
    }
  }
};

Status CheckAllGatherV(Communicator& group, DeviceMemory& memory, const Case& c) {
  const UnevenBlocks blocks(group.size(), c.count);
  const uint64_t own = blocks.counts[static_cast<size_t>(group.rank())];
  Array send(memory, c.dtype, own);
  Array recv(memory, c.dtype, blocks.end);
  for (uint64_t i = 0; i < own; ++i) send.Set(i, Mark(group.rank(), i));
  for (uint64_t i = 0; i < blocks.end; ++i) recv.Set(i, 99);
  NPUMESH_RETURN_IF_ERROR(group.AllGatherV(send.data(), own, recv.data(), blocks.counts, blocks.at,
                                           c.dtype, "allgatherv"));
  for (size_t r = 0; r < blocks.counts.size(); ++r) {
    for (uint64_t i = 0; i < blocks.counts[r]; ++i) {
      EXPECT_EQ(recv.Get(blocks.at[r] + i), Mark(static_cast<int>(r), i)) << "allgatherv";
    }
    EXPECT_EQ(recv.Get(blocks.at[r] + blocks.counts[r]), 99) << "allgatherv wrote into a gap";
  }
  return Status();
}

Status CheckReduceScatterV(Communicator& group, DeviceMemory& memory, const Case& c) {
  const UnevenBlocks blocks(group.size(), c.count);
  const auto me = static_cast<size_t>(group.rank());
  Array send(memory, c.dtype, blocks.end);
  Array recv(memory, c.dtype, blocks.counts[me]);
  for (uint64_t i = 0; i < blocks.end; ++i) send.Set(i, Fill(group.rank(), i, c.op));
  NPUMESH_RETURN_IF_ERROR(group.ReduceScatterV(send.data(), blocks.counts, blocks.at, recv.data(),
                                               blocks.counts[me], c.dtype, c.op, "reducescatterv"));
  ExpectElements(recv, blocks.counts[me], "reducescatterv",
                 [&](uint64_t i) { return Expected(group.size(), blocks.at[me] + i, c.op); });
  return Status();
}

// Rank s sends (2s + r + c) % 5 elements to rank r.
Status CheckAllToAllVC(Communicator& group, DeviceMemory& memory, const Case& c) {
  const auto n = static_cast<uint64_t>(group.size());
  const auto me = static_cast<uint64_t>(group.rank());
  const auto block = [&](uint64_t s, uint64_t r) { return (2 * s + r + c.count) % 5; };
  std::vector<uint64_t> matrix;
  uint64_t sent = 0;
  uint64_t received = 0;
  for (uint64_t s = 0; s < n; ++s) {
    for (uint64_t r = 0; r < n; ++r) matrix.push_back(block(s, r));
    sent += block(me, s);
    received += block(s, me);
  }
  Array send(memory, c.dtype, sent);
  Array recv(memory, c.dtype, received);
  for (uint64_t i = 0; i < sent; ++i) send.Set(i, Mark(group.rank(), i));
  NPUMESH_RETURN_IF_ERROR(
      group.AllToAllVC(send.data(), matrix, recv.data(), c.dtype, "alltoallvc"));
  uint64_t at = 0;
  for (uint64_t s = 0; s < n; ++s) {
    uint64_t from = 0;  // where rank s's block for this rank begins
    for (uint64_t r = 0; r < me; ++r) from += block(s, r);
    for (uint64_t i = 0; i < block(s, me); ++i) {
      EXPECT_EQ(recv.Get(at++), Mark(static_cast<int>(s), from + i)) << "alltoallvc";
    }
  }
  return Status();
}

// Along the ring, first the even ranks send; the third message is empty.
Status CheckSendRecv(Communicator& group, DeviceMemory& memory, const Case& c) {
  const int n = group.size();
  if (n == 1) return Status();
  const int right = (group.rank() + 1) % n;
  const int left = (group.rank() + n - 1) % n;
  for (const uint64_t count : {c.count, c.count / 2, uint64_t{0}}) {
    Array send(memory, c.dtype, count);
    Array recv(memory, c.dtype, count);
    for (uint64_t i = 0; i < count; ++i) send.Set(i, Mark(group.rank(), i));
    const auto give = [&] { return group.Send(send.data(), count, c.dtype, right, "send"); };
    const auto take = [&] { return group.Recv(recv.data(), count, c.dtype, left, "recv"); };
    const bool first = group.rank() % 2 == 0;
    NPUMESH_RETURN_IF_ERROR(first ? give() : take());
    NPUMESH_RETURN_IF_ERROR(first ? take() : give());
    ExpectElements(recv, count, "recv", [&](uint64_t i) { return Mark(left, i); });
  }
  return Status();
}

// Every rank with every rank, itself included, listed in a different order by every rank.
Status CheckBatchSendRecv(Communicator& group, DeviceMemory& memory, const Case& c) {
  const int n = group.size();
  const auto blocks = static_cast<uint64_t>(n);
  Array send(memory, c.dtype, c.count * blocks);
  Array recv(memory, c.dtype, c.count * blocks);
  for (uint64_t i = 0; i < send.size(); ++i) send.Set(i, Mark(group.rank(), i));
  std::vector<SendRecvItem> items;
  for (int k = 0; k < n; ++k) {
    const int peer = (group.rank() * 3 + k) % n;
    const int other = (group.rank() * 2 + k) % n;
    items.push_back({true, send.at(c.count * static_cast<uint64_t>(peer)), c.count, c.dtype, peer});
    items.push_back(
        {false, recv.at(c.count * static_cast<uint64_t>(other)), c.count, c.dtype, other});
  }
  if (group.rank() % 2 == 1) std::reverse(items.begin(), items.end());
  NPUMESH_RETURN_IF_ERROR(group.BatchSendRecv(items, "batch"));
  const uint64_t first = c.count * static_cast<uint64_t>(group.rank());
  ExpectElements(recv, recv.size(), "batch", [&](uint64_t i) {
    return Mark(static_cast<int>(i / c.count), first + i % c.count);
  });
  return Status();
}

Status CheckMessages(Communicator& group, DeviceMemory& memory, const Case& c) {
  NPUMESH_RETURN_IF_ERROR(CheckSendRecv(group, memory, c));
  return CheckBatchSendRecv(group, memory, c);
}

Status CheckCase(Communicator& group, DeviceMemory& memory, const Case& c) {
  for (const bool in_place : {false, true}) {
    NPUMESH_RETURN_IF_ERROR(CheckAllReduce(group, memory, c, in_place));
    NPUMESH_RETURN_IF_ERROR(CheckReduce(group, memory, c, in_place));
    NPUMESH_RETURN_IF_ERROR(CheckScatter(group, memory, c, in_place));
    NPUMESH_RETURN_IF_ERROR(CheckReduceScatter(group, memory, c, in_place));
    NPUMESH_RETURN_IF_ERROR(CheckAllGather(group, memory, c, in_place));
  }
  NPUMESH_RETURN_IF_ERROR(CheckBroadcast(group, memory, c));
  NPUMESH_RETURN_IF_ERROR(CheckAllToAll(group, memory, c));
  NPUMESH_RETURN_IF_ERROR(CheckAllToAllV(group, memory, c));
  NPUMESH_RETURN_IF_ERROR(CheckAllToAllVC(group, memory, c));
  NPUMESH_RETURN_IF_ERROR(CheckAllGatherV(group, memory, c));
  NPUMESH_RETURN_IF_ERROR(CheckReduceScatterV(group, memory, c));
  return group.Barrier("barrier");
}

}  // namespace

Status CheckEverything(Communicator& group, DeviceMemory& memory) {
  constexpr DataType kTypes[] = {DataType::kFloat,    DataType::kDouble, DataType::kFloat16,
                                 DataType::kBfloat16, DataType::kInt8,   DataType::kInt16,
                                 DataType::kInt32,    DataType::kInt64,  DataType::kUint8,
                                 DataType::kUint16,   DataType::kUint32, DataType::kUint64};
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin};
  for (const DataType dtype : kTypes) {
    for (const ReduceOp op : kOps) {
      NPUMESH_RETURN_IF_ERROR(CheckCase(group, memory, {dtype, op, 37}));
    }
    NPUMESH_RETURN_IF_ERROR(CheckMessages(group, memory, {dtype, ReduceOp::kSum, 37}));
  }
  for (const uint64_t count : {0, 1, 15, 16, 17, 2048, 2049, 10007}) {
    NPUMESH_RETURN_IF_ERROR(CheckCase(group, memory, {DataType::kFloat, ReduceOp::kSum, count}));
    NPUMESH_RETURN_IF_ERROR(
        CheckMessages(group, memory, {DataType::kFloat, ReduceOp::kSum, count}));
  }
  return Status();
}

Status CheckQuickly(Communicator& group, DeviceMemory& memory) {
  for (const uint64_t count : {1, 100, 3000}) {
    NPUMESH_RETURN_IF_ERROR(CheckCase(group, memory, {DataType::kFloat, ReduceOp::kSum, count}));
  }
  return CheckSendRecv(group, memory, {DataType::kFloat, ReduceOp::kSum, 100});
}

}  // namespace npumesh
