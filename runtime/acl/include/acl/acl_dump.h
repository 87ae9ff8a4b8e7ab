/* Dumps of models, and of what a program gives itself. docs/dump.md says what configurations and
 * files are. */
#ifndef NPUMESH_ACL_ACL_DUMP_H_
#define NPUMESH_ACL_ACL_DUMP_H_

#include <stdint.h>

#include "acl_base.h"

#define ACL_DUMP_API __attribute__((visibility("default")))
#define ACL_DUMP_WEAK __attribute__((weak))

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_DUMP_MAX_FILE_PATH_LENGTH 4096
#define ACL_OP_DUMP_OP_AICORE_ARGS 0x00000001U
#define ACL_DUMP_MAX_SHAPE_NUM 25

typedef struct acldumpChunk {
  char fileName[ACL_DUMP_MAX_FILE_PATH_LENGTH];
  uint32_t bufLen;
  uint32_t isLastChunk;
  int64_t offset;
  int32_t flag;
  __extension__ uint8_t dataBuf[0]; /* bufLen bytes */
} acldumpChunk;

typedef enum acldumpType {
  AIC_ERR_BRIEF_DUMP = 1,
  AIC_ERR_NORM_DUMP = 2,
  AIC_ERR_DETAIL_DUMP = 3,
  DATA_DUMP = 4,
  OVERFLOW_DUMP = 5
} acldumpType;

typedef enum acldumpTensorType {
  ACL_DUMP_TENSOR_INPUT = 0,
  ACL_DUMP_TENSOR_OUTPUT = 1,
  ACL_DUMP_TENSOR_WORKSPACE = 2
} acldumpTensorType;

typedef enum acldumpTensorAddressType {
  ACL_DUMP_ADDR_PTR = 0,
  ACL_DUMP_ADDR_PTR_PTR = 1,
  ACL_DUMP_ADDR_RAW = 2
} acldumpTensorAddressType;

typedef enum acldumpTensorPlacement {
  ACL_DUMP_PLACEMENT_DEVICE = 0,
  ACL_DUMP_PLACEMENT_HOST = 1,
  ACL_DUMP_PLACEMENT_END = 2
} acldumpTensorPlacement;

typedef struct acldumpTensorInfo {
  acldumpTensorType type;
  size_t tensorSize;
  int32_t format;
  int32_t dataType;
  int64_t* tensorAddr;
  acldumpTensorAddressType addrType;
  acldumpTensorPlacement placement;
  uint32_t argsOffset;
  uint32_t shapeNum;
  uint32_t originShapeNum;
  uint64_t shape[ACL_DUMP_MAX_SHAPE_NUM];
  uint64_t originShape[ACL_DUMP_MAX_SHAPE_NUM];
} acldumpTensorInfo;

/* From now on files of dumps go to the callback in place of the disk, in chunks of at most 1 MiB
 * one after the other (`offset`), from a thread of npumesh; the second argument is the bytes of the
 * chunk with its data. A code other than 0 ends the dump. Replaces the callback before. `flag`: 0.
 * Unregistering waits for a call that runs. */
ACL_DUMP_API aclError acldumpRegCallback(int32_t (*const messageCallback)(const acldumpChunk* chunk,
                                                                          int32_t length),
                                         int32_t flag);
ACL_DUMP_API void acldumpUnregCallback(void);

/* Arguments of kernels of the cores, of which a simulated device runs none: only the path is kept.
 * `path`: an existing folder. Stopping what was not started: ACL_ERROR_INVALID_PARAM. */
ACL_FUNC_VISIBILITY aclError aclopStartDumpArgs(uint32_t dumpType, const char* path);
ACL_FUNC_VISIBILITY aclError aclopStopDumpArgs(uint32_t dumpType);

/* The folder of such dumps as the file of aclInit or aclmdlSetDump says it, or aclopStartDumpArgs;
 * null without one. Valid until the thread asks again. */
ACL_FUNC_VISIBILITY const char* acldumpGetPath(acldumpType dumpType);

/* With a `dump_scene` of exceptions in the file of aclInit, else ACL_ERROR_FAILURE: writes tensors
 * of device memory as a dump file of version 2.0, "fileName.custom.{time}" in the folder of
 * exceptions, with `userTag` as its message. A shape is that of a tensor whose bytes are not more
 * than `tensorSize`. */
ACL_DUMP_WEAK ACL_FUNC_VISIBILITY aclError
acldumpSaveExceptionInfo(const char* fileName, const char* userTag,
                         const acldumpTensorInfo* tensors, size_t tensorCount);

/* That folder, with a slash at its end: "{dump_path}/extra-info/data-dump/{device}/". */
ACL_DUMP_WEAK ACL_FUNC_VISIBILITY aclError acldumpGetExceptionInfoPath(char* path, size_t maxLen);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_DUMP_H_ */
