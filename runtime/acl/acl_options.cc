// Options of the process and of contexts, and callbacks of begin and end: parts of acl.h, acl_rt.h
// and acl_op_compiler.h.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/life_callbacks.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::Fail;
using npumesh::LifeCallbacks;

namespace {

// Values under keys, of the whole process.
template <typename Key, typename Value>
class Kept {
 public:
  void Set(const Key& key, Value value) {
    const std::lock_guard lock(mutex_);
    values_[key] = std::move(value);
  }
  // `otherwise`: was not set.
  Value Get(const Key& key, Value otherwise) const {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Key, Value> values_;
};

Kept<aclSysParamOpt, int64_t>& SystemParameters() {
  static auto* const kept = new Kept<aclSysParamOpt, int64_t>;
  return *kept;
}

Kept<aclCompileOpt, std::string>& CompileOptions() {
  static auto* const kept = new Kept<aclCompileOpt, std::string>;
  return *kept;
}

aclError CheckParameter(const char* function, aclSysParamOpt opt) {
  if (opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_ENABLE_KERNEL_EARLY_START) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "opt is {}, expected 0 to 3",
              static_cast<int>(opt));
}

aclError CheckOption(const char* function, aclCompileOpt opt) {
  if (opt >= ACL_PRECISION_MODE && opt <= ACL_OP_DEBUG_OPTION) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "opt is {}, expected 0 to 16",
              static_cast<int>(opt));
}

}  // namespace

aclError aclInitCallbackRegister(aclRegisterCallbackType, aclInitCallbackFunc cbFunc,
                                 void* userData) try {
  NPUMESH_ACL_EXPECT(cbFunc != nullptr, "cbFunc is null");
  return LifeCallbacks::Get().Add(cbFunc, userData);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType, aclInitCallbackFunc cbFunc) try {
  NPUMESH_ACL_EXPECT(LifeCallbacks::Get().Remove(cbFunc), "cbFunc is not registered");
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType, aclFinalizeCallbackFunc cbFunc,
                                     void* userData) try {
  NPUMESH_ACL_EXPECT(cbFunc != nullptr, "cbFunc is null");
  LifeCallbacks::Get().Add(cbFunc, userData);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType,
                                       aclFinalizeCallbackFunc cbFunc) try {
  NPUMESH_ACL_EXPECT(LifeCallbacks::Get().Remove(cbFunc), "cbFunc is not registered");
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) try {
  NPUMESH_ACL_TRY(CheckParameter(__func__, opt));
  SystemParameters().Set(opt, value);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) try {
  NPUMESH_ACL_TRY(CheckParameter(__func__, opt));
  NPUMESH_ACL_EXPECT(value != nullptr, "value is null");
  *value = SystemParameters().Get(opt, 0);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) try {
  NPUMESH_ACL_TRY(CheckParameter(__func__, opt));
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const std::lock_guard lock(context->mutex);
  context->parameters[opt] = value;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) try {
  NPUMESH_ACL_TRY(CheckParameter(__func__, opt));
  NPUMESH_ACL_EXPECT(value != nullptr, "value is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const std::lock_guard lock(context->mutex);
  const auto own = context->parameters.find(opt);
  *value = own != context->parameters.end() ? own->second : SystemParameters().Get(opt, 0);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) try {
  NPUMESH_ACL_TRY(CheckOption(__func__, opt));
  NPUMESH_ACL_EXPECT(value != nullptr, "value is null");
  CompileOptions().Set(opt, value);
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

size_t aclGetCompileoptSize(aclCompileOpt opt) try {
  if (CheckOption(__func__, opt) != ACL_SUCCESS) return 0;
  return CompileOptions().Get(opt, "").size() + 1;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) try {
  NPUMESH_ACL_TRY(CheckOption(__func__, opt));
  const std::string text = CompileOptions().Get(opt, "");
  NPUMESH_ACL_EXPECT(value != nullptr && length > text.size(),
                     "value has {} characters, expected {} (aclGetCompileoptSize)",
                     value == nullptr ? 0 : length, text.size() + 1);
  std::memcpy(value, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetCompileFlag(aclOpCompileFlag flag) try {
  NPUMESH_ACL_EXPECT(flag == ACL_OP_COMPILE_DEFAULT || flag == ACL_OP_COMPILE_FUZZ,
                     "flag is {}, expected 0 or 1", static_cast<int>(flag));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
