// Copies in rows and batches, fills of words: parts of acl_rt.h.
#include <algorithm>
#include <limits>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/copy.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::ApiSpan;
using npumesh::Copy;
using npumesh::Fail;

namespace {

struct Rows {
  void* dst;
  size_t dst_pitch;
  const void* src;
  size_t src_pitch;
  size_t width;
  size_t height;
  aclrtMemcpyKind kind;
};

aclError CheckRows(const char* function, const Rows& rows, std::vector<Copy>* copies) {
  if (rows.width > rows.dst_pitch || rows.width > rows.src_pitch) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "width is {}, expected at most dpitch {} and spitch {}", rows.width, rows.dst_pitch,
                rows.src_pitch);
  }
  const size_t pitch = std::max(rows.dst_pitch, rows.src_pitch);
  if (pitch != 0 && rows.height > std::numeric_limits<size_t>::max() / pitch) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "height is {}, which no memory has",
                rows.height);
  }
  if (rows.width == 0) return ACL_SUCCESS;
  for (size_t row = 0; row < rows.height; ++row) {
    Copy copy;
    NPUMESH_ACL_TRY(npumesh::CheckCopy(
        function,
        {static_cast<std::byte*>(rows.dst) + row * rows.dst_pitch, rows.width,
         static_cast<const std::byte*>(rows.src) + row * rows.src_pitch, rows.width, rows.kind},
        &copy));
    if (!copies->empty() && copies->front().direction != copy.direction) {
      return Fail(ACL_ERROR_INVALID_PARAM, function,
                  "the first row is copied {}, row {} is outside of that memory",
                  copies->front().direction, row);
    }
    copies->push_back(copy);
  }
  return ACL_SUCCESS;
}

// Copies that a client gives as arrays.
struct Batch {
  void** dsts;
  size_t* dest_maxs;
  void** srcs;
  size_t* sizes;
  size_t count;
  aclrtMemcpyBatchAttr* attributes;
  size_t* indexes;
  size_t attribute_count;
};

aclError CheckBatchArrays(const char* function, const Batch& batch) {
  if (batch.dsts == nullptr || batch.dest_maxs == nullptr || batch.srcs == nullptr ||
      batch.sizes == nullptr || batch.count == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "an array is null, or numBatches is 0");
  }
  if (batch.attributes == nullptr || batch.indexes == nullptr || batch.attribute_count == 0 ||
      batch.attribute_count > batch.count) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "attrs or attrsIndexes is null, or numAttrs is {}, expected 1 to {}",
                batch.attribute_count, batch.count);
  }
  for (size_t i = 0; i < batch.attribute_count; ++i) {
    const size_t least = i == 0 ? 0 : batch.indexes[i - 1] + 1;
    const bool fits = i == 0 ? batch.indexes[i] == 0
                             : batch.indexes[i] >= least && batch.indexes[i] < batch.count;
    if (fits) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "attrsIndexes[{}] is {}, expected them from 0, rising, below {}", i,
                batch.indexes[i], batch.count);
  }
  return ACL_SUCCESS;
}

aclrtMemcpyKind KindOf(const aclrtMemcpyBatchAttr& attribute) {
  const bool from = attribute.srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  const bool to = attribute.dstLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  if (from) return to ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST;
  return to ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_HOST_TO_HOST;
}

// `fail_index` may be null.
aclError CheckBatch(const char* function, const Batch& batch, size_t* fail_index,
                    std::vector<Copy>* copies) {
  size_t none = 0;
  size_t& failed = fail_index == nullptr ? none : *fail_index;
  failed = std::numeric_limits<size_t>::max();
  NPUMESH_ACL_TRY(CheckBatchArrays(function, batch));
  size_t attribute = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    if (attribute + 1 < batch.attribute_count && batch.indexes[attribute + 1] == i) ++attribute;
    Copy copy;
    const aclError error = npumesh::CheckCopy(function,
                                              {batch.dsts[i], batch.dest_maxs[i], batch.srcs[i],
                                               batch.sizes[i], KindOf(batch.attributes[attribute])},
                                              &copy);
    if (error != ACL_SUCCESS) {
      failed = i;
      return error;
    }
    if (copy.bytes > 0) copies->push_back(copy);
  }
  return ACL_SUCCESS;
}

aclError CopyAll(const char* function, const std::vector<Copy>& copies) {
  NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(function));
  for (const Copy& copy : copies) npumesh::CopyNow(copy);
  return ACL_SUCCESS;
}

aclError QueueAll(const char* function, const std::vector<Copy>& copies, AclStream& stream) {
  const bool pageable =
      std::any_of(copies.begin(), copies.end(), [](const Copy& copy) { return copy.pageable; });
  if (pageable) NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(function));
  for (const Copy& copy : copies) npumesh::QueueCopy(copy, stream);
  if (pageable && !stream.stream.records()) {
    return npumesh::Report(function, stream.stream.Synchronize());
  }
  return ACL_SUCCESS;
}

aclError CheckWords(const char* function, const void* pointer, size_t bytes, size_t words) {
  if (words > bytes / 4) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "N is {}, but memSize only {} bytes", words,
                bytes);
  }
  const auto& memory = AclProcess::Get().memory;
  const bool there = pointer != nullptr && reinterpret_cast<uintptr_t>(pointer) % 4 == 0;
  if (there && (memory.OnDevice(pointer, 4 * words) || memory.Pinned(pointer, 4 * words))) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} words at {} are not all memory of a device or of aclrtMallocHost, at a multiple "
              "of 4",
              words, fmt::ptr(pointer));
}

}  // namespace

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) try {
  const ApiSpan span(__func__);
  std::vector<Copy> copies;
  NPUMESH_ACL_TRY(CheckRows(__func__, {dst, dpitch, src, spitch, width, height, kind}, &copies));
  return CopyAll(__func__, copies);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &on));
  std::vector<Copy> copies;
  NPUMESH_ACL_TRY(CheckRows(__func__, {dst, dpitch, src, spitch, width, height, kind}, &copies));
  return QueueAll(__func__, copies, *on);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) try {
  const ApiSpan span(__func__);
  std::vector<Copy> copies;
  NPUMESH_ACL_TRY(
      CheckBatch(__func__, {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                 failIndex, &copies));
  return CopyAll(__func__, copies);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs) try {
  return aclrtMemcpyBatch(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
                          nullptr);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream) try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &on));
  std::vector<Copy> copies;
  NPUMESH_ACL_TRY(
      CheckBatch(__func__, {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                 failIndex, &copies));
  return QueueAll(__func__, copies, *on);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, aclrtStream stream) try {
  return aclrtMemcpyBatchAsync(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes,
                               numAttrs, nullptr, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) try {
  return aclrtMemcpyAsync(dst, destMax, src, count, kind, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) try {
  NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(__func__));
  NPUMESH_ACL_TRY(CheckWords(__func__, ptr, memSize, N));
  std::fill_n(static_cast<uint32_t*>(ptr), N, value);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) try {
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &on));
  NPUMESH_ACL_TRY(CheckWords(__func__, ptr, memSize, N));
  on->stream.Enqueue([ptr, value, N] {
    std::fill_n(static_cast<uint32_t*>(ptr), N, value);
    return npumesh::Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
