/* Copies, fills and texts with bounds, as programs of the vendor include and link them (libc_sec).
 *
 * destMax counts bytes or characters of dest, 1 to SECUREC_MEM_MAX_LEN (texts:
 * SECUREC_STRING_MAX_LEN), the terminating 0 included. 0 (EOK), or the code of what was wrong:
 * EINVAL for a null pointer, ERANGE for destMax out of bounds, ERANGE_AND_RESET for what does not
 * fit, EOVERLAP_AND_RESET for areas that overlap where they may not; _AND_RESET: dest is zeros (a
 * text: empty) afterwards. Functions that print return the number of characters, or -1, with dest
 * empty, for what does not fit. Thread-safety: any thread. Names, codes: the public header of
 * openEuler's libboundscheck. */
#ifndef NPUMESH_SECUREC_H_
#define NPUMESH_SECUREC_H_

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef errno_t
typedef int errno_t;
#endif

#ifndef EOK
#define EOK 0
#endif
#ifndef EINVAL
#define EINVAL 22
#endif
#ifndef ERANGE
#define ERANGE 34
#endif
#define EINVAL_AND_RESET 150
#define ERANGE_AND_RESET 162
#define EOVERLAP_AND_RESET 182

#define SECUREC_MEM_MAX_LEN 0x7fffffffUL
#define SECUREC_STRING_MAX_LEN 0x7fffffffUL

#pragma GCC visibility push(default)

errno_t memset_s(void* dest, size_t destMax, int c, size_t count);
errno_t memcpy_s(void* dest, size_t destMax, const void* src, size_t count);
errno_t memmove_s(void* dest, size_t destMax, const void* src, size_t count);
errno_t strcpy_s(char* strDest, size_t destMax, const char* strSrc);
/* At most `count` characters, which end with 0 here. */
errno_t strncpy_s(char* strDest, size_t destMax, const char* strSrc, size_t count);
errno_t strcat_s(char* strDest, size_t destMax, const char* strSrc);
errno_t strncat_s(char* strDest, size_t destMax, const char* strSrc, size_t count);
/* As strtok_r; `context` is where it goes on. */
char* strtok_s(char* strToken, const char* strDelimit, char** context);
int vsprintf_s(char* strDest, size_t destMax, const char* format, va_list args);
int sprintf_s(char* strDest, size_t destMax, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
/* What is longer than `count` is cut, and -1 is returned. */
int vsnprintf_s(char* strDest, size_t destMax, size_t count, const char* format, va_list args);
int snprintf_s(char* strDest, size_t destMax, size_t count, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_SECUREC_H_ */
