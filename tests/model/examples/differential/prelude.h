// Compiles as HIP for a GPU and as C++ for the CPU. WAVE is the number of lanes.
typedef unsigned int u32;
typedef unsigned long long u64;
#define NOINLINE __attribute__((noinline))
#define GROUP 64
#define GROUPS 2
#define WORDS 20
#define SUMS 4

struct State {
  u32 r[8];
  u64 q[4];
  float f[4];
  double d[4];
};

#ifdef __HIP__
#define DEVICE static __attribute__((device))
#define CONSTANT const
#else
#define DEVICE static
#define CONSTANT const
extern "C" int printf(const char *, ...);
#endif

// A NaN's payload is the machine's own affair.
DEVICE u32 bits(float x) {
  u32 u;
  __builtin_memcpy(&u, &x, 4);
  return x != x ? 0x7fc00000u : u;
}
DEVICE u64 bits64(double x) {
  u64 u;
  __builtin_memcpy(&u, &x, 8);
  return x != x ? 0x7ff8000000000000ull : u;
}
DEVICE u32 to_int(double x) { return x > -2e9 && x < 2e9 ? (u32)(int)x : 77u; }
DEVICE u32 hash(u32 x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
  return x;
}
DEVICE void start(State *s, u32 item) {
  for (u32 k = 0; k < 8; k++) s->r[k] = hash(item * 31 + k);
  for (u32 k = 0; k < 4; k++) {
    s->q[k] = (u64)hash(item + 100 * k) << 32 | hash(item ^ k);
    s->f[k] = (float)(int)(hash(item + 7 * k) >> 8) / 4096.0f - 1000.0f;
    s->d[k] = (double)(int)hash(item + 13 * k) / 65536.0;
  }
}
DEVICE void finish(const State *s, u32 *out) {
  for (u32 k = 0; k < 8; k++) out[k] = s->r[k];
  for (u32 k = 0; k < 4; k++) {
    out[8 + k] = (u32)(s->q[k] ^ s->q[k] >> 32);
    out[12 + k] = bits(s->f[k]);
    u64 d = bits64(s->d[k]);
    out[16 + k] = (u32)(d ^ d >> 32);
  }
}

#ifdef __HIP__
#define BARRIER                                    \
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); \
  __builtin_amdgcn_s_barrier();                    \
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
#define BEGIN                                                              \
  extern "C" __attribute__((global)) void program(u32 *out) {              \
    __attribute__((shared)) static u32 lds[GROUP + 1];                     \
    u32 t = __builtin_amdgcn_workitem_id_x();                              \
    u32 item = __builtin_amdgcn_workgroup_id_x() * GROUP + t;              \
    u32 *sums = out + GROUP * GROUPS * WORDS;                              \
    State state, *s = &state;                                              \
    start(s, item);
#define EACH(phase) phase(s, item);
#define LDS(to, from, times, plus)  \
  lds[t] = s->r[from];              \
  BARRIER                           \
  s->r[to] ^= lds[(t * times + plus) & (GROUP - 1)]; \
  BARRIER
#define LANE(to, from, times, plus)                                                        \
  {                                                                                        \
    u32 lane = (t * times + plus) & 31u;                                                   \
    s->r[to] += (u32)__builtin_amdgcn_ds_bpermute((int)(((t & (WAVE - 1) & ~31u) | lane) * 4), (int)s->r[from]); \
  }
#define SUM(word, op, from) __hip_atomic_fetch_##op(sums + word, s->r[from], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#define LDS_SUM(to, from)                                                                 \
  if (t == 0) lds[GROUP] = 0;                                                             \
  BARRIER                                                                                 \
  __hip_atomic_fetch_add(&lds[GROUP], s->r[from], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); \
  BARRIER                                                                                 \
  s->r[to] ^= lds[GROUP];                                                                 \
  BARRIER
#define END                        \
  finish(s, out + item * WORDS);   \
  }
#else
static State states[GROUP * GROUPS];
static u32 sums[SUMS], results[GROUP * GROUPS * WORDS];
#define ALL for (u32 item = 0; item < GROUP * GROUPS; item++)
#define BEGIN int main() { ALL start(&states[item], item);
#define EACH(phase) ALL phase(&states[item], item);
#define MEET(to, from, assign, index)                          \
  {                                                            \
    u32 copy[GROUP * GROUPS];                                  \
    ALL copy[item] = states[item].r[from];                     \
    ALL { u32 t = item % GROUP; states[item].r[to] assign copy[item - t + (index)]; } \
  }
#define LDS(to, from, times, plus) MEET(to, from, ^=, (t * times + plus) & (GROUP - 1))
#define LANE(to, from, times, plus) MEET(to, from, +=, (t & ~31u) | ((t * times + plus) & 31u))
#define OP_add(a, b) a + b
#define OP_or(a, b) a | b
#define OP_xor(a, b) a ^ b
#define OP_max(a, b) a > b ? a : b
#define SUM(word, op, from) ALL sums[word] = OP_##op(sums[word], states[item].r[from]);
#define LDS_SUM(to, from)                                       \
  for (u32 g = 0; g < GROUPS; g++) {                            \
    u32 sum = 0;                                                \
    for (u32 t = 0; t < GROUP; t++) sum += states[g * GROUP + t].r[from]; \
    for (u32 t = 0; t < GROUP; t++) states[g * GROUP + t].r[to] ^= sum;   \
  }
#define END                                                     \
  ALL finish(&states[item], results + item * WORDS);            \
  for (u32 word : results) printf("%u\n", word);                \
  for (u32 word : sums) printf("%u\n", word);                   \
  }
#endif
