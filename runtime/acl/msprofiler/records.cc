// Reading what a subscription has written: a part of acl_prof.h.
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl_prof.h"
#include "runtime/acl/msprofiler/operator_record.h"
#include "runtime/acl/process/errors.h"

using npumesh::Fail;
using npumesh::OperatorRecord;

namespace {

aclError CountRecords(const char* function, const void* data, size_t bytes, uint32_t* count) {
  if (data == nullptr || bytes == 0 || bytes % sizeof(OperatorRecord) != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "opInfo is {}, opInfoLen is {}, expected a multiple of {}", fmt::ptr(data), bytes,
                sizeof(OperatorRecord));
  }
  *count = static_cast<uint32_t>(bytes / sizeof(OperatorRecord));
  return ACL_SUCCESS;
}

aclError ReadRecord(const char* function, const void* data, size_t bytes, uint32_t index,
                    OperatorRecord* record) {
  uint32_t count = 0;
  NPUMESH_ACL_TRY(CountRecords(function, data, bytes, &count));
  if (index >= count) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "index is {}, there are {} records", index,
                count);
  }
  std::memcpy(record, static_cast<const std::byte*>(data) + index * sizeof *record, sizeof *record);
  if (record->magic != OperatorRecord::kMagic) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "opInfo is not what a subscription writes");
  }
  record->type.back() = '\0';
  record->name.back() = '\0';
  return ACL_SUCCESS;
}

aclError GetLength(const char* function, const char* text, size_t* length) {
  if (length == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "the length is null");
  *length = std::strlen(text) + 1;
  return ACL_SUCCESS;
}

aclError GetText(const char* function, const char* text, char* to, size_t room) {
  const size_t bytes = std::strlen(text) + 1;
  if (to == nullptr || room < bytes) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the text is {}, its length {}, expected {}",
                fmt::ptr(to), room, bytes);
  }
  std::memcpy(to, text, bytes);
  return ACL_SUCCESS;
}

// The record, or an empty one; for functions that return a value.
OperatorRecord RecordOrNone(const char* function, const void* data, size_t bytes, uint32_t index) {
  OperatorRecord record;
  const bool read = ReadRecord(function, data, bytes, index, &record) == ACL_SUCCESS;
  return read ? record : OperatorRecord{.magic = 0};
}

}  // namespace

aclError aclprofGetOpDescSize(size_t* opDescSize) try {
  NPUMESH_ACL_EXPECT(opDescSize != nullptr, "opDescSize is null");
  *opDescSize = sizeof(OperatorRecord);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofGetOpNum(const void* opInfo, size_t opInfoLen, uint32_t* opNumber) try {
  NPUMESH_ACL_EXPECT(opNumber != nullptr, "opNumber is null");
  return CountRecords(__func__, opInfo, opInfoLen, opNumber);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofGetOpTypeLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                             size_t* opTypeLen) try {
  OperatorRecord record;
  NPUMESH_ACL_TRY(ReadRecord(__func__, opInfo, opInfoLen, index, &record));
  return GetLength(__func__, record.type.data(), opTypeLen);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofGetOpType(const void* opInfo, size_t opInfoLen, uint32_t index, char* opType,
                          size_t opTypeLen) try {
  OperatorRecord record;
  NPUMESH_ACL_TRY(ReadRecord(__func__, opInfo, opInfoLen, index, &record));
  return GetText(__func__, record.type.data(), opType, opTypeLen);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofGetOpNameLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                             size_t* opNameLen) try {
  OperatorRecord record;
  NPUMESH_ACL_TRY(ReadRecord(__func__, opInfo, opInfoLen, index, &record));
  return GetLength(__func__, record.name.data(), opNameLen);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofGetOpName(const void* opInfo, size_t opInfoLen, uint32_t index, char* opName,
                          size_t opNameLen) try {
  OperatorRecord record;
  NPUMESH_ACL_TRY(ReadRecord(__func__, opInfo, opInfoLen, index, &record));
  return GetText(__func__, record.name.data(), opName, opNameLen);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

uint64_t aclprofGetOpStart(const void* opInfo, size_t opInfoLen, uint32_t index) try {
  return RecordOrNone(__func__, opInfo, opInfoLen, index).begin_us;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

uint64_t aclprofGetOpEnd(const void* opInfo, size_t opInfoLen, uint32_t index) try {
  return RecordOrNone(__func__, opInfo, opInfoLen, index).end_us;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

uint64_t aclprofGetOpDuration(const void* opInfo, size_t opInfoLen, uint32_t index) try {
  const OperatorRecord record = RecordOrNone(__func__, opInfo, opInfoLen, index);
  return record.end_us - record.begin_us;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

size_t aclprofGetModelId(const void* opInfo, size_t opInfoLen, uint32_t index) try {
  return RecordOrNone(__func__, opInfo, opInfoLen, index).model;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

aclprofSubscribeOpFlag aclprofGetOpFlag(const void* opInfo, size_t opInfoLen, uint32_t index) try {
  const OperatorRecord record = RecordOrNone(__func__, opInfo, opInfoLen, index);
  return record.magic == 0 ? ACL_SUBSCRIBE_NONE : ACL_SUBSCRIBE_OP;
} catch (...) {
  npumesh::FailThrown(__func__);
  return ACL_SUBSCRIBE_NONE;
}

const char* aclprofGetOpAttriValue(const void* opInfo, size_t opInfoLen, uint32_t index,
                                   aclprofSubscribeOpAttri attri) try {
  thread_local std::string text;
  const OperatorRecord record = RecordOrNone(__func__, opInfo, opInfoLen, index);
  if (record.magic == 0) return nullptr;
  if (attri != ACL_SUBSCRIBE_ATTRI_THREADID) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "attri is {}, expected 0", static_cast<int>(attri));
    return nullptr;
  }
  text = std::to_string(record.thread);
  return text.c_str();
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}
