/* Tensors, scalars and lists for the operators of libopapi. Each object belongs to its creator; the
 * elements of a list belong to the list. Calls that make something return null for arguments that
 * make none; the others return 161001 for a null pointer and 161002 for a wrong value. What Get
 * functions of shapes return is allocated: delete[] frees it. */
#ifndef NPUMESH_ACLNN_ACL_META_H_
#define NPUMESH_ACLNN_ACL_META_H_

#include <acl/acl_base.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ACLNN_META
#define ACLNN_META
typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef int32_t aclnnStatus;
#ifdef __cplusplus
constexpr aclnnStatus OK = 0;
#endif
#endif

#define ACLNN_SUCCESS 0
#define ACLNN_ERR_PARAM_NULLPTR 161001
#define ACLNN_ERR_PARAM_INVALID 161002
#define ACLNN_ERR_RUNTIME_ERROR 361001
#define ACLNN_ERR_INNER 561000
#define ACLNN_ERR_INNER_CREATE_EXECUTOR 561101
#define ACLNN_ERR_INNER_NULLPTR 561103

/* aclInit and aclFinalize for programs of operators alone. Success where aclInit was called before;
 * then aclnnFinalize ends nothing. */
aclnnStatus aclnnInit(const char* configPath);
aclnnStatus aclnnFinalize(void);

/* A view: element (i, j, ...) lies at tensorData + offset + i * stride[0] + j * stride[1] + ..., in
 * elements. `stride` may be null: packed. */
aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData);
aclScalar* aclCreateScalar(void* value, aclDataType dataType);
aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size);
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size);
aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size);
aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size);

aclnnStatus aclDestroyTensor(const aclTensor* tensor);
aclnnStatus aclDestroyScalar(const aclScalar* scalar);
aclnnStatus aclDestroyIntArray(const aclIntArray* array);
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array);
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array);
aclnnStatus aclDestroyTensorList(const aclTensorList* array);
aclnnStatus aclDestroyScalarList(const aclScalarList* array);

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum);
aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum);
aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum);
aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);
aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);
aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType);
aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size);
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size);
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size);
aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size);
aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size);

/* A tensor that exists becomes another one. */
aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr);
aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr);
aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr);

/* Elements that a matrix, or a row of them, takes in FRACTAL_NZ, in which aclnnTransMatmulWeight
 * stores it; without a type those of 16 bits. 161001, 161002 as above; 161002 also for shapes of
 * fewer than two dimensions. */
aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape,
                                           uint64_t* weightTensorSize);
aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType,
                                             uint64_t* weightTensorSize);
/* What the result of aclnnNpuFormatCast is stored in: its shape, which delete[] frees, and its
 * format, that of dstFormat. additionalDtype, of what is multiplied later, changes neither. */
aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor,
                                                     const int dstFormat, int additionalDtype,
                                                     int64_t** dstShape, uint64_t* dstShapeSize,
                                                     int* actualFormat);

/* An executor that is repeatable runs again with the same tensors, or with others of the same shape
 * at other addresses, until it is destroyed; without that it ends with its run. `index` counts the
 * parameters that are tensors. */
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);
aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACLNN_ACL_META_H_ */
