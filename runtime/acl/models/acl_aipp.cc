// AIPP, the image processing in front of a model, which npumesh does not have: acl_mdl.h.
#include "runtime/acl/models/model_objects.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclModelEntry;
using npumesh::Fail;
using npumesh::FindModel;
using npumesh::Refuse;

aclmdlAIPP* aclmdlCreateAIPP(uint64_t) try {
  static_cast<void>(Refuse(__func__));
  return nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlDestroyAIPP(const aclmdlAIPP*) try { return Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetAippDataSize(uint64_t, size_t*) try { return Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPInputFormat(aclmdlAIPP*, aclAippInputFormat) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPCscParams(aclmdlAIPP*, int8_t, int16_t, int16_t, int16_t, int16_t, int16_t,
                                int16_t, int16_t, int16_t, int16_t, uint8_t, uint8_t, uint8_t,
                                uint8_t, uint8_t, uint8_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPRbuvSwapSwitch(aclmdlAIPP*, int8_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPAxSwapSwitch(aclmdlAIPP*, int8_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPSrcImageSize(aclmdlAIPP*, int32_t, int32_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPScfParams(aclmdlAIPP*, int8_t, int32_t, int32_t, int32_t, int32_t,
                                uint64_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPCropParams(aclmdlAIPP*, int8_t, int32_t, int32_t, int32_t, int32_t,
                                 uint64_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPPaddingParams(aclmdlAIPP*, int8_t, int32_t, int32_t, int32_t, int32_t,
                                    uint64_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPDtcPixelMean(aclmdlAIPP*, int16_t, int16_t, int16_t, int16_t, uint64_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPDtcPixelMin(aclmdlAIPP*, float, float, float, float, uint64_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPPixelVarReci(aclmdlAIPP*, float, float, float, float, uint64_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetAippType(uint32_t modelId, size_t index, aclmdlInputAippType* type,
                           size_t* dynamicAttachedDataIndex) try {
  NPUMESH_ACL_EXPECT(type != nullptr, "type is null");
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  NPUMESH_ACL_EXPECT(index < entry->model->facts().inputs.size(), "input {} of {}", index,
                     entry->model->facts().inputs.size());
  *type = ACL_DATA_WITHOUT_AIPP;
  if (dynamicAttachedDataIndex != nullptr) *dynamicAttachedDataIndex = ACL_INVALID_NODE_INDEX;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetFirstAippInfo(uint32_t modelId, size_t index, aclAippInfo*) try {
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  return Fail(static_cast<aclError>(ACL_ERROR_GE_AIPP_NOT_EXIST), __func__,
              "input {} of model {} has no AIPP; no model of npumesh has", index, modelId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetInputAIPP(uint32_t, aclmdlDataset*, size_t, const aclmdlAIPP*) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAIPPByInputIndex(uint32_t, aclmdlDataset*, size_t, const aclmdlAIPP*) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
