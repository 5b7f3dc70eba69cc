// What programs of csmith need, without a C library: on the CPU and on a GPU.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807L
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615UL
#define CHAR_BIT 8
#define FLT_MAX __FLT_MAX__
#define DBL_MAX __DBL_MAX__
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define ldexpf __builtin_ldexpf
#define ldexp __builtin_ldexp
#define assert(x)
#define STATIC static
#define UNDEFINED(x) (x)
#define LOG_INDEX
#define LOG_EXEC
#define FUNC_NAME(x) (safe_##x)
#include "safe_math.h"

static uint32_t sum = 2166136261u;
static void transparent_crc(uint64_t value, const char *name, int flag) {
  for (int k = 0; k < 8; k++) sum = (sum ^ (uint32_t)(value >> 8 * k & 255)) * 16777619u;
}
static void transparent_crc_bytes(const void *bytes, int count, const char *name, int flag) {
  for (int k = 0; k < count; k++) transparent_crc(((const unsigned char *)bytes)[k], name, flag);
}
static uint32_t crc32_context;
#define crc32_gentab()
#define platform_main_begin()
#define platform_main_end(sum, flag)
#define printf(...) ((void)0)

PROGRAM_GOES_HERE

#ifdef __AMDGCN__
__attribute__((amdgpu_kernel, visibility("protected"))) void
program(__attribute__((address_space(1))) uint32_t *out) {
  csmith_main();
  *out = sum;
}
#else
#undef printf
int printf(const char *, ...);
int main(void) {
  csmith_main();
  printf("%u\n", sum);
}
#endif
