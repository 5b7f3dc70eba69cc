// Vector add, a reduction through shared memory, atomics.
#include "check.h"
#include <vector>

__global__ void add(const float *a, const float *b, float *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = a[i] + b[i];
}

__global__ void reduce(const unsigned *in, unsigned *out, int count) {
    __shared__ unsigned sums[256];
    unsigned sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

__global__ void atomics(unsigned *words, unsigned long long *wide, float *real) {
    atomicAdd(&words[0], 1u);
    atomicMax(&words[1], blockIdx.x * blockDim.x + threadIdx.x);
    atomicOr(&words[2], 1u << (threadIdx.x & 31));
    unsigned seen = words[3];
    while (true) {
        unsigned was = atomicCAS(&words[3], seen, seen + 2);
        if (was == seen) break;
        seen = was;
    }
    atomicAdd(wide, 0x100000001ull);
    atomicAdd(real, 0.5f);
}

int main() {
    const int count = 1 << 14;
    std::vector<float> a(count), b(count), out(count);
    for (int i = 0; i < count; i++) a[i] = i * 0.25f, b[i] = 3.0f - i;
    float *da, *db, *dout;
    HIP(hipMalloc(&da, count * 4));
    HIP(hipMalloc(&db, count * 4));
    HIP(hipMalloc(&dout, count * 4));
    HIP(hipMemcpy(da, a.data(), count * 4, hipMemcpyHostToDevice));
    HIP(hipMemcpy(db, b.data(), count * 4, hipMemcpyHostToDevice));
    add<<<count / 256, 256>>>(da, db, dout, count);
    HIP(hipGetLastError());
    HIP(hipMemcpy(out.data(), dout, count * 4, hipMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) CHECK(out[i] == a[i] + b[i]);
    passed("vector add");

    std::vector<unsigned> words(count), sums(8);
    unsigned expected = 0;
    for (int i = 0; i < count; i++) expected += words[i] = i * 2654435761u;
    HIP(hipMemcpy(da, words.data(), count * 4, hipMemcpyHostToDevice));
    reduce<<<8, 256>>>((unsigned *)da, (unsigned *)dout, count);
    HIP(hipMemcpy(sums.data(), dout, 32, hipMemcpyDeviceToHost));
    unsigned sum = 0;
    for (unsigned part : sums) sum += part;
    CHECK(sum == expected);
    passed("reduction through shared memory");

    unsigned *dwords, got[4];
    unsigned long long *dwide, wide;
    float *dreal, real;
    HIP(hipMalloc(&dwords, 16));
    HIP(hipMalloc(&dwide, 8));
    HIP(hipMalloc(&dreal, 4));
    HIP(hipMemset(dwords, 0, 16));
    HIP(hipMemset(dwide, 0, 8));
    HIP(hipMemset(dreal, 0, 4));
    atomics<<<4, 128>>>(dwords, dwide, dreal);
    HIP(hipMemcpy(got, dwords, 16, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&wide, dwide, 8, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&real, dreal, 4, hipMemcpyDeviceToHost));
    CHECK(got[0] == 512 && got[1] == 511 && got[2] == 0xffffffffu && got[3] == 1024);
    CHECK(wide == 512 * 0x100000001ull && real == 256.0f);
    passed("atomics");
    for (void *memory : {(void *)da, (void *)db, (void *)dout, (void *)dwords, (void *)dwide, (void *)dreal}) HIP(hipFree(memory));
    return 0;
}
