#include "runtime/world/message_group.h"

#include <algorithm>
#include <cstring>

namespace npumesh {
namespace {

std::span<const std::byte> Bytes(const void* data, uint64_t size) {
  return {static_cast<const std::byte*>(data), size};
}
std::span<std::byte> Bytes(void* data, uint64_t size) {
  return {static_cast<std::byte*>(data), size};
}

// `std::memcpy` may not be given null, which is what an empty buffer has.
void Copy(void* to, const void* from, uint64_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

// Member 0 gathers, computes and hands out: the plainest way there is.
class MessageGroup final : public PlainGroup {
 public:
  MessageGroup(Transport& transport, std::vector<int> ranks, int tag)
      : transport_(transport), ranks_(std::move(ranks)), tag_(tag) {
    const auto me = std::find(ranks_.begin(), ranks_.end(), transport.rank());
    rank_ = static_cast<int>(me - ranks_.begin());
  }

  Status AllReduce(const void* send, void* recv, uint64_t count, DataType dtype, ReduceOp,
                   CombineFn combine, Deadline deadline) override {
    const uint64_t bytes = *BytesOf(dtype, count);
    std::vector<std::byte> sum;
    NPUMESH_RETURN_IF_ERROR(ReduceToFirst(send, bytes, count, combine, &sum, deadline));
    if (rank_ == 0) Copy(recv, sum.data(), bytes);
    return Broadcast(recv, bytes, 0, deadline);
  }

  Status ReduceScatter(const void* send, void* recv, uint64_t recv_count, DataType dtype, ReduceOp,
                       CombineFn combine, Deadline deadline) override {
    const uint64_t block = *BytesOf(dtype, recv_count);
    const uint64_t count = recv_count * ranks_.size();
    std::vector<std::byte> sum;
    NPUMESH_RETURN_IF_ERROR(
        ReduceToFirst(send, block * ranks_.size(), count, combine, &sum, deadline));
    if (rank_ != 0) return Receive(0, Bytes(recv, block), deadline);
    for (size_t r = 1; r < ranks_.size(); ++r) {
      NPUMESH_RETURN_IF_ERROR(Send(r, Bytes(sum.data() + r * block, block), deadline));
    }
    Copy(recv, sum.data(), block);
    return Status();
  }

  Status AllGather(const void* send, void* recv, uint64_t bytes, Deadline deadline) override {
    const size_t n = ranks_.size();
    const size_t me = static_cast<size_t>(rank_);
    // Blocks of this member, the next one, and so on. A round doubles how many there are.
    std::vector<std::byte> blocks(n * bytes);
    Copy(blocks.data(), send, bytes);
    for (size_t known = 1; known < n; known *= 2) {
      const uint64_t more = std::min(known, n - known) * bytes;
      NPUMESH_RETURN_IF_ERROR(transport_.Exchange(
          ranks_[(me + n - known) % n], Bytes(blocks.data(), more), ranks_[(me + known) % n],
          Bytes(blocks.data() + known * bytes, more), tag_, deadline));
    }
    auto* all = static_cast<std::byte*>(recv);
    Copy(all + me * bytes, blocks.data(), (n - me) * bytes);
    Copy(all, blocks.data() + (n - me) * bytes, me * bytes);
    return Status();
  }

  Status Broadcast(void* buffer, uint64_t bytes, int root, Deadline deadline) override {
    if (rank_ != root) return Receive(static_cast<size_t>(root), Bytes(buffer, bytes), deadline);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (static_cast<int>(r) == root) continue;
      NPUMESH_RETURN_IF_ERROR(Send(r, Bytes(static_cast<const void*>(buffer), bytes), deadline));
    }
    return Status();
  }

  Status AllToAllV(const void* send, std::span<const uint64_t> send_bytes,
                   std::span<const uint64_t> send_at, void* recv,
                   std::span<const uint64_t> recv_bytes, std::span<const uint64_t> recv_at,
                   Deadline deadline) override {
    const auto* out = static_cast<const std::byte*>(send);
    auto* in = static_cast<std::byte*>(recv);
    const size_t me = static_cast<size_t>(rank_);
    if (send_bytes[me] != 0) std::memmove(in + recv_at[me], out + send_at[me], send_bytes[me]);
    for (size_t k = 1; k < ranks_.size(); ++k) {
      const size_t to = (me + k) % ranks_.size();
      const size_t from = (me + ranks_.size() - k) % ranks_.size();
      NPUMESH_RETURN_IF_ERROR(
          transport_.Exchange(ranks_[to], {out + send_at[to], send_bytes[to]}, ranks_[from],
                              {in + recv_at[from], recv_bytes[from]}, tag_, deadline));
    }
    return Status();
  }

  Status Barrier(Deadline deadline) override {
    std::byte mine{1};
    std::vector<std::byte> all(ranks_.size());
    return AllGather(&mine, all.data(), 1, deadline);
  }

 private:
  Status Send(size_t to, std::span<const std::byte> bytes, Deadline deadline) {
    return transport_.Exchange(ranks_[to], bytes, -1, {}, tag_, deadline);
  }
  Status Receive(size_t from, std::span<std::byte> bytes, Deadline deadline) {
    return transport_.Exchange(-1, {}, ranks_[from], bytes, tag_, deadline);
  }

  // On member 0, `sum` becomes the reduction over all members in rank order.
  Status ReduceToFirst(const void* send, uint64_t bytes, uint64_t count, CombineFn combine,
                       std::vector<std::byte>* sum, Deadline deadline) {
    if (rank_ != 0) return Send(0, Bytes(send, bytes), deadline);
    const auto* first = static_cast<const std::byte*>(send);
    sum->assign(first, first + bytes);
    std::vector<std::byte> next(bytes);
    for (size_t r = 1; r < ranks_.size(); ++r) {
      NPUMESH_RETURN_IF_ERROR(Receive(r, next, deadline));
      combine(sum->data(), next.data(), count);  // next = sum op next
      sum->swap(next);
    }
    return Status();
  }

  Transport& transport_;
  std::vector<int> ranks_;
  int tag_;
  int rank_;
};

}  // namespace

std::unique_ptr<PlainGroup> MakeMessageGroup(Transport& transport, std::vector<int> world_ranks,
                                             int tag) {
  return std::make_unique<MessageGroup>(transport, std::move(world_ranks), tag);
}

}  // namespace npumesh
