// The operators of hccl/hccl.h in which all ranks do the same.
#include "collectives/hccl/calls/blocks.h"
#include "collectives/hccl/calls/issue.h"
#include "hccl/hccl.h"

namespace npumesh {
namespace {

// REQUIRES: the checks have accepted the type.
DataType TypeOf(HcclDataType dtype) {
  const ElementType* type = FindElementType(dtype);
  return type ? type->dtype : DataType::kUndefined;
}

uint64_t BytesOfElements(HcclDataType dtype, uint64_t count) {
  const ElementType* type = FindElementType(dtype);
  return type ? type->bytes * count : 0;
}

ReduceOp OpOf(HcclReduceOp op) {
  return static_cast<ReduceOp>(op);
}
static_assert(static_cast<int>(ReduceOp::kSum) == HCCL_REDUCE_SUM);
static_assert(static_cast<int>(ReduceOp::kProd) == HCCL_REDUCE_PROD);
static_assert(static_cast<int>(ReduceOp::kMax) == HCCL_REDUCE_MAX);
static_assert(static_cast<int>(ReduceOp::kMin) == HCCL_REDUCE_MIN);

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                         HcclReduceOp op, HcclComm comm, aclrtStream stream) try {
  if (count == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclAllReduce");
  check.NotNull("comm", comm).NotNull("stream", stream);
  check.NotNull("sendBuf", sendBuf).NotNull("recvBuf", recvBuf);
  check.Count("count", count).Reduces(dataType, op).Live(comm);
  const uint64_t bytes = BytesOfElements(dataType, count);
  check.InHbm("sendBuf", sendBuf, bytes).InHbm("recvBuf", recvBuf, bytes);
  return Issue(check, stream, [=](Communicator& group) {
    return group.AllReduce(sendBuf, recvBuf, count, TypeOf(dataType), OpOf(op));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                      HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream) try {
  if (count == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclReduce");
  check.NotNull("comm", comm).NotNull("stream", stream);
  check.NotNull("sendBuf", sendBuf).NotNull("recvBuf", recvBuf);
  check.Count("count", count).Reduces(dataType, op).Live(comm).RankInComm("root", root);
  const uint64_t bytes = BytesOfElements(dataType, count);
  check.InHbm("sendBuf", sendBuf, bytes).InHbm("recvBuf", recvBuf, bytes);
  return Issue(check, stream, [=](Communicator& group) {
    return group.Reduce(sendBuf, recvBuf, count, TypeOf(dataType), OpOf(op),
                        static_cast<int>(root));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root,
                         HcclComm comm, aclrtStream stream) try {
  if (count == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclBroadcast");
  check.NotNull("comm", comm).NotNull("stream", stream).NotNull("buf", buf);
  check.Count("count", count).Moves(dataType).Live(comm).RankInComm("root", root);
  check.InHbm("buf", buf, BytesOfElements(dataType, count));
  return Issue(check, stream, [=](Communicator& group) {
    return group.Broadcast(buf, count, TypeOf(dataType), static_cast<int>(root));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                             HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                             aclrtStream stream) try {
  if (recvCount == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclReduceScatter");
  check.NotNull("comm", comm).NotNull("stream", stream);
  check.NotNull("sendBuf", sendBuf).NotNull("recvBuf", recvBuf);
  check.Count("recvCount", recvCount).Reduces(dataType, op).Live(comm);
  const uint64_t bytes = BytesOfElements(dataType, recvCount);
  check.InHbm("sendBuf", sendBuf, bytes * check.size()).InHbm("recvBuf", recvBuf, bytes);
  return Issue(check, stream, [=](Communicator& group) {
    return group.ReduceScatter(sendBuf, recvBuf, recvCount, TypeOf(dataType), OpOf(op));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
                              void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm, aclrtStream stream) try {
  ArgumentCheck check("HcclReduceScatterV");
  check.NotNull("comm", comm).NotNull("sendCounts", sendCounts).NotNull("sendDispls", sendDispls);
  check.Live(comm);
  const Blocks blocks = Blocks::Copy(sendCounts, sendDispls, check.size());
  if (check.ok() && blocks.none() && recvCount == 0) return HCCL_SUCCESS;
  check.NotNull("stream", stream);
  if (!blocks.none()) check.NotNull("sendBuf", sendBuf);
  if (recvCount != 0) check.NotNull("recvBuf", recvBuf);
  check.Count("recvCount", recvCount).Count("sendCounts", blocks.largest()).Reduces(dataType, op);
  check.Differ("sendBuf", sendBuf, "recvBuf", recvBuf);
  check.Holds(!check.ok() || blocks.counts[check.rank()] == recvCount, HCCL_E_PARA,
              "EI0003: recvCount differs from sendCounts of this rank");
  check.InHbm("sendBuf", sendBuf, BytesOfElements(dataType, blocks.end()));
  check.InHbm("recvBuf", recvBuf, BytesOfElements(dataType, recvCount));
  return Issue(check, stream, [=](Communicator& group) {
    return group.ReduceScatterV(sendBuf, blocks.counts, blocks.at, recvBuf, recvCount,
                                TypeOf(dataType), OpOf(op));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                       uint32_t root, HcclComm comm, aclrtStream stream) try {
  if (recvCount == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclScatter");
  check.NotNull("comm", comm).NotNull("stream", stream).NotNull("recvBuf", recvBuf);
  check.Count("recvCount", recvCount).Moves(dataType).Live(comm).RankInComm("root", root);
  const uint64_t bytes = BytesOfElements(dataType, recvCount);
  if (check.rank() == root) {
    check.NotNull("sendBuf", sendBuf).InHbm("sendBuf", sendBuf, bytes * check.size());
  }
  check.InHbm("recvBuf", recvBuf, bytes);
  return Issue(check, stream, [=](Communicator& group) {
    return group.Scatter(sendBuf, recvBuf, recvCount, TypeOf(dataType), static_cast<int>(root));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                         HcclComm comm, aclrtStream stream) try {
  if (sendCount == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclAllGather");
  check.NotNull("comm", comm).NotNull("stream", stream);
  check.NotNull("sendBuf", sendBuf).NotNull("recvBuf", recvBuf);
  check.Count("sendCount", sendCount).Moves(dataType).Live(comm);
  const uint64_t bytes = BytesOfElements(dataType, sendCount);
  check.InHbm("sendBuf", sendBuf, bytes).InHbm("recvBuf", recvBuf, bytes * check.size());
  return Issue(check, stream, [=](Communicator& group) {
    return group.AllGather(sendBuf, recvBuf, sendCount, TypeOf(dataType));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm,
                          aclrtStream stream) try {
  ArgumentCheck check("HcclAllGatherV");
  check.NotNull("comm", comm).NotNull("recvCounts", recvCounts).NotNull("recvDispls", recvDispls);
  check.Live(comm);
  const Blocks blocks = Blocks::Copy(recvCounts, recvDispls, check.size());
  if (check.ok() && blocks.none() && sendCount == 0) return HCCL_SUCCESS;
  check.NotNull("stream", stream);
  if (sendCount != 0) check.NotNull("sendBuf", sendBuf);
  if (!blocks.none()) check.NotNull("recvBuf", recvBuf);
  check.Count("sendCount", sendCount).Count("recvCounts", blocks.largest()).Moves(dataType);
  check.Differ("sendBuf", sendBuf, "recvBuf", recvBuf);
  check.Holds(!check.ok() || blocks.counts[check.rank()] == sendCount, HCCL_E_PARA,
              "EI0003: sendCount differs from recvCounts of this rank");
  check.InHbm("sendBuf", sendBuf, BytesOfElements(dataType, sendCount));
  check.InHbm("recvBuf", recvBuf, BytesOfElements(dataType, blocks.end()));
  return Issue(check, stream, [=](Communicator& group) {
    return group.AllGatherV(sendBuf, sendCount, recvBuf, blocks.counts, blocks.at,
                            TypeOf(dataType));
  });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) try {
  ArgumentCheck check("HcclBarrier");
  check.NotNull("comm", comm).NotNull("stream", stream).Live(comm);
  return Issue(check, stream, [](Communicator& group) { return group.Barrier(); });
} catch (...) {
  return AnswerThrown(__func__);
}
