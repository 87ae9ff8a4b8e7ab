// Start, end, errors and helpers: acl.h and acl_base.h.
#include <unistd.h>

#include <string>
#include <utility>

#include "acl/acl.h"
#include "runtime/acl/dump/dump_paths.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/life_callbacks.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/data_type.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/float16.h"

using npumesh::AclProcess;
using npumesh::Fail;

aclError aclInit(const char* configPath) try {
  if (configPath != nullptr && *configPath != '\0' && access(configPath, R_OK) != 0) {
    return Fail(ACL_ERROR_INVALID_FILE, __func__, "\"{}\" cannot be read", configPath);
  }
  std::string config;
  if (configPath != nullptr && *configPath != '\0') {
    npumesh::Result<std::string> text = npumesh::ReadFile(configPath);
    if (!text.ok()) return Fail(ACL_ERROR_INVALID_FILE, __func__, "{}", text.status().message());
    config = *std::move(text);
  }
  NPUMESH_ACL_TRY(AclProcess::Get().Init());
  AclProcess::Get().set_config_path(configPath);
  npumesh::DumpPaths::OfProcess().ReadInit(AclProcess::Get().config_path());
  return npumesh::LifeCallbacks::Get().Begin(std::move(config));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclFinalize() try {
  const aclError told = npumesh::LifeCallbacks::Get().End();
  const aclError code = AclProcess::Get().Finalize(__func__);
  return told != ACL_SUCCESS ? told : code;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclFinalizeReference(uint64_t* refCount) try {
  return AclProcess::Get().FinalizeReference(__func__, refCount);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

const char* aclGetRecentErrMsg() {
  return npumesh::TakeRecentErrors();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) try {
  NPUMESH_ACL_EXPECT(level == ACL_RT_THREAD_LEVEL, "level is {}, expected ACL_RT_THREAD_LEVEL",
                     static_cast<int>(level));
  return npumesh::LastError();
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetLastError(aclrtLastErrLevel level) try {
  const aclError last = aclrtPeekAtLastError(level);
  npumesh::ClearLastError();
  return last;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) try {
  NPUMESH_ACL_EXPECT(majorVersion != nullptr && minorVersion != nullptr && patchVersion != nullptr,
                     "a pointer for the result is null");
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

float aclFloat16ToFloat(aclFloat16 value) {
  return npumesh::Float16::ToFloat(value);
}

aclFloat16 aclFloatToFloat16(float value) {
  return npumesh::Float16::FromFloat(value);
}

// The numbers of aclDataType are those of the run time's DataType.
size_t aclDataTypeSize(aclDataType dataType) {
  const auto dtype = npumesh::DataTypeFromRuntime(dataType);
  return dtype ? static_cast<size_t>(npumesh::BitsOf(*dtype) / 8) : 0;
}
