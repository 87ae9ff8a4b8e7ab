// The AlltoAll family of hccl/hccl.h. Its receive buffers are declared const, but written.
#include <numeric>

#include "collectives/hccl/calls/blocks.h"
#include "collectives/hccl/calls/issue.h"
#include "hccl/hccl.h"

namespace npumesh {
namespace {

uint64_t WidthOf(HcclDataType dtype) {
  const ElementType* type = FindElementType(dtype);
  return type ? type->bytes : 0;
}

void SameTypes(ArgumentCheck& check, HcclDataType send, HcclDataType recv) {
  check.Holds(send == recv, HCCL_E_PARA, "EI0003: sendType and recvType differ");
}

// Row `rank` of the matrix as packed blocks.
Blocks PackedRow(const std::vector<uint64_t>& matrix, uint32_t ranks, uint32_t rank) {
  Blocks row;
  if (matrix.empty()) return row;
  row.counts.assign(matrix.begin() + rank * ranks, matrix.begin() + (rank + 1) * ranks);
  row.at.resize(ranks);
  std::exclusive_scan(row.counts.begin(), row.counts.end(), row.at.begin(), uint64_t{0});
  return row;
}

Blocks PackedColumn(const std::vector<uint64_t>& matrix, uint32_t ranks, uint32_t rank) {
  Blocks column;
  if (matrix.empty()) return column;
  for (uint32_t i = 0; i < ranks; ++i) column.counts.push_back(matrix[i * ranks + rank]);
  column.at.resize(ranks);
  std::exclusive_scan(column.counts.begin(), column.counts.end(), column.at.begin(), uint64_t{0});
  return column;
}

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                        const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                        HcclComm comm, aclrtStream stream) try {
  if (sendCount == 0 && recvCount == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclAlltoAll");
  check.NotNull("comm", comm).NotNull("stream", stream);
  check.NotNull("sendBuf", sendBuf).NotNull("recvBuf", recvBuf);
  check.Count("sendCount", sendCount).Count("recvCount", recvCount);
  check.Moves(sendType).Moves(recvType).Live(comm);
  check.Holds(sendCount == recvCount, HCCL_E_PARA, "EI0003: sendCount and recvCount differ");
  SameTypes(check, sendType, recvType);
  check.Differ("sendBuf", sendBuf, "recvBuf", recvBuf);
  const uint64_t bytes = WidthOf(sendType) * sendCount * check.size();
  check.InHbm("sendBuf", sendBuf, bytes).InHbm("recvBuf", recvBuf, bytes);
  return Issue(check, stream, [=](Communicator& group) {
    return group.AllToAll(sendBuf, const_cast<void*>(recvBuf), sendCount,
                          FindElementType(sendType)->dtype);
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, HcclComm comm,
                         aclrtStream stream) try {
  ArgumentCheck check("HcclAlltoAllV");
  check.NotNull("comm", comm).NotNull("sendCounts", sendCounts).NotNull("sdispls", sdispls);
  check.NotNull("recvCounts", recvCounts).NotNull("rdispls", rdispls).Live(comm);
  const Blocks send = Blocks::Copy(sendCounts, sdispls, check.size());
  const Blocks recv = Blocks::Copy(recvCounts, rdispls, check.size());
  if (check.ok() && send.none() && recv.none()) return HCCL_SUCCESS;
  check.NotNull("stream", stream);
  if (!send.none()) check.NotNull("sendBuf", sendBuf);
  if (!recv.none()) check.NotNull("recvBuf", recvBuf);
  check.Count("sendCounts", send.largest()).Count("recvCounts", recv.largest());
  check.Moves(sendType).Moves(recvType);
  SameTypes(check, sendType, recvType);
  check.Differ("sendBuf", sendBuf, "recvBuf", recvBuf);
  check.InHbm("sendBuf", sendBuf, WidthOf(sendType) * send.end());
  check.InHbm("recvBuf", recvBuf, WidthOf(recvType) * recv.end());
  return Issue(check, stream, [=](Communicator& group) {
    return group.AllToAllV(sendBuf, send.counts, send.at, const_cast<void*>(recvBuf), recv.counts,
                           recv.at, FindElementType(sendType)->dtype);
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, HcclComm comm,
                          aclrtStream stream) try {
  ArgumentCheck check("HcclAlltoAllVC");
  check.NotNull("comm", comm).NotNull("sendCountMatrix", sendCountMatrix).Live(comm);
  const uint32_t ranks = check.size();
  std::vector<uint64_t> matrix;
  if (check.ok()) {
    const auto* counts = static_cast<const uint64_t*>(sendCountMatrix);
    matrix.assign(counts, counts + size_t{ranks} * ranks);
  }
  const Blocks send = PackedRow(matrix, ranks, check.rank());
  const Blocks recv = PackedColumn(matrix, ranks, check.rank());
  const Blocks all{matrix, matrix};
  if (check.ok() && all.none()) return HCCL_SUCCESS;
  check.NotNull("stream", stream);
  if (!send.none()) check.NotNull("sendBuf", sendBuf);
  if (!recv.none()) check.NotNull("recvBuf", recvBuf);
  check.Count("sendCountMatrix", all.largest()).Moves(sendType).Moves(recvType);
  SameTypes(check, sendType, recvType);
  check.Differ("sendBuf", sendBuf, "recvBuf", recvBuf);
  check.InHbm("sendBuf", sendBuf, WidthOf(sendType) * send.end());
  check.InHbm("recvBuf", recvBuf, WidthOf(recvType) * recv.end());
  return Issue(check, stream, [=](Communicator& group) {
    return group.AllToAllVC(sendBuf, matrix, const_cast<void*>(recvBuf),
                            FindElementType(sendType)->dtype);
  });
} catch (...) {
  return AnswerThrown(__func__);
}
