// Addresses inside a symmetric window. Compiles as C++11.
#ifndef HCCL_HCCL_SYM_WIN_H_
#define HCCL_HCCL_SYM_WIN_H_

#include "hccl/hccl_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

// Where `offset` of the window lies in the memory of rank `peer`, as this rank sees it.
HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow win, size_t offset, uint32_t peer,
                                    void** ptr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCCL_SYM_WIN_H_
