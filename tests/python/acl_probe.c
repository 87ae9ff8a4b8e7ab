/* Functions as the C interface of AscendCL has them, which hand back what they were given: what
 * acl_test.py compares pyACL's arguments and returns with. Structs are written down a second time
 * here, from the interface, so that a mistake in the package's does not cancel out. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  char name[128];
  size_t dimCount;
  int64_t dims[128];
} Dims;

typedef struct {
  size_t rangeCount;
  int64_t range[128][2];
} Range;

typedef struct {
  size_t batchCount;
  uint64_t batch[128];
} Batch;

typedef struct {
  size_t hwCount;
  uint64_t hw[128][2];
} Images;

typedef struct {
  uint32_t id;
  int type;
} Location;

typedef struct {
  int handleType;
  int allocationType;
  int memAttr;
  Location location;
  uint64_t reserve;
} Property;

int aclprobeNumbers(int8_t a, int8_t* a_out, uint8_t b, uint8_t* b_out, int16_t c, int16_t* c_out,
                    uint16_t d, uint16_t* d_out, int32_t e, int32_t* e_out, uint32_t f,
                    uint32_t* f_out, int64_t g, int64_t* g_out, uint64_t h, uint64_t* h_out,
                    size_t i, size_t* i_out, float j, float* j_out, void* k, void** k_out) {
  *a_out = a;
  *b_out = b;
  *c_out = c;
  *d_out = d;
  *e_out = e;
  *f_out = f;
  *g_out = g;
  *h_out = h;
  *i_out = i;
  *j_out = j;
  *k_out = k;
  return e;
}

int64_t aclprobeResult(int64_t value) {
  return value;
}

void aclprobeNothing(void* place) {
  *(int*)place = 7;
}

const char* aclprobeText(const char* text) {
  return text;
}

int aclprobeBytes(const char* text, size_t length, char* copy, size_t room) {
  if (length >= room) return 1;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return 0;
}

int aclprobeTurn(const Dims* given, Dims* turned) {
  size_t i;
  *turned = *given;
  for (i = 0; i < given->dimCount; ++i) {
    turned->dims[i] = given->dims[given->dimCount - 1 - i];
  }
  return given->dimCount == 0;
}

int aclprobeCounted(size_t count, Range* range, Batch* batch, Images* images) {
  size_t i;
  range->rangeCount = batch->batchCount = images->hwCount = count;
  for (i = 0; i < count; ++i) {
    range->range[i][0] = -(int64_t)i;
    range->range[i][1] = (int64_t)i;
    batch->batch[i] = i << 33;
    images->hw[i][0] = i;
    images->hw[i][1] = 2 * i;
  }
  return 0;
}

int aclprobeProperty(const Property* given, uint64_t* sum) {
  *sum = (uint64_t)given->handleType + 10 * (uint64_t)given->allocationType +
         100 * (uint64_t)given->memAttr + 1000 * given->location.id +
         10000 * (uint64_t)given->location.type + 100000 * given->reserve;
  return 0;
}

/* copy[count] is in front of its length, as the interface has it. */
int aclprobeList(int count, const int64_t* values, int64_t* copy, size_t room) {
  size_t i;
  for (i = 0; i < room; ++i) copy[i] = i < (size_t)count ? values[i] : -1;
  return 0;
}

int aclprobeLists(int lists, const int* lengths, const int64_t* const* values, int64_t* sum) {
  int i, j;
  *sum = lists;
  for (i = 0; i < lists; ++i) {
    for (j = 0; j < lengths[i]; ++j) *sum = 31 * *sum + values[i][j];
  }
  return 0;
}

int aclprobePairs(size_t count, int64_t pairs[][2], int64_t* sum) {
  size_t i;
  *sum = 0;
  for (i = 0; i < count; ++i) *sum = 31 * *sum + 7 * pairs[i][0] + pairs[i][1];
  return 0;
}

int aclprobeTexts(int count, const char** texts, size_t* length) {
  int i;
  *length = 0;
  for (i = 0; i < count; ++i) *length += strlen(texts[i]) * (size_t)(i + 1);
  return 0;
}
