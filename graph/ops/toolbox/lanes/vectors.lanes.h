// Vectors: NM_WIDTH numbers at a time, in as many vectors as the instruction set needs for them.
// More than one vector lets their operations overlap, because those of one wait for each other.
//
// REQUIRES: NM_WIDTH is 16 or 64. NM_BYTES, the size of a vector, follows from what the compiler
// may use, unless it is defined already; 32 means that there is F16C, too, as in x86-64-v3.
#if defined(NM_BYTES)
#elif defined(__AVX512F__)
#define NM_BYTES 64
#elif defined(__AVX2__) && defined(__F16C__)
#define NM_BYTES 32
#else
#define NM_BYTES 16
#endif
#define NM_INLINE static inline __attribute__((always_inline))
#define NM_LANES (NM_BYTES / 4)
// Unrolled, so that every vector stays in a register.
#define NM_EACH(parts) _Pragma("GCC unroll 16") for (int i = 0; i < parts; ++i)

typedef float VF __attribute__((vector_size(NM_BYTES)));
typedef unsigned VU __attribute__((vector_size(NM_BYTES)));
typedef int VI __attribute__((vector_size(NM_BYTES)));
typedef double VD __attribute__((vector_size(NM_BYTES)));
typedef long long VL __attribute__((vector_size(NM_BYTES)));
typedef unsigned long long VQ __attribute__((vector_size(NM_BYTES)));
typedef float VG __attribute__((vector_size(NM_BYTES / 2)));
typedef int VJ __attribute__((vector_size(NM_BYTES / 2)));
typedef unsigned VK __attribute__((vector_size(NM_BYTES / 2)));
typedef unsigned short VH __attribute__((vector_size(NM_BYTES / 2)));
typedef unsigned char VB __attribute__((vector_size(NM_BYTES / 4)));
enum { kF = NM_WIDTH * 4 / NM_BYTES, kD = NM_WIDTH * 8 / NM_BYTES, kSixteen = 64 / NM_BYTES };
// NM_WIDTH floats, as many times true (all bits) or false, integers of 32 and of 64 bits, doubles.
struct F {
  VF v[kF];
};
struct B {
  VI v[kF];
};
struct I {
  VI v[kF];
};
struct L {
  VL v[kD];
};
struct D {
  VD v[kD];
};
// The sixteen lanes of a sum.
struct S {
  VF v[kSixteen];
};

// The halves of a vector, and the vector that has two halves.
#undef NM_FIRST_LANES
#undef NM_OTHER_LANES
#if NM_BYTES == 64
#define NM_FIRST_LANES 0, 1, 2, 3, 4, 5, 6, 7
#define NM_OTHER_LANES 8, 9, 10, 11, 12, 13, 14, 15
#elif NM_BYTES == 32
#define NM_FIRST_LANES 0, 1, 2, 3
#define NM_OTHER_LANES 4, 5, 6, 7
#else
#define NM_FIRST_LANES 0, 1
#define NM_OTHER_LANES 2, 3
#endif
#define NM_FIRST(x) __builtin_shufflevector(x, x, NM_FIRST_LANES)
#define NM_OTHER(x) __builtin_shufflevector(x, x, NM_OTHER_LANES)
#define NM_JOINED(a, b) __builtin_shufflevector(a, b, NM_FIRST_LANES, NM_OTHER_LANES)

NM_INLINE VF SetF(float x) { return x - (VF){}; }
NM_INLINE VU SetU(unsigned x) { return x - (VU){}; }
NM_INLINE VD SetD(double x) { return x - (VD){}; }
NM_INLINE VI SetI(int x) { return x - (VI){}; }
NM_INLINE VL SetL(long long x) { return x - (VL){}; }
NM_INLINE F Set(float x) {
  F r;
  NM_EACH(kF) r.v[i] = SetF(x);
  return r;
}
NM_INLINE D SetWide(double x) {
  D r;
  NM_EACH(kD) r.v[i] = SetD(x);
  return r;
}
