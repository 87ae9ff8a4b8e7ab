// Dumps: acl_dump.h.
#include "acl/acl_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/acl/dump/dump_paths.h"
#include "runtime/acl/models/model_machine.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"
#include "runtime/base/files/dump_sink.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::Code;
using npumesh::DumpPaths;
using npumesh::DumpSink;
using npumesh::Fail;
using npumesh::ModelMachine;
using npumesh::Status;

namespace {

using Callback = int32_t (*)(const acldumpChunk*, int32_t);

// Gives one piece of a file to the client.
Status Tell(Callback callback, const DumpSink::Piece& piece) {
  if (piece.path.size() >= ACL_DUMP_MAX_FILE_PATH_LENGTH) {
    return npumesh::Error(Code::kInvalidArgument, "{}: the path is longer than {} characters",
                          piece.path, ACL_DUMP_MAX_FILE_PATH_LENGTH - 1);
  }
  std::vector<std::byte> memory(sizeof(acldumpChunk) + piece.bytes.size());
  auto* const chunk = new (memory.data()) acldumpChunk{};
  std::memcpy(chunk->fileName, piece.path.data(), piece.path.size());
  chunk->bufLen = static_cast<uint32_t>(piece.bytes.size());
  chunk->isLastChunk = piece.last ? 1 : 0;
  chunk->offset = static_cast<int64_t>(piece.offset);
  // In front of the padding that the structure has at its end.
  std::copy(piece.bytes.begin(), piece.bytes.end(),
            memory.begin() + offsetof(acldumpChunk, dataBuf));
  const int32_t code = callback(chunk, static_cast<int32_t>(memory.size()));
  if (code == 0) return Status();
  return npumesh::Error(Code::kIo, "{}: the callback of acldumpRegCallback returned {}", piece.path,
                        code);
}

bool IsFolder(const char* path) {
  struct stat about {};
  return path != nullptr && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

aclError CheckArgumentDump(const char* function, uint32_t type) {
  if (type == ACL_OP_DUMP_OP_AICORE_ARGS) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "dumpType is {}, expected {}", type,
              ACL_OP_DUMP_OP_AICORE_ARGS);
}

aclError ExceptionFolder(const char* function, std::string* folder) {
  const std::string root = DumpPaths::OfProcess().OfExceptions();
  if (root.empty()) {
    return Fail(ACL_ERROR_FAILURE, function,
                "exceptions are not dumped: the file of aclInit has no dump_scene of exceptions "
                "(\"aic_err_brief_dump\") with a dump_path");
  }
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  *folder = fmt::format("{}{}extra-info/data-dump/{}/", root, root.back() == '/' ? "" : "/",
                        AclProcess::CurrentDeviceId());
  return ACL_SUCCESS;
}

// Relative, and does not leave its folder.
aclError CheckFileName(const char* function, const char* name) {
  const std::string_view text = name == nullptr ? "" : name;
  const std::string framed = "/" + std::string(text) + "/";
  if (!text.empty() && text.front() != '/' && framed.find("/../") == std::string::npos) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "fileName is \"{}\", expected a relative name without \"..\"", text);
}

aclError CheckTensor(const char* function, size_t index, const acldumpTensorInfo& tensor) {
  if (tensor.shapeNum > ACL_DUMP_MAX_SHAPE_NUM || tensor.originShapeNum > ACL_DUMP_MAX_SHAPE_NUM) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "tensors[{}] has {} and {} dims, at most {}",
                index, tensor.shapeNum, tensor.originShapeNum, ACL_DUMP_MAX_SHAPE_NUM);
  }
  if (tensor.type < ACL_DUMP_TENSOR_INPUT || tensor.type > ACL_DUMP_TENSOR_WORKSPACE ||
      tensor.addrType != ACL_DUMP_ADDR_RAW || tensor.placement != ACL_DUMP_PLACEMENT_DEVICE) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "tensors[{}]: type {}, addrType {}, placement {}, expected 0 to 2, 2 and 0", index,
                static_cast<int>(tensor.type), static_cast<int>(tensor.addrType),
                static_cast<int>(tensor.placement));
  }
  const auto& memory = AclProcess::Get().memory;
  if (tensor.tensorSize > 0 && memory.OnDevice(tensor.tensorAddr, tensor.tensorSize)) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "tensors[{}]: {} bytes at {} are not all device memory", index, tensor.tensorSize,
              fmt::ptr(tensor.tensorAddr));
}

std::vector<int64_t> DimsOf(const uint64_t* dims, uint32_t count) {
  return std::vector<int64_t>(dims, dims + count);
}

npumesh::GivenTensor Given(const acldumpTensorInfo& tensor) {
  using Role = npumesh::GivenTensor::Role;
  constexpr Role kRoles[] = {Role::kInput, Role::kOutput, Role::kWorkspace};
  return {kRoles[tensor.type],
          static_cast<aclDataType>(tensor.dataType),
          static_cast<aclFormat>(tensor.format),
          DimsOf(tensor.shape, tensor.shapeNum),
          DimsOf(tensor.originShape, tensor.originShapeNum),
          tensor.tensorAddr,
          tensor.tensorSize};
}

}  // namespace

aclError acldumpRegCallback(int32_t (*const messageCallback)(const acldumpChunk*, int32_t),
                            int32_t flag) try {
  NPUMESH_ACL_EXPECT(messageCallback != nullptr, "messageCallback is null");
  NPUMESH_ACL_EXPECT(flag == 0, "flag is {}, expected 0", flag);
  DumpSink::Set([callback = Callback{messageCallback}](const DumpSink::Piece& piece) {
    return Tell(callback, piece);
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

void acldumpUnregCallback() try { DumpSink::Set(nullptr); } catch (...) {
  npumesh::FailThrown(__func__);
}

aclError aclopStartDumpArgs(uint32_t dumpType, const char* path) try {
  NPUMESH_ACL_TRY(CheckArgumentDump(__func__, dumpType));
  NPUMESH_ACL_EXPECT(IsFolder(path), "path is {}, expected an existing folder",
                     path == nullptr ? "null" : path);
  DumpPaths::OfProcess().set_arguments(path);
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopStopDumpArgs(uint32_t dumpType) try {
  NPUMESH_ACL_TRY(CheckArgumentDump(__func__, dumpType));
  NPUMESH_ACL_EXPECT(!DumpPaths::OfProcess().arguments().empty(),
                     "aclopStartDumpArgs was not called");
  DumpPaths::OfProcess().set_arguments("");
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

const char* acldumpGetPath(acldumpType dumpType) try {
  thread_local std::string path;
  if (dumpType < AIC_ERR_BRIEF_DUMP || dumpType > OVERFLOW_DUMP) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "dumpType is {}, expected 1 to 5",
         static_cast<int>(dumpType));
    return nullptr;
  }
  path = DumpPaths::OfProcess().Of(dumpType);
  return path.empty() ? nullptr : path.c_str();
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError acldumpGetExceptionInfoPath(char* path, size_t maxLen) try {
  std::string folder;
  NPUMESH_ACL_TRY(ExceptionFolder(__func__, &folder));
  NPUMESH_ACL_EXPECT(path != nullptr && maxLen > folder.size(),
                     "path is {}, maxLen is {}, expected room for {} bytes", fmt::ptr(path), maxLen,
                     folder.size() + 1);
  std::memcpy(path, folder.c_str(), folder.size() + 1);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acldumpSaveExceptionInfo(const char* fileName, const char* userTag,
                                  const acldumpTensorInfo* tensors, size_t tensorCount) try {
  std::string folder;
  NPUMESH_ACL_TRY(ExceptionFolder(__func__, &folder));
  NPUMESH_ACL_TRY(CheckFileName(__func__, fileName));
  NPUMESH_ACL_EXPECT(tensors != nullptr && tensorCount > 0, "tensors is null, or tensorCount is 0");
  std::vector<npumesh::GivenTensor> given;
  for (size_t i = 0; i < tensorCount; ++i) {
    NPUMESH_ACL_TRY(CheckTensor(__func__, i, tensors[i]));
    given.push_back(Given(tensors[i]));
  }
  const npumesh::Result<ModelMachine*> machine = ModelMachine::Get();
  NPUMESH_ACL_TRY(npumesh::Report(__func__, machine.status()));
  return npumesh::Report(__func__, (*machine)->WriteTensors(
                                       folder, fileName, userTag == nullptr ? "" : userTag, given));
} catch (...) {
  return npumesh::FailThrown(__func__);
}
