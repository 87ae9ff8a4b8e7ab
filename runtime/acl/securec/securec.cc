// libc_sec: the functions of securec.h.
#include "securec.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

bool Overlap(const void* a, const void* b, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return first < second + bytes && second < first + bytes;
}

bool InBounds(size_t dest_max, size_t most) {
  return dest_max > 0 && dest_max <= most;
}

errno_t Reset(void* dest, size_t bytes, errno_t code) {
  std::memset(dest, 0, bytes);
  return code;
}

errno_t Empty(char* dest, errno_t code) {
  *dest = '\0';
  return code;
}

// Writes `length` characters of `from` and a 0 behind the first `kept` characters of a text.
errno_t Put(char* dest, size_t dest_max, size_t kept, const char* from, size_t length) {
  if (length >= dest_max - kept) return Empty(dest, ERANGE_AND_RESET);
  if (Overlap(dest + kept, from, length + 1)) return Empty(dest, EOVERLAP_AND_RESET);
  std::memcpy(dest + kept, from, length);
  dest[kept + length] = '\0';
  return EOK;
}

errno_t Copy(char* dest, size_t dest_max, const char* from, size_t count) {
  if (!InBounds(dest_max, SECUREC_STRING_MAX_LEN)) return ERANGE;
  if (dest == nullptr) return EINVAL;
  if (from == nullptr) return Empty(dest, EINVAL_AND_RESET);
  return Put(dest, dest_max, 0, from, strnlen(from, std::min(count, dest_max)));
}

errno_t Append(char* dest, size_t dest_max, const char* from, size_t count) {
  if (!InBounds(dest_max, SECUREC_STRING_MAX_LEN)) return ERANGE;
  if (dest == nullptr) return EINVAL;
  if (from == nullptr) return Empty(dest, EINVAL_AND_RESET);
  const size_t kept = strnlen(dest, dest_max);
  if (kept == dest_max) return Empty(dest, EINVAL_AND_RESET);  // no text
  return Put(dest, dest_max, kept, from, strnlen(from, std::min(count, dest_max)));
}

bool CanPrint(const char* dest, size_t dest_max, const char* format) {
  return dest != nullptr && format != nullptr && InBounds(dest_max, SECUREC_STRING_MAX_LEN);
}

}  // namespace

errno_t memset_s(void* dest, size_t destMax, int c, size_t count) {
  if (!InBounds(destMax, SECUREC_MEM_MAX_LEN)) return ERANGE;
  if (dest == nullptr) return EINVAL;
  std::memset(dest, c, std::min(count, destMax));
  return count <= destMax ? EOK : ERANGE_AND_RESET;  // all of dest has the value then
}

errno_t memcpy_s(void* dest, size_t destMax, const void* src, size_t count) {
  if (!InBounds(destMax, SECUREC_MEM_MAX_LEN)) return ERANGE;
  if (dest == nullptr) return EINVAL;
  if (src == nullptr) return Reset(dest, destMax, EINVAL_AND_RESET);
  if (count > destMax) return Reset(dest, destMax, ERANGE_AND_RESET);
  if (dest == src || count == 0) return EOK;
  if (Overlap(dest, src, count)) return Reset(dest, destMax, EOVERLAP_AND_RESET);
  std::memcpy(dest, src, count);
  return EOK;
}

errno_t memmove_s(void* dest, size_t destMax, const void* src, size_t count) {
  if (!InBounds(destMax, SECUREC_MEM_MAX_LEN)) return ERANGE;
  if (dest == nullptr) return EINVAL;
  if (src == nullptr) return Reset(dest, destMax, EINVAL_AND_RESET);
  if (count > destMax) return Reset(dest, destMax, ERANGE_AND_RESET);
  std::memmove(dest, src, count);
  return EOK;
}

errno_t strcpy_s(char* strDest, size_t destMax, const char* strSrc) {
  return strDest != nullptr && strDest == strSrc ? EOK : Copy(strDest, destMax, strSrc, SIZE_MAX);
}

errno_t strncpy_s(char* strDest, size_t destMax, const char* strSrc, size_t count) {
  return Copy(strDest, destMax, strSrc, count);
}

errno_t strcat_s(char* strDest, size_t destMax, const char* strSrc) {
  return Append(strDest, destMax, strSrc, SIZE_MAX);
}

errno_t strncat_s(char* strDest, size_t destMax, const char* strSrc, size_t count) {
  return Append(strDest, destMax, strSrc, count);
}

char* strtok_s(char* strToken, const char* strDelimit, char** context) {
  if (context == nullptr || strDelimit == nullptr || (strToken == nullptr && *context == nullptr)) {
    return nullptr;
  }
  return strtok_r(strToken, strDelimit, context);
}

int vsprintf_s(char* strDest, size_t destMax, const char* format, va_list args) {
  if (!CanPrint(strDest, destMax, format)) return -1;
  const int length = std::vsnprintf(strDest, destMax, format, args);
  if (length >= 0 && static_cast<size_t>(length) < destMax) return length;
  *strDest = '\0';
  return -1;
}

int sprintf_s(char* strDest, size_t destMax, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsprintf_s(strDest, destMax, format, args);
  va_end(args);
  return length;
}

int vsnprintf_s(char* strDest, size_t destMax, size_t count, const char* format, va_list args) {
  if (!CanPrint(strDest, destMax, format)) return -1;
  const size_t room = std::min(count, destMax - 1) + 1;
  const int length = std::vsnprintf(strDest, room, format, args);
  if (length >= 0 && static_cast<size_t>(length) < room) return length;
  if (length < 0 || count >= destMax) *strDest = '\0';  // not cut as the caller asked
  return -1;
}

int snprintf_s(char* strDest, size_t destMax, size_t count, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf_s(strDest, destMax, count, format, args);
  va_end(args);
  return length;
}
