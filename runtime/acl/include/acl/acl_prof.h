/* The profiler's interface (libmsprofiler). npumesh checks the order of the calls and their
 * arguments and records nothing: times on a simulated device would say nothing about an NPU. */
#ifndef NPUMESH_ACL_ACL_PROF_H_
#define NPUMESH_ACL_ACL_PROF_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL

typedef enum {
  ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
  ACL_AICORE_PIPE_UTILIZATION = 1,
  ACL_AICORE_MEMORY_BANDWIDTH = 2,
  ACL_AICORE_L0B_AND_WIDTH = 3,
  ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
  ACL_AICORE_MEMORY_UB = 5,
  ACL_AICORE_L2_CACHE = 6,
  ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
  ACL_AICORE_MEMORY_ACCESS = 8,
  ACL_AICORE_NONE = 0xFF
} aclprofAicoreMetrics;

typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;

/* `profilerResultPath`: a folder, `length` characters; kept for aclprofStart, which makes it. Null
 * or empty: ACL_ERROR_INVALID_PARAM. A second call: ACL_ERROR_PROF_ALREADY_RUN. */
aclError aclprofInit(const char* profilerResultPath, size_t length);

/* Without aclprofInit: ACL_ERROR_PROF_NOT_RUN. */
aclError aclprofFinalize(void);

/* Makes the folder of aclprofInit and those above it; ACL_ERROR_INVALID_FILE when it cannot. While
 * running: ACL_ERROR_PROF_ALREADY_RUN; before aclprofInit: ACL_ERROR_PROF_NOT_RUN. */
aclError aclprofStart(const aclprofConfig* profilerConfig);

/* While not running: ACL_ERROR_PROF_NOT_RUN. */
aclError aclprofStop(const aclprofConfig* profilerConfig);

/* Null for a list without devices. To be given to aclprofDestroyConfig. */
aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                   aclprofAicoreMetrics aicoreMetrics,
                                   const aclprofAicoreEvents* aicoreEvents,
                                   uint64_t dataTypeConfig);

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_PROF_H_ */
