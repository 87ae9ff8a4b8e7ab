// Reading and writing floats of 32 and 16 bits and bools, and the conversions of 16 bits.
NM_INLINE VF WidenHalf(VU half) {
  const VU magnitude = half & 0x7fffu;
  const VU shifted = magnitude << 13;
  const VU finite = (VU)((VF)shifted * 0x1p112f);
  return (VF)(((half & 0x8000u) << 16) | (magnitude > 0x7bffu ? shifted | 0x7f800000u : finite));
}
NM_INLINE VU NarrowToHalf(VU bits) {
  const VU magnitude = bits & 0x7fffffffu;
  const VU rounded = magnitude + ((magnitude >> 13) & 1u) + (0xfffu - (112u << 23));
  const VU subnormal = (VU)((VF)magnitude + 0.5f) - 0x3f000000u;
  VU half = magnitude < 0x38800000u ? subnormal : rounded >> 13;
  half = magnitude > 0x477fefffu ? SetU(0x7c00u) : half;
  half = magnitude > 0x7f800000u ? SetU(0x7e00u) : half;
  return ((bits & 0x80000000u) >> 16) | half;
}
// By the processor where it can: the same numbers, but NaNs of other bits.
#if NM_BYTES == 64
typedef short HalfBits __attribute__((vector_size(32)));
NM_INLINE VF FromHalf(VH half) {
  return __builtin_ia32_vcvtph2ps512_mask((HalfBits)half, (VF){}, -1, 4);
}
NM_INLINE VH ToHalf(VF x) { return (VH)__builtin_ia32_vcvtps2ph512_mask(x, 0, (HalfBits){}, -1); }
#elif NM_BYTES == 32
typedef short HalfBits __attribute__((vector_size(16)));
NM_INLINE VF FromHalf(VH half) { return __builtin_ia32_vcvtph2ps256((HalfBits)half); }
NM_INLINE VH ToHalf(VF x) { return (VH)__builtin_ia32_vcvtps2ph256(x, 0); }
#else
NM_INLINE VF FromHalf(VH half) { return WidenHalf(__builtin_convertvector(half, VU)); }
NM_INLINE VH ToHalf(VF x) { return __builtin_convertvector(NarrowToHalf((VU)x), VH); }
#endif
NM_INLINE VU NarrowToBfloat(VU bits) {
  const VU rounded = (bits + ((bits >> 16) & 1u) + 0x7fffu) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;
}
NM_INLINE F LoadFloat(const float* p) {
  F r;
  NM_EACH(kF) __builtin_memcpy(&r.v[i], p + i * NM_LANES, sizeof(VF));
  return r;
}
NM_INLINE void StoreFloat(F x, float* p) {
  NM_EACH(kF) __builtin_memcpy(p + i * NM_LANES, &x.v[i], sizeof(VF));
}
NM_INLINE VF FromBfloat(VH bfloat) { return (VF)(__builtin_convertvector(bfloat, VU) << 16); }
NM_INLINE VH ToBfloat(VF x) { return __builtin_convertvector(NarrowToBfloat((VU)x), VH); }
// A NaN becomes the usual one of its sign.
NM_INLINE VH ToUsualHalf(VF x) {
  return ToHalf(x == x ? x : (VF)(((VU)x & 0x80000000u) | 0x7fc00000u));
}
#define NM_SIXTEEN_BITS(name, from, to)                        \
  NM_INLINE F Load##name(const unsigned short* p) {            \
    F r;                                                       \
    NM_EACH(kF) {                                              \
      VH bits;                                                 \
      __builtin_memcpy(&bits, p + i * NM_LANES, sizeof(bits)); \
      r.v[i] = from(bits);                                     \
    }                                                          \
    return r;                                                  \
  }                                                            \
  NM_INLINE void Store##name(F x, unsigned short* p) {         \
    NM_EACH(kF) {                                              \
      const VH bits = to(x.v[i]);                              \
      __builtin_memcpy(p + i * NM_LANES, &bits, sizeof(bits)); \
    }                                                          \
  }
NM_SIXTEEN_BITS(Half, FromHalf, ToUsualHalf)
NM_SIXTEEN_BITS(Bfloat, FromBfloat, ToBfloat)
NM_INLINE B LoadBool(const unsigned char* p) {
  B r;
  NM_EACH(kF) {
    VB bytes;
    __builtin_memcpy(&bytes, p + i * NM_LANES, sizeof(bytes));
    r.v[i] = __builtin_convertvector(bytes, VI) != 0;
  }
  return r;
}
#if defined(__SSE2__) && NM_BYTES < 64
// Sixteen at a time; the compiler would take them out of their vectors one by one.
typedef int Ints128 __attribute__((vector_size(16)));
typedef short Shorts128 __attribute__((vector_size(16)));
typedef signed char Bytes128 __attribute__((vector_size(16)));
NM_INLINE void StoreBool(B x, unsigned char* p) {
  for (int i = 0; i < NM_WIDTH / 16; ++i) {
    Ints128 part[4];
    __builtin_memcpy(part, &x.v[i * kSixteen], sizeof(part));
    const Shorts128 low = __builtin_ia32_packssdw128(part[0], part[1]);
    const Shorts128 high = __builtin_ia32_packssdw128(part[2], part[3]);
    const Bytes128 bytes = (Bytes128)__builtin_ia32_packsswb128(low, high) & 1;
    __builtin_memcpy(p + i * 16, &bytes, sizeof(bytes));
  }
}
#else
NM_INLINE void StoreBool(B x, unsigned char* p) {
  NM_EACH(kF) {
    const VB bytes = __builtin_convertvector(x.v[i] & 1, VB);
    __builtin_memcpy(p + i * NM_LANES, &bytes, sizeof(bytes));
  }
}
#endif
// The last elements of a row, fewer than sixteen: by way of a whole vector.
template <class Value, class Number>
NM_INLINE Value LoadPart(Value (*load)(const Number*), const Number* p, int count) {
  Number room[NM_WIDTH] = {};
  __builtin_memcpy(room, p, count * sizeof(Number));
  return load(room);
}
template <class Value, class Number>
NM_INLINE void StorePart(void (*store)(Value, Number*), Value x, Number* p, int count) {
  Number room[NM_WIDTH];
  store(x, room);
  __builtin_memcpy(p, room, count * sizeof(Number));
}
// One number for a row.
NM_INLINE F OneFloat(const float* p) { return Set(*p); }
NM_INLINE F OneHalf(const unsigned short* p) {
  F r;
  NM_EACH(kF) r.v[i] = WidenHalf(SetU(*p));
  return r;
}
NM_INLINE F OneBfloat(const unsigned short* p) {
  F r;
  NM_EACH(kF) r.v[i] = (VF)(SetU(*p) << 16);
  return r;
}
NM_INLINE B OneBool(const unsigned char* p) {
  B r;
  NM_EACH(kF) r.v[i] = (VI)SetU(*p) != 0;
  return r;
}
